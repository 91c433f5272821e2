package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"tallyard/domain/storage"
)

// receipt says which folder a finished CopyIn made, so that a retry of the same
// copy whose end nobody recorded is told from a second copy to a taken place.
type receipt struct {
	Device, Inode uint64
	Manifest      Manifest
}

// CopyIn copies a published artefact into a space as a new folder, with what is
// missing above it. The id is the copy's own, such as that of its operation: a
// call with the same id continues a copy that was stopped, and answers one that
// was finished without doing anything. The folder appears as a whole; one that
// exists is never touched. What is copied is checked against the manifest.
func (s *Store) CopyIn(ctx context.Context, tenant, artefact, space uuid.UUID, folder storage.Path, id uuid.UUID, progress func(Progress)) (Manifest, error) {
	if folder.IsRoot() {
		return Manifest{}, taken(folder)
	}
	top, err := s.space(ctx, tenant, space)
	if err != nil {
		return Manifest{}, err
	}
	defer top.close()
	work, err := hidden(top, copiesArea)
	if err != nil {
		return Manifest{}, explain("copy", "", err)
	}
	defer work.close()
	j, err := takeJournal(work, id.String()+".journal")
	if err != nil {
		return Manifest{}, explain("copy", "", err)
	}
	defer j.close()
	m, finished, err := s.targetFree(top, work, id, folder)
	if err != nil || finished {
		return m, errors.Join(err, j.remove())
	}
	published, src, err := s.artefact(ctx, tenant, artefact)
	if err != nil {
		return Manifest{}, err
	}
	defer published.close()
	defer src.close()
	c := s.copier(ctx, storage.Root, work, id.String(), j, progress)
	c.scan.maxFiles, c.scan.maxBytes = 1<<62, 1<<62 // it was let in when it was published
	c.modes = modes{file: fileMode, program: programMode, folder: folderMode}
	room := s.meter(ctx, tenant, space)
	c.room = func(bytes int64) error { return room.take(bytes, bytes) }
	// Counted as a whole at the end: an earlier try may have left some of it.
	defer s.recount(ctx, tenant, space)
	partial, err := c.run(src)
	if err != nil {
		return Manifest{}, err
	}
	defer partial.close()
	m, err = c.checkManifest(published, artefact)
	if err != nil {
		return Manifest{}, err
	}
	return m, c.deliver(top, partial, folder, m)
}

// targetFree looks whether the folder is there, and whether this very copy made it.
func (s *Store) targetFree(top, work *dir, id uuid.UUID, folder storage.Path) (m Manifest, finished bool, err error) {
	there, err := statThere(top, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, false, nil
	}
	if err != nil {
		return Manifest{}, false, err
	}
	r, err := readReceipt(work, id)
	if err == nil && r.Inode == there.inode && r.Device == there.device && there.dir {
		return r.Manifest, true, nil
	}
	return Manifest{}, false, errors.Join(taken(folder), ignoreMissing(err))
}

func statThere(top *dir, p storage.Path) (stat, error) {
	parent, err := descend(top, p.Dir())
	if err != nil {
		return stat{}, errors.Join(fs.ErrNotExist, err)
	}
	defer parent.close()
	_, st, err := parent.lookup(p.Base())
	return st, err
}

func (c *copier) checkManifest(published *dir, artefact uuid.UUID) (Manifest, error) {
	copied, err := writeManifest(io.Discard, c.items)
	if err != nil {
		return Manifest{}, err
	}
	stored := make(map[string]item, len(c.items))
	was, err := readStored(published, artefact.String(), func(i item) { stored[i.path] = i })
	if err == nil && was.Fingerprint != copied.Fingerprint {
		err = fmt.Errorf("%w: %v", ErrArtefactChanged, differences(stored, c.items))
	}
	return copied, err
}

// deliver gives the complete copy its place.
func (c *copier) deliver(top, partial *dir, folder storage.Path, m Manifest) error {
	parent, err := build(top, folder.Dir())
	if err != nil {
		return err
	}
	defer parent.close()
	// In another Unicode form the name may be taken although the kernel would say it is free.
	if _, _, err := parent.lookup(folder.Base()); err == nil {
		return taken(folder)
	}
	if err := c.writeReceipt(partial, m); err != nil {
		return explain("copy", folder.String(), err)
	}
	if err := c.store.syncAround(c.work); err != nil {
		return explain("copy", folder.String(), err)
	}
	err = renameNew(c.work, c.partialName(), parent, folder.Base())
	if errors.Is(err, fs.ErrExist) {
		return taken(folder)
	}
	if err == nil {
		err = errors.Join(parent.sync(), c.work.sync())
	}
	if err == nil {
		err = c.journal.remove()
	}
	return explain("copy", folder.String(), err)
}

func receiptName(id string) string { return id + ".receipt" }

func (c *copier) writeReceipt(made *dir, m Manifest) (err error) {
	st, err := made.stat()
	if err != nil {
		return err
	}
	text, err := json.Marshal(receipt{Device: st.device, Inode: st.inode, Manifest: m})
	if err != nil {
		return err
	}
	if err := c.work.unlink(receiptName(c.name)); err != nil {
		return err
	}
	f, err := c.work.create(receiptName(c.name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(text)
	return err
}

func readReceipt(work *dir, id uuid.UUID) (r receipt, err error) {
	f, _, err := work.open(receiptName(id.String()), unix.O_RDONLY)
	if err != nil {
		return receipt{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	err = json.NewDecoder(io.LimitReader(f, 1<<16)).Decode(&r)
	return r, err
}

// DiscardCopyIn removes what an unfinished CopyIn left. The folder of a finished
// one stays. Nothing there is no error.
func (s *Store) DiscardCopyIn(ctx context.Context, tenant, space, id uuid.UUID) error {
	top, err := s.space(ctx, tenant, space)
	if err != nil {
		return err
	}
	defer top.close()
	work, err := hidden(top, copiesArea)
	if err != nil {
		return explain("discard", "", err)
	}
	defer work.close()
	j, err := takeJournal(work, id.String()+".journal")
	if err != nil {
		return explain("discard", "", err)
	}
	defer j.close()
	defer s.recount(ctx, tenant, space)
	if err := discardCopy(ctx, work, id.String()); err != nil {
		return err
	}
	return explain("discard", "", errors.Join(work.unlink(receiptName(id.String())), j.remove(), work.sync()))
}
