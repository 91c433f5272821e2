package postgres

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// DefaultAccount is the system user Postgres runs as when the program is root:
// initdb and postgres refuse to run as root.
const DefaultAccount = "postgres"

// account is the system user that the server runs as.
type account struct {
	uid, gid uint32
	name     string
	// own is true when it is the program's own user and nothing has to be switched.
	own bool
}

// chooseAccount picks the user for a cluster whose data lies in pgdata. Data
// that is there already decides: the server only starts as the owner of it.
func chooseAccount(pgdata, name string) (account, error) {
	self := os.Geteuid()
	owner, exists := ownerOf(pgdata)
	if self != 0 {
		if exists && int(owner) != self {
			return account{}, &accountError{fmt.Sprintf(
				"%s belongs to %s, and this program runs as %s: start it as the user that made the directory, or as root",
				pgdata, userName(owner), userName(uint32(self)))} //nolint:gosec // G115: a uid fits
		}
		return lookupAccount(strconv.Itoa(self), true)
	}
	if exists && owner != 0 {
		return lookupAccount(strconv.Itoa(int(owner)), false)
	}
	u, err := user.Lookup(name)
	if err != nil {
		return account{}, &accountError{fmt.Sprintf(
			"the program runs as root, Postgres must not, and there is no user %q to run it as. "+
				"Debian's postgresql package makes it; otherwise: useradd --system --shell /usr/sbin/nologin %s",
			name, name)}
	}
	return toAccount(u, false)
}

func lookupAccount(uid string, own bool) (account, error) {
	u, err := user.LookupId(uid)
	if err != nil {
		return account{}, &accountError{fmt.Sprintf(
			"the user with the number %s has no entry in /etc/passwd, and Postgres wants one: add the entry, "+
				"or give the address of a Postgres server instead", uid)}
	}
	return toAccount(u, own)
}

func toAccount(u *user.User, own bool) (account, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("user %s: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("user %s: %w", u.Username, err)
	}
	if uid == 0 {
		return account{}, &accountError{"Postgres must not run as root: name another user"}
	}
	return account{uid: uint32(uid), gid: uint32(gid), name: u.Username, own: own}, nil
}

// attributes are those of a process that runs as the account.
func (a account) attributes(onParentDeath syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		// A session of its own: Ctrl-C in the terminal is for the program, which
		// stops Postgres when it has no more use for it.
		Setsid:    true,
		Pdeathsig: onParentDeath,
	}
	if !a.own {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}

// give hands a path to the account.
func (a account) give(path string) error {
	if a.own {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

func ownerOf(path string) (uid uint32, exists bool) {
	fi, err := os.Lstat(path)
	if err != nil {
		return 0, false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return st.Uid, true
}

// userName is for messages: a name, or the number when it has none.
func userName(uid uint32) string {
	s := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(s); err == nil {
		return "user " + u.Username
	}
	return "user number " + s
}
