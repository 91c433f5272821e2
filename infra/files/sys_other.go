//go:build !linux

package files

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func modeAndDevice(st *unix.Stat_t) (mode uint32, device uint64) {
	return uint32(st.Mode), uint64(st.Dev)
}

func deviceAndChanged(st *syscall.Stat_t) (device uint64, changed int64) {
	return uint64(st.Dev), st.Ctimespec.Nano()
}

func cloneFile(_, _ *os.File) error { return errors.ErrUnsupported }

func born(*dir, string) int64 { return 0 }

func renameNew(from *dir, name string, to *dir, newName string) error {
	return renameNewByLooking(from, name, to, newName)
}

func syncAround(d *dir) error {
	return errors.Join(unix.Sync(), d.sync())
}
