package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// modeAndDevice have other types on other systems.
func modeAndDevice(st *unix.Stat_t) (mode uint32, device uint64) { return st.Mode, st.Dev }

// cloneFile makes dst share src's blocks, where the file system can.
func cloneFile(dst, src *os.File) error {
	return retry(func() error { return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) })
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
