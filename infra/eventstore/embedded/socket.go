package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// maxSocketPath is what a unix socket's address has room for.
const maxSocketPath = 107

// listen opens the socket. Whoever can connect may read and write the whole
// log, so the socket and its directory belong to one user alone.
func listen(ctx context.Context, path string) (net.Listener, error) {
	switch {
	case path == "":
		return nil, errors.New("the event store needs a path for its socket")
	case len(path) > maxSocketPath:
		return nil, fmt.Errorf("the event store's socket path has %d bytes, at most %d are possible: %s", len(path), maxSocketPath, path)
	case !filepath.IsAbs(path):
		return nil, fmt.Errorf("the event store's socket path must be absolute: %s", path)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of the event store's socket: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("look at the directory of the event store's socket: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the directory of the event store's socket must be open to its owner only (mode 0700, it has %#o): %s", info.Mode().Perm(), dir)
	}
	if err := RemoveStaleSocket(path); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on the event store's socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("protect the event store's socket: %w", err), l.Close())
	}
	return l, nil
}

// RemoveStaleSocket takes away the socket of a process that was killed. Anything
// but a socket stays and is an error.
func RemoveStaleSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at an earlier run's socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("a file that is no socket stands where the socket must be: %s", path)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove an earlier run's socket: %w", err)
	}
	return nil
}
