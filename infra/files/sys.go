package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stat is what is asked of a file, from the file itself and never through a link.
type stat struct {
	dir, regular, exec bool
	size               int64
	modified, changed  int64 // nanoseconds; changed is the inode's own time, which nobody can set
	device, inode      uint64
}

func (s stat) modTime() time.Time { return time.Unix(0, s.modified) }

// version names the content of a regular file: nobody changes that without
// changing the time that the kernel alone sets.
func (s stat) version() string {
	return fmt.Sprintf("%d:%d:%d:%d", s.device, s.inode, s.changed, s.size)
}

// VersionOf is the version of an open file, by what its Stat gives; empty where
// that does not tell enough.
func VersionOf(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return ""
	}
	device, changed := deviceAndChanged(st)
	return stat{device: device, inode: st.Ino, changed: changed, size: info.Size()}.version()
}

// same tells whether two looks saw the same unchanged file.
func (s stat) same(o stat) bool { return s == o }

// sameFile tells whether two looks saw the same file, changed or not.
func (s stat) sameFile(o stat) bool { return s.device == o.device && s.inode == o.inode }

func statOf(st *unix.Stat_t) stat {
	mode, device := modeAndDevice(st)
	kind := mode & unix.S_IFMT
	return stat{
		dir:      kind == unix.S_IFDIR,
		regular:  kind == unix.S_IFREG,
		exec:     kind == unix.S_IFREG && mode&0o100 != 0,
		size:     st.Size,
		modified: st.Mtim.Nano(),
		changed:  st.Ctim.Nano(),
		device:   device,
		inode:    st.Ino,
	}
}

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func statFile(f *os.File) (stat, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(int(f.Fd()), &st) }); err != nil {
		return stat{}, &fs.PathError{Op: "fstat", Path: f.Name(), Err: err}
	}
	return statOf(&st), nil
}

// lock takes the file for this holder alone, across processes, or says that
// somebody else has it. Closing the file gives it back, also after a crash.
func lock(f *os.File) (held bool, err error) {
	err = retry(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func isFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}
