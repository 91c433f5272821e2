package files

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// modeAndDevice have other types on other systems.
func modeAndDevice(st *unix.Stat_t) (mode uint32, device uint64) { return st.Mode, st.Dev }

func deviceAndChanged(st *syscall.Stat_t) (device uint64, changed int64) {
	return st.Dev, st.Ctim.Nano()
}

// cloneFile makes dst share src's blocks, where the file system can.
func cloneFile(dst, src *os.File) error {
	return retry(func() error { return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) })
}

// born is when a name of a directory was made, in nanoseconds; 0 where the file
// system does not keep that.
func born(in *dir, name string) int64 {
	var st unix.Statx_t
	err := retry(func() error {
		return unix.Statx(in.fd(), name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st)
	})
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
}

// renameNew renames, but never onto something that exists.
func renameNew(from *dir, name string, to *dir, newName string) error {
	err := retry(func() error {
		return unix.Renameat2(from.fd(), name, to.fd(), newName, unix.RENAME_NOREPLACE)
	})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return renameNewByLooking(from, name, to, newName)
	}
	return err
}

// syncAround makes everything written to d's file system so far durable: one
// call for thousands of small files, where an fsync for each would take minutes.
func syncAround(d *dir) error {
	return retry(func() error { return unix.Syncfs(d.fd()) })
}
