package embedded

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/crypto/bcrypt"
)

// Groups that the protocol's reference server knows too.
const (
	groupAdmins = "$admins"
	groupOps    = "$ops"
)

const (
	// hashCost makes one check of a password take tens of milliseconds. A file
	// with cheaper hashes is refused.
	hashCost = 10
	// maxPassword is what bcrypt looks at; the rest of a longer one would count for nothing.
	maxPassword = 72
	// maxProven bounds how many proven credentials are remembered.
	maxProven = 1024
	// maxHashing is how many passwords are checked at once, so that guessing
	// costs others no more than this many processors.
	maxHashing = 2
)

var errBadCredentials = errors.New("the user's name or password is wrong")

// user is one who may use the store over the network.
type user struct {
	name   string
	groups []string
	hash   []byte
}

// Users are who may use the store over the network. They come from the
// operator's file and never from the log, so that whoever reads the log learns
// no hash. The set doesn't change while the program runs.
type Users struct {
	byName map[string]user
	// nobody is the hash that an unknown name is checked against, so that it
	// takes as long as the dearest of the file.
	nobody  []byte
	hashing chan struct{}

	mu     sync.Mutex
	key    []byte
	proven map[[sha256.Size]byte]bool
}

// HashPassword makes the hash that stands in the file of users.
func HashPassword(password string) (string, error) {
	switch {
	case password == "":
		return "", errors.New("the password is empty")
	case len(password) > maxPassword:
		return "", fmt.Errorf("the password has %d bytes, at most %d count", len(password), maxPassword)
	}
	h, err := bcrypt.GenerateFromPassword([]byte(password), hashCost)
	return string(h), err
}

// LoadUsers reads a file of users, which nobody but its owner may read.
func LoadUsers(path string) (_ *Users, err error) {
	f, err := os.Open(path) //nolint:gosec // G304: the operator names the file
	if err != nil {
		return nil, fmt.Errorf("the event store's users: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("the event store's users: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("the event store's users %s may be read or written by others (mode %04o); run: chmod 600 %s", path, mode, path)
	}
	u, err := ParseUsers(f)
	if err != nil {
		return nil, fmt.Errorf("the event store's users %s: %w", path, err)
	}
	return u, nil
}

// ParseUsers reads users, one a line: name:hash:group,group. The hash is
// bcrypt's. Members of $admins may do everything. Empty lines and lines that
// begin with # are left out. No error repeats a hash.
func ParseUsers(r io.Reader) (*Users, error) { return parseUsers(r, hashCost) }

// parseUsers reads users whose hashes have at least the given cost.
func parseUsers(r io.Reader, cost int) (*Users, error) {
	u := &Users{
		byName: map[string]user{}, hashing: make(chan struct{}, maxHashing),
		key: make([]byte, sha256.Size), proven: map[[sha256.Size]byte]bool{},
	}
	most := cost
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		one, err := parseUser(line, cost)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if _, twice := u.byName[one.name]; twice {
			return nil, fmt.Errorf("line %d: user %q stands there twice", n, one.name)
		}
		u.byName[one.name] = one
		if c, err := bcrypt.Cost(one.hash); err == nil {
			most = max(most, c)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(u.byName) == 0 {
		return nil, errors.New("there is no user; write lines of name:hash:group,group")
	}
	if _, err := rand.Read(u.key); err != nil {
		return nil, err
	}
	var err error
	u.nobody, err = bcrypt.GenerateFromPassword(u.key, most)
	return u, err
}

func parseUser(line string, least int) (user, error) {
	name, rest, ok := strings.Cut(line, ":")
	hash, groups, _ := strings.Cut(rest, ":")
	switch {
	case !ok:
		return user{}, errors.New("a line is name:hash:group,group")
	case name == "" || strings.HasPrefix(name, "$") || !utf8.ValidString(name):
		return user{}, errors.New("a user's name must not be empty and must not begin with $")
	}
	cost, err := bcrypt.Cost([]byte(hash))
	if err != nil {
		return user{}, fmt.Errorf("the hash of user %q is none of bcrypt", name)
	}
	if cost < least {
		return user{}, fmt.Errorf("the hash of user %q has cost %d, at least %d is needed", name, cost, least)
	}
	u := user{name: name, hash: []byte(hash)}
	for g := range strings.SplitSeq(groups, ",") {
		if g = strings.TrimSpace(g); g != "" {
			u.groups = append(u.groups, g)
		}
	}
	return u, nil
}

// names lists the users in order.
func (u *Users) names() []string {
	names := make([]string, 0, len(u.byName))
	for n := range u.byName {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// prove checks a name and a password. Every call of a client carries them, so
// what was proven once is remembered, under a key that only this process has.
// errBadCredentials tells that they are wrong.
func (u *Users) prove(ctx context.Context, name, password string) (user, error) {
	mac := hmac.New(sha256.New, u.key)
	_, _ = fmt.Fprintf(mac, "%d:%s%s", len(name), name, password)
	var digest [sha256.Size]byte
	mac.Sum(digest[:0])
	one, known := u.byName[name]
	u.mu.Lock()
	again := u.proven[digest]
	u.mu.Unlock()
	if again {
		return one, nil
	}
	select {
	case u.hashing <- struct{}{}:
	case <-ctx.Done():
		return user{}, ctx.Err()
	}
	defer func() { <-u.hashing }()
	hash := one.hash
	if !known {
		hash = u.nobody
	}
	if err := bcrypt.CompareHashAndPassword(hash, []byte(password)); err != nil || !known || len(password) > maxPassword {
		return user{}, errBadCredentials
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.proven) >= maxProven {
		clear(u.proven)
	}
	u.proven[digest] = true
	return one, nil
}
