package files

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/storage"
)

// Tally counts the files of a folder and their bytes. It refuses what a copy of
// the folder would refuse.
func (s *Store) Tally(ctx context.Context, tenant, space uuid.UUID, folder storage.Path) (files, bytes int64, err error) {
	top, err := s.space(ctx, tenant, space)
	if err != nil {
		return 0, 0, err
	}
	defer top.close()
	d, err := openFolder(top, folder)
	if err != nil {
		return 0, 0, err
	}
	defer d.close()
	look := scanner{ctx: ctx, at: folder, maxFiles: s.maxFiles, maxBytes: s.maxBytes}
	_, err = look.scan(d, "", 0)
	return look.plainFiles, look.bytes, err
}
