package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/google/uuid"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
)

// FillCache makes the cache of a data set equal to a folder of a space, and
// gives what it holds then. What has not changed since it was filled last is
// not copied again, what the folder no longer has goes, and so does what was
// unpacked. A fill that was stopped, by an error, the context or a crash, is gone
// on with by the next call; until it has ended there is no cache to be used.
//
// What a copy of the folder for publication would refuse is refused here, too.
func (s *Store) FillCache(ctx context.Context, tenant, dataSet, space uuid.UUID, folder storage.Path, progress func(Progress)) (files, bytes int64, err error) {
	work, j, err := s.cache(tenant, dataSet)
	if err != nil {
		return 0, 0, err
	}
	defer work.close()
	defer j.close()
	top, err := s.space(ctx, tenant, space)
	if err != nil {
		return 0, 0, err
	}
	defer top.close()
	src, err := descend(top, folder)
	if fault.Is(err, fault.CodeNotFound) {
		return 0, 0, sourceGone(folder)
	}
	if err != nil {
		return 0, 0, err
	}
	defer src.close()
	c := s.copier(ctx, folder, work, dataSet.String(), j, progress)
	c.modes = modes{file: publicFile, program: publicProgram, folder: publicFolder}
	if err := c.takeCache(); err != nil {
		return 0, 0, explain("cache", folder.String(), err)
	}
	partial, err := c.run(src)
	if err == nil {
		defer partial.close()
	}
	if (err == nil || errors.Is(err, errSourceChanged)) && !stillThere(top, folder, src) {
		err = sourceGone(folder)
	}
	if err == nil {
		err = c.giveCache(partial)
	}
	return c.done.TotalFiles, c.done.TotalBytes, err
}

// cache opens where a tenant's caches lie, and takes the journal of one: it
// stays with the cache, and tells the next fill what was copied from what.
func (s *Store) cache(tenant, dataSet uuid.UUID) (work *dir, j *journal, err error) {
	if s.caches == nil {
		return nil, nil, errors.New("files: no directory of caches is configured")
	}
	if work, err = ensureTenant(s.caches, tenant); err != nil {
		return nil, nil, fmt.Errorf("files: cache: %w", err)
	}
	if j, err = takeJournal(work, dataSet.String()+".journal"); err != nil {
		work.close()
		return nil, nil, explain("cache", "", err)
	}
	return work, j, nil
}

// takeCache makes a cache that is there the beginning of the next one.
func (c *copier) takeCache() error {
	if err := c.work.unlink(unpackedName(c.name)); err != nil {
		return err
	}
	err := renameNew(c.work, c.name, c.work, c.partialName())
	if errors.Is(err, fs.ErrExist) { // half a fill beside a whole one can only be an old one
		if err := discard(c.ctx, c.work, c.partialName(), c.work, c.trashPrefix()); err != nil {
			return err
		}
		err = renameNew(c.work, c.name, c.work, c.partialName())
	}
	return ignoreMissing(err)
}

// giveCache lets a complete cache be used.
func (c *copier) giveCache(partial *dir) error {
	err := c.flush(partial)
	if err == nil {
		err = c.store.syncAround(c.work)
	}
	if err == nil {
		err = renameNew(c.work, c.partialName(), c.work, c.name)
	}
	return explain("cache", c.scan.inSpace(""), errors.Join(err, c.work.sync()))
}

// ClearCache removes a cache with all that belongs to it, whole or half filled.
// Nothing there is no error.
func (s *Store) ClearCache(ctx context.Context, tenant, dataSet uuid.UUID, progress func(Progress)) (Progress, error) {
	work, j, err := s.cache(tenant, dataSet)
	if err != nil {
		return Progress{}, err
	}
	defer work.close()
	defer j.close()
	name := dataSet.String()
	for _, part := range []string{name, name + ".partial", name + ".unpacking"} {
		if err := ignoreMissing(moveAway(work, part, work, name+".trash."+uuid.NewString())); err != nil {
			return Progress{}, explain("clear cache", "", err)
		}
	}
	done, err := emptyTrash(ctx, work, name+".trash.", "", progress)
	if err != nil {
		return done, err
	}
	return done, explain("clear cache", "", errors.Join(work.unlink(unpackedName(name)), j.remove(), work.sync()))
}
