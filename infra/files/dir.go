package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// dir is an open directory. Every method takes single names, so nothing can be
// reached through it that is not directly in it, and no link is ever followed.
type dir struct {
	f *os.File
}

var (
	// errOther: the name is a link, FIFO, socket or device.
	errOther = errors.New("neither a regular file nor a directory")
	// errNotDir: the name is not a directory.
	errNotDir = errors.New("not a directory")
	// errIsDir: the name is a directory.
	errIsDir = errors.New("is a directory")
	// errBadName can only come from a programming mistake or a lying file system.
	errBadName = errors.New("not a single name")
)

// enter opens a directory of the platform's own inside a root.
func enter(root *os.Root, name string) (*dir, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return &dir{f: f}, nil
}

func (d *dir) fd() int { return int(d.f.Fd()) }

func (d *dir) close() { _ = d.f.Close() } // nothing is lost: directories are synced by sync

func (d *dir) sync() error { return d.f.Sync() }

func (d *dir) chmod(mode fs.FileMode) error { return d.f.Chmod(mode) }

func (d *dir) stat() (stat, error) { return statFile(d.f) }

func checkSingle(op, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return &fs.PathError{Op: op, Path: name, Err: errBadName}
	}
	return nil
}

// at runs a system call about one name of the directory.
func (d *dir) at(op, name string, call func(fd int) error) error {
	if err := checkSingle(op, name); err != nil {
		return err
	}
	if err := retry(func() error { return call(d.fd()) }); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

func (d *dir) lstat(name string) (stat, error) {
	var st unix.Stat_t
	err := d.at("lstat", name, func(fd int) error { return unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return stat{}, err
	}
	return statOf(&st), nil
}

func (d *dir) openat(name string, flags int, mode uint32) (*os.File, error) {
	var opened int
	err := d.at("open", name, func(fd int) (err error) {
		opened, err = unix.Openat(fd, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, mode)
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(opened), name), nil
}

// child opens a directory in the directory.
func (d *dir) child(name string) (*dir, error) {
	f, err := d.openat(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil, &fs.PathError{Op: "open", Path: name, Err: errNotDir}
	case err != nil:
		return nil, err
	}
	return &dir{f: f}, nil
}

// open opens a regular file that exists. A FIFO or device is not waited for and not used.
func (d *dir) open(name string, flags int) (*os.File, stat, error) {
	// Looking first keeps us from opening devices, which can act on being
	// opened; looking again after opening is what makes it safe.
	before, err := d.lstat(name)
	if err != nil {
		return nil, stat{}, err
	}
	if err := mustBeRegular(name, before); err != nil {
		return nil, stat{}, err
	}
	f, err := d.openat(name, flags, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return nil, stat{}, &fs.PathError{Op: "open", Path: name, Err: errOther}
	}
	if err != nil {
		return nil, stat{}, err
	}
	st, err := statFile(f)
	if err == nil {
		err = mustBeRegular(name, st)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, stat{}, err
	}
	return f, st, nil
}

func mustBeRegular(name string, st stat) error {
	switch {
	case st.dir:
		return &fs.PathError{Op: "open", Path: name, Err: errIsDir}
	case !st.regular:
		return &fs.PathError{Op: "open", Path: name, Err: errOther}
	}
	return nil
}

// create makes a new file; the name must be free.
func (d *dir) create(name string) (*os.File, error) {
	return d.openat(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600)
}

// openOrCreate opens a regular file for reading and writing and makes it when it is missing.
func (d *dir) openOrCreate(name string) (*os.File, stat, error) {
	for {
		f, st, err := d.open(name, unix.O_RDWR)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, st, err
		}
		f, err = d.create(name)
		if errors.Is(err, fs.ErrExist) {
			continue // somebody was faster
		}
		if err != nil {
			return nil, stat{}, err
		}
		st, err = statFile(f)
		return f, st, err
	}
}

// mkdir makes a directory; one that exists is fine.
func (d *dir) mkdir(name string, mode uint32) (made bool, err error) {
	err = d.at("mkdir", name, func(fd int) error { return unix.Mkdirat(fd, name, mode) })
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// ensure makes a directory when it is missing, and opens it.
func (d *dir) ensure(name string, mode uint32) (*dir, error) {
	made, err := d.mkdir(name, mode)
	if err != nil {
		return nil, err
	}
	if made {
		if err := d.sync(); err != nil {
			return nil, err
		}
	}
	return d.child(name)
}

// unlink removes a file, link or anything else that is not a directory; a missing one is fine.
func (d *dir) unlink(name string) error {
	return ignoreMissing(d.at("unlink", name, func(fd int) error { return unix.Unlinkat(fd, name, 0) }))
}

// unlinkBelow is unlink for a path of names.
func (d *dir) unlinkBelow(path string) error {
	first, rest, deeper := strings.Cut(path, "/")
	if !deeper {
		return d.unlink(first)
	}
	sub, err := d.child(first)
	if err != nil {
		return ignoreMissing(err)
	}
	defer sub.close()
	return sub.unlinkBelow(rest)
}

// rmdir removes an empty directory; a missing one is fine.
func (d *dir) rmdir(name string) error {
	return ignoreMissing(d.at("rmdir", name, func(fd int) error { return unix.Unlinkat(fd, name, unix.AT_REMOVEDIR) }))
}

func (d *dir) setModified(name string, nano int64) error {
	ts := []unix.Timespec{unix.NsecToTimespec(nano), unix.NsecToTimespec(nano)}
	return d.at("utimes", name, func(fd int) error {
		return unix.UtimesNanoAt(fd, name, ts, unix.AT_SYMLINK_NOFOLLOW)
	})
}

// rename moves a name into another directory, replacing a file of the new name.
func rename(from *dir, name string, to *dir, newName string) error {
	if err := checkSingle("rename", newName); err != nil {
		return err
	}
	return from.at("rename", name, func(fd int) error { return unix.Renameat(fd, name, to.fd(), newName) })
}

func renameNewByLooking(from *dir, name string, to *dir, newName string) error {
	if _, err := to.lstat(newName); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = unix.EEXIST
		}
		return err
	}
	return rename(from, name, to, newName)
}

// each gives the names in the directory, in no order, without keeping them all.
// It starts from the beginning each time.
func (d *dir) each(visit func(name string) error) error {
	if _, err := d.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	for {
		names, err := d.f.Readdirnames(1024)
		for _, name := range names {
			if err := visit(name); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || (err == nil && len(names) == 0) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// names gives all names in bytewise order.
func (d *dir) names() ([]string, error) {
	var all []string
	err := d.each(func(name string) error { all = append(all, name); return nil })
	slices.Sort(all)
	return all, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// openSelf opens the directory itself anew; "." can't be a link.
func openSelf(d *dir) (*dir, error) {
	var opened int
	err := retry(func() (err error) {
		opened, err = unix.Openat(d.fd(), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &dir{f: os.NewFile(uintptr(opened), d.f.Name())}, nil
}

// chmodChild lets the owner into a directory that forbids it. The kernel has no
// chmod that doesn't follow links on every system, so it is done only where
// asking for it is known to refuse them.
func (d *dir) chmodChild(name string) error {
	return d.at("chmod", name, func(fd int) error {
		return unix.Fchmodat(fd, name, privateMode, unix.AT_SYMLINK_NOFOLLOW)
	})
}

func isNotEmpty(err error) bool { return errors.Is(err, unix.ENOTEMPTY) }
