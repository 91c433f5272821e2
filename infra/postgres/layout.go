package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// The kernel keeps 107 bytes for the path of a unix socket.
const maxSocketPath = 107

// port is only part of the socket's name: nothing listens on TCP.
const port = 5432

// layout is where the parts of a cluster lie.
type layout struct {
	root   string // the cluster's directory
	data   string // PGDATA
	socket string // directory of the socket
	lock   string // held (flock) by the program that owns the cluster
	tag    string // tells this cluster's processes from those of others
}

func newLayout(dir, socketDir string) (layout, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return layout{}, err
	}
	sum := sha256.Sum256([]byte(root))
	l := layout{
		root: root,
		data: filepath.Join(root, "pgdata"),
		lock: filepath.Join(root, "lock"),
		tag:  "tallyard-" + hex.EncodeToString(sum[:6]),
	}
	switch {
	case socketDir != "":
		l.socket, err = filepath.Abs(socketDir)
		if err != nil {
			return layout{}, err
		}
	case fitsSocket(filepath.Join(root, "socket")):
		l.socket = filepath.Join(root, "socket")
	default:
		// The same name at the next start, so that nothing piles up.
		l.socket = filepath.Join(os.TempDir(), l.tag)
	}
	if !fitsSocket(l.socket) {
		return layout{}, fmt.Errorf("the socket directory %s is too long: a socket's path has at most %d bytes; choose a shorter one", l.socket, maxSocketPath)
	}
	return l, nil
}

func fitsSocket(dir string) bool {
	return len(filepath.Join(dir, fmt.Sprintf(".s.PGSQL.%d.lock", port))) <= maxSocketPath
}

// makeRoot makes the cluster's directory. As root it stays root's, and others
// may pass through it (not look into it): Postgres runs as somebody else.
func (l layout) makeRoot() error {
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711
	}
	if err := os.MkdirAll(l.root, mode); err != nil {
		return err
	}
	return os.Chmod(l.root, mode)
}

// makeReachable sees to it that the account can walk to the data. The
// directory above the cluster's is the program's own data directory and is
// opened for passing through; what lies further up is not ours to change.
func (l layout) makeReachable(a account) error {
	if a.own {
		return nil
	}
	parent := filepath.Dir(l.root)
	for dir := parent; ; dir = filepath.Dir(dir) {
		fi, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if !a.canPass(fi) {
			owner, _ := ownerOf(dir)
			if dir != parent || owner != uint32(os.Geteuid()) { //nolint:gosec // G115: a uid fits
				return fmt.Errorf("Postgres runs as %s, which cannot pass through %s: choose another data directory, or run chmod o+x %s", a.name, dir, dir) //nolint:staticcheck // ST1005: a proper name starts the sentence
			}
			if err := os.Chmod(dir, fi.Mode().Perm()|0o011); err != nil {
				return err
			}
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (a account) canPass(fi os.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return true
	}
	switch {
	case st.Uid == a.uid:
		return fi.Mode()&0o100 != 0
	case st.Gid == a.gid:
		return fi.Mode()&0o010 != 0
	default:
		return fi.Mode()&0o001 != 0
	}
}

// makeSocketDir makes an empty directory only the account (and root) can
// enter. It may lie in a place where everybody can make things, so what is
// there already is believed only when it is a real directory of the account.
func (l layout) makeSocketDir(a account) error {
	err := os.Mkdir(l.socket, 0o700)
	if errors.Is(err, os.ErrNotExist) {
		err = os.MkdirAll(l.socket, 0o700)
	}
	switch {
	case err == nil:
		if err := a.give(l.socket); err != nil {
			return err
		}
	case errors.Is(err, os.ErrExist):
		fi, err := os.Lstat(l.socket)
		if err != nil {
			return err
		}
		owner, _ := ownerOf(l.socket)
		if !fi.IsDir() || owner != a.uid && int(owner) != os.Geteuid() {
			return fmt.Errorf("%s is not a directory of %s: remove it, or choose another socket directory", l.socket, a.name)
		}
		if err := a.give(l.socket); err != nil {
			return err
		}
		if err := os.Chmod(l.socket, 0o700); err != nil { //nolint:gosec // G302: a directory needs x
			return err
		}
	default:
		return err
	}
	return l.clearSocketDir()
}

// clearSocketDir removes sockets and lock files that a killed server left: a
// lock file whose number has become a stranger's would keep the next from starting.
func (l layout) clearSocketDir() error {
	entries, err := os.ReadDir(l.socket)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".s.PGSQL.") {
			if err := os.Remove(filepath.Join(l.socket, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// acquire takes the cluster's directory for this program. The kernel lets go
// of the lock when the program ends, however it ends.
func (l layout) acquire() (*os.File, error) {
	f, err := os.OpenFile(l.lock, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder := make([]byte, 32)
		n, readErr := f.ReadAt(holder, 0)
		_ = f.Close() // nothing was written
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", l.lock, err)
		}
		if pid := strings.TrimSpace(string(holder[:n])); pid != "" && (readErr == nil || n > 0) {
			return nil, fmt.Errorf("%w: %s is held by process %s; stop it first, or use another data directory", ErrInUse, l.root, pid)
		}
		return nil, fmt.Errorf("%w: %s; stop it first, or use another data directory", ErrInUse, l.root)
	}
	// The number is for the message above only; the lock itself is what counts.
	if err := f.Truncate(0); err == nil {
		_, _ = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return f, nil
}
