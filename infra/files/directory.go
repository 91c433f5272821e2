package files

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
)

// Directory gives the identity of the folder at a path: it stays while the
// folder is renamed and written to, and no other folder has it, not even one
// that is made at the same path right after this one was removed. It is empty
// when there is no folder.
func (s *Store) Directory(ctx context.Context, tenant, space uuid.UUID, p storage.Path) (string, error) {
	if p.IsRoot() {
		return "", isFolder(p)
	}
	top, err := s.space(ctx, tenant, space)
	if err != nil {
		return "", err
	}
	defer top.close()
	pl, err := locate(top, p)
	if fault.Is(err, fault.CodeNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer pl.close()
	if !pl.found || !pl.stat.dir {
		return "", nil
	}
	return identityOf(pl.stat, pl.parent, pl.name), nil
}

// identityOf tells folders apart. Numbers of inodes are used again at once, so
// the time at which it was made counts, too.
func identityOf(st stat, in *dir, name string) string {
	return fmt.Sprintf("%d:%d:%d", st.device, st.inode, born(in, name))
}

// RemoveDirectory removes the folder at a path with everything in it, when it
// is the one of an identity; another one, or none, is no error, and stays. The
// id is the removal's own, such as that of its operation: a call with the same
// id goes on with freeing what an earlier one took away.
func (s *Store) RemoveDirectory(ctx context.Context, tenant, space uuid.UUID, p storage.Path, identity string, id uuid.UUID, progress func(Progress)) (Progress, error) {
	if p.IsRoot() {
		return Progress{}, isFolder(p)
	}
	return s.remove(ctx, tenant, space, p, id.String()+".", func(st stat, in *dir, name string) bool {
		return st.dir && identityOf(st, in, name) == identity
	}, progress)
}
