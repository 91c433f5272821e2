package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
)

// CopyOut copies a folder of a space to the published artefacts, read-only and
// fingerprinted. The artefact is there as a whole or not at all. A copy that was
// stopped, by an error, the context or a crash, is continued by the next call
// with the same artefact; one that is there already is answered from its manifest.
//
// Publishing the folder is refused when it is empty, holds links or special
// files, or changes while it is copied. When it is missing the error is
// ErrSourceGone. The function progress is called often and must return quickly;
// it may be nil.
func (s *Store) CopyOut(ctx context.Context, tenant, space uuid.UUID, folder storage.Path, artefact uuid.UUID, progress func(Progress)) (Manifest, error) {
	work, err := ensureTenant(s.published, tenant)
	if err != nil {
		return Manifest{}, fmt.Errorf("files: publish: %w", err)
	}
	defer work.close()
	name := artefact.String()
	j, err := takeJournal(work, name+".journal")
	if err != nil {
		return Manifest{}, explain("publish", "", err)
	}
	defer j.close()
	if m, found, err := storedManifest(work, name); found || err != nil {
		return m, errors.Join(err, j.remove())
	}
	top, err := s.space(ctx, tenant, space)
	if err != nil {
		return Manifest{}, err
	}
	defer top.close()
	src, err := descend(top, folder)
	if fault.Is(err, fault.CodeNotFound) {
		return Manifest{}, sourceGone(folder)
	}
	if err != nil {
		return Manifest{}, err
	}
	defer src.close()
	c := s.copier(ctx, folder, work, name, j, progress)
	c.modes = modes{file: publicFile, program: publicProgram, folder: publicFolder}
	partial, err := c.run(src)
	if err == nil {
		defer partial.close()
	}
	if (err == nil || errors.Is(err, errSourceChanged)) && !stillThere(top, folder, src) {
		err = sourceGone(folder)
	}
	if err != nil {
		return Manifest{}, err
	}
	return c.publish()
}

func (s *Store) copier(ctx context.Context, from storage.Path, work *dir, name string, j *journal, progress func(Progress)) *copier {
	return &copier{
		ctx: ctx, store: s, work: work, name: name, journal: j, progress: progress,
		scan: &scanner{ctx: ctx, at: from, maxFiles: s.maxFiles, maxBytes: s.maxBytes},
	}
}

// stillThere tells whether the path leads to the same folder as before.
func stillThere(top *dir, folder storage.Path, open *dir) bool {
	now, err := descend(top, folder)
	if err != nil {
		return false
	}
	defer now.close()
	a, errA := now.stat()
	b, errB := open.stat()
	return errA == nil && errB == nil && a.sameFile(b)
}

// publish gives the complete copy its name. The manifest is there before it.
func (c *copier) publish() (Manifest, error) {
	m, err := c.writeManifest()
	if err == nil {
		err = c.store.syncAround(c.work)
	}
	if err == nil {
		err = renameNew(c.work, c.partialName(), c.work, c.name)
	}
	if err == nil {
		err = c.work.sync()
	}
	if err == nil {
		err = c.journal.remove()
	}
	if err != nil {
		return Manifest{}, explain("publish", c.scan.inSpace(""), err)
	}
	return m, nil
}

func (c *copier) writeManifest() (m Manifest, err error) {
	name := manifestName(c.name)
	if err := c.work.unlink(name); err != nil { // of a try that got this far
		return Manifest{}, err
	}
	f, err := c.work.create(name)
	if err != nil {
		return Manifest{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if m, err = writeManifest(f, c.items); err != nil {
		return Manifest{}, err
	}
	return m, errors.Join(f.Chmod(publicFile), f.Sync())
}

func manifestName(artefact string) string { return artefact + ".manifest" }

// storedManifest reads the manifest of an artefact that is complete.
func storedManifest(work *dir, artefact string) (m Manifest, found bool, err error) {
	st, err := work.lstat(artefact)
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, false, nil
	}
	if err == nil && !st.dir {
		err = errNotDir
	}
	if err != nil {
		return Manifest{}, false, fmt.Errorf("files: published artefact: %w", err)
	}
	m, err = readStored(work, artefact, nil)
	return m, err == nil, err
}

func readStored(work *dir, artefact string, visit func(item)) (m Manifest, err error) {
	var f *os.File
	if f, _, err = work.open(manifestName(artefact), unix.O_RDONLY); err != nil {
		return Manifest{}, fmt.Errorf("%w: %w", ErrArtefactChanged, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if m, err = readManifest(f, visit); err != nil {
		return Manifest{}, fmt.Errorf("%w: %w", ErrArtefactChanged, err)
	}
	return m, nil
}

// DiscardPartial removes what an unfinished CopyOut left, so that nothing of a
// cancelled publication remains. A complete artefact stays. Nothing there is no error.
func (s *Store) DiscardPartial(ctx context.Context, tenant, artefact uuid.UUID) error {
	work, err := enter(s.published, tenant.String())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("files: discard: %w", err)
	}
	defer work.close()
	name := artefact.String()
	j, err := takeJournal(work, name+".journal")
	if err != nil {
		return explain("discard", "", err)
	}
	defer j.close()
	if err := discardCopy(ctx, work, name); err != nil {
		return err
	}
	_, found, err := storedManifest(work, name)
	if err == nil && !found {
		err = work.unlink(manifestName(name))
	}
	return explain("discard", "", errors.Join(err, j.remove(), work.sync()))
}

// discardCopy removes a partial copy and what is left of removing an earlier one.
func discardCopy(ctx context.Context, work *dir, name string) error {
	return discard(ctx, work, name+".partial", work, name+".trash.")
}
