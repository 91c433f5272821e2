package files

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"tallyard/domain/storage"
)

// OpenRead opens a file of a space. The information is that of the file that
// was opened, whatever happens to its name afterwards. The caller closes it.
func (s *Store) OpenRead(ctx context.Context, tenant, space uuid.UUID, p storage.Path) (io.ReadSeekCloser, fs.FileInfo, error) {
	top, err := s.space(ctx, tenant, space)
	if err != nil {
		return nil, nil, err
	}
	defer top.close()
	return openRead(top, p)
}

func openRead(top *dir, p storage.Path) (io.ReadSeekCloser, fs.FileInfo, error) {
	if p.IsRoot() {
		return nil, nil, isFolder(p)
	}
	pl, err := locate(top, p)
	if err != nil {
		return nil, nil, err
	}
	defer pl.close()
	f, _, err := pl.parent.open(pl.name, unix.O_RDONLY)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, notFound(p)
	case errors.Is(err, errIsDir):
		return nil, nil, isFolder(p)
	case err != nil:
		return nil, nil, explain("open", p.String(), err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close() // only read
		return nil, nil, explain("stat", p.String(), err)
	}
	return f, info, nil
}

// MakeDir makes a folder and what is missing above it; one that exists is fine.
func (s *Store) MakeDir(ctx context.Context, tenant, space uuid.UUID, p storage.Path) error {
	top, err := s.space(ctx, tenant, space)
	if err != nil {
		return err
	}
	defer top.close()
	d, err := build(top, p)
	if err != nil {
		return err
	}
	d.close()
	return nil
}
