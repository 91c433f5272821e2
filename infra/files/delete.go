package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"strings"

	"github.com/google/uuid"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
)

// Progress of a long operation. Totals are what was counted at its start.
type Progress struct {
	DoneFiles, TotalFiles int64
	DoneBytes, TotalBytes int64
	// Of what is done: taken over from an earlier try instead of being done again.
	ReusedFiles, ReusedBytes int64
}

func report(progress func(Progress), p Progress) {
	if progress != nil {
		p.TotalFiles, p.TotalBytes = max(p.TotalFiles, p.DoneFiles), max(p.TotalBytes, p.DoneBytes)
		progress(p)
	}
}

// Delete removes a file, or a folder with everything in it. What is deleted
// vanishes from the space at once and as a whole; a Delete that was interrupted
// while it freed the space is finished by the next one of the same path. Nothing
// there is no error. A link is removed itself, never what it points to.
//
// The function progress is called often and must return quickly; it may be nil.
func (s *Store) Delete(ctx context.Context, tenant, space uuid.UUID, p storage.Path, progress func(Progress)) (Progress, error) {
	if p.IsRoot() {
		return Progress{}, isFolder(p)
	}
	return s.remove(ctx, tenant, space, p, keyOf(p.String())+".", func(stat, *dir, string) bool { return true }, progress)
}

// remove moves what is wanted to the trash, and frees what lies there under the mark.
func (s *Store) remove(ctx context.Context, tenant, space uuid.UUID, p storage.Path, mark string, wanted func(stat, *dir, string) bool, progress func(Progress)) (Progress, error) {
	top, err := s.space(ctx, tenant, space)
	if err != nil {
		return Progress{}, err
	}
	defer top.close()
	trash, err := hidden(top, trashArea)
	if err != nil {
		return Progress{}, explain("delete", p.String(), err)
	}
	defer trash.close()
	if err := moveToTrash(top, p, trash, mark+uuid.NewString(), wanted); err != nil {
		return Progress{}, err
	}
	done, err := emptyTrash(ctx, trash, mark, p.String(), progress)
	s.give(ctx, tenant, space, done.DoneBytes)
	return done, err
}

// keyOf is a file name for any path.
func keyOf(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:16])
}

func moveToTrash(top *dir, p storage.Path, trash *dir, name string, wanted func(stat, *dir, string) bool) error {
	pl, err := locate(top, p)
	if fault.Is(err, fault.CodeNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer pl.close()
	if !pl.found || !wanted(pl.stat, pl.parent, pl.name) {
		return nil
	}
	if err := moveAway(pl.parent, pl.name, trash, name); err != nil {
		return explain("delete", p.String(), ignoreMissing(err))
	}
	return explain("delete", p.String(), errors.Join(trash.sync(), pl.parent.sync()))
}

// moveAway is rename, also for a folder that its own permissions hold in place.
func moveAway(from *dir, name string, to *dir, newName string) error {
	err := rename(from, name, to, newName)
	if errors.Is(err, fs.ErrPermission) {
		if from.chmodChild(name) == nil {
			err = rename(from, name, to, newName)
		}
	}
	return err
}

// emptyTrash removes what lies in the trash under names with the prefix.
func emptyTrash(ctx context.Context, trash *dir, prefix, what string, progress func(Progress)) (Progress, error) {
	r := remover{ctx: ctx, trash: trash, progress: progress, prefix: prefix}
	names, err := trash.names()
	if err != nil {
		return Progress{}, explain("delete", what, err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			if err := r.count(trash, name, 0); err != nil {
				return r.Progress, explain("delete", what, err)
			}
			r.todo = append(r.todo, name)
		}
	}
	for len(r.todo) > 0 {
		name := r.todo[len(r.todo)-1]
		r.todo = r.todo[:len(r.todo)-1]
		if err := r.remove(trash, name, 0); err != nil {
			return r.Progress, explain("delete", what, err)
		}
	}
	return r.Progress, nil
}

// remover removes trees of any depth with few open directories: what lies
// deeper than maxOpen is first moved to the top of the trash.
type remover struct {
	Progress
	ctx      context.Context // lives for one call
	trash    *dir
	prefix   string
	todo     []string
	progress func(Progress)
}

const maxOpen = 24

// count adds up what will be removed, down to the depth that people can make.
func (r *remover) count(in *dir, name string, depth int) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	st, err := in.lstat(name)
	if err != nil {
		return ignoreMissing(err)
	}
	r.TotalFiles++
	if !st.dir {
		r.TotalBytes += sizeOf(st)
		return nil
	}
	if depth > storage.MaxPathDepth {
		return nil
	}
	d, err := openForRemoval(in, name)
	if err != nil {
		return ignoreMissing(err)
	}
	defer d.close()
	return d.each(func(kid string) error { return r.count(d, kid, depth+1) })
}

func sizeOf(st stat) int64 {
	if st.regular {
		return st.size
	}
	return 0
}

func (r *remover) remove(in *dir, name string, depth int) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	st, err := in.lstat(name)
	if err != nil {
		return ignoreMissing(err)
	}
	switch {
	case !st.dir:
		err = in.unlink(name)
	case depth >= maxOpen:
		moved := r.prefix + uuid.NewString()
		r.todo = append(r.todo, moved)
		return moveAway(in, name, r.trash, moved)
	default:
		err = r.removeFolder(in, name, depth)
	}
	if err != nil {
		return err
	}
	r.DoneFiles++
	r.DoneBytes += sizeOf(st)
	report(r.progress, r.Progress)
	return nil
}

func (r *remover) removeFolder(in *dir, name string, depth int) error {
	d, err := openForRemoval(in, name)
	if err != nil {
		return ignoreMissing(err)
	}
	defer d.close()
	// Removing while reading may skip names on some file systems, and a
	// workload may still add some: go round until it is empty, but not for ever.
	for range 100 {
		if err := d.each(func(kid string) error { return r.remove(d, kid, depth+1) }); err != nil {
			return err
		}
		if err := in.rmdir(name); !errors.Is(err, fs.ErrExist) && !isNotEmpty(err) {
			return err
		}
	}
	return busy(quote(name) + " is still being written to")
}

// openForRemoval opens a folder whose permissions may forbid it.
func openForRemoval(in *dir, name string) (*dir, error) {
	d, err := in.child(name)
	if errors.Is(err, fs.ErrPermission) {
		if err := in.chmodChild(name); err != nil {
			return nil, err
		}
		d, err = in.child(name)
	}
	if err != nil {
		return nil, err
	}
	if err := d.chmod(privateMode); err != nil && !errors.Is(err, fs.ErrPermission) {
		d.close()
		return nil, err
	}
	return d, nil
}
