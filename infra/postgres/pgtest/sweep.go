package pgtest

import (
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const dirPrefix = "tallyard-pgtest-"

// sweep removes directories of test binaries that were killed: those whose
// lock nobody holds any more. Their servers have ended with them. A young one
// is left alone: another binary may be making it just now.
func sweep(age time.Duration) {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	if err != nil {
		return // the pattern is well-formed
	}
	for _, dir := range dirs {
		if fi, err := os.Lstat(dir); err != nil || !fi.IsDir() || time.Since(fi.ModTime()) < age {
			continue
		}
		if unowned(filepath.Join(dir, "pg", "lock")) {
			_ = os.RemoveAll(dir) // another sweeper may be at it too
		}
	}
}

func unowned(lock string) bool {
	f, err := os.OpenFile(lock, os.O_RDWR, 0) //nolint:gosec // G304: a name from the glob above
	if os.IsNotExist(err) {
		return true
	}
	if err != nil {
		return false // somebody else's
	}
	defer func() { _ = f.Close() }() // only opened to look
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
