package files

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
)

// artefact opens the folder that holds a tenant's artefacts and the artefact in it.
func (s *Store) artefact(ctx context.Context, tenant, artefact uuid.UUID) (work, top *dir, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	work, err = enter(s.published, tenant.String())
	if err == nil {
		if top, err = work.child(artefact.String()); err == nil {
			return work, top, nil
		}
		work.close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fault.New(fault.NotFound, fault.CodeNotFound, "These published files don't exist; list what is published.")
	}
	return nil, nil, fmt.Errorf("files: open artefact: %w", err)
}

// ArtefactManifest tells what an artefact was fixed to hold when it was published.
func (s *Store) ArtefactManifest(ctx context.Context, tenant, artefact uuid.UUID) (Manifest, error) {
	work, top, err := s.artefact(ctx, tenant, artefact)
	if err != nil {
		return Manifest{}, err
	}
	defer work.close()
	defer top.close()
	return readStored(work, artefact.String(), nil)
}

// OpenArtefact opens a published file.
func (s *Store) OpenArtefact(ctx context.Context, tenant, artefact uuid.UUID, p storage.Path) (io.ReadSeekCloser, fs.FileInfo, error) {
	work, top, err := s.artefact(ctx, tenant, artefact)
	if err != nil {
		return nil, nil, err
	}
	defer work.close()
	defer top.close()
	return openRead(top, p)
}

// ListArtefact is [Store.List] for a folder of an artefact.
func (s *Store) ListArtefact(ctx context.Context, tenant, artefact uuid.UUID, folder storage.Path, after string, limit int) (Page, error) {
	work, top, err := s.artefact(ctx, tenant, artefact)
	if err != nil {
		return Page{}, err
	}
	defer work.close()
	defer top.close()
	return list(ctx, top, folder, after, limit)
}

// RemoveArtefact removes a published artefact, or what is left of one. It is
// gone for readers at once; nothing there is no error.
func (s *Store) RemoveArtefact(ctx context.Context, tenant, artefact uuid.UUID, progress func(Progress)) (Progress, error) {
	work, err := enter(s.published, tenant.String())
	if errors.Is(err, fs.ErrNotExist) {
		return Progress{}, nil
	}
	if err != nil {
		return Progress{}, fmt.Errorf("files: remove artefact: %w", err)
	}
	defer work.close()
	name := artefact.String()
	j, err := takeJournal(work, name+".journal")
	if err != nil {
		return Progress{}, explain("remove artefact", "", err)
	}
	defer j.close()
	prefix := name + ".trash."
	for _, part := range []string{name, name + ".partial"} {
		if err := ignoreMissing(moveAway(work, part, work, prefix+uuid.NewString())); err != nil {
			return Progress{}, explain("remove artefact", "", err)
		}
	}
	if err := errors.Join(work.unlink(manifestName(name)), work.sync()); err != nil {
		return Progress{}, explain("remove artefact", "", err)
	}
	done, err := emptyTrash(ctx, work, prefix, "", progress)
	if err != nil {
		return done, err
	}
	return done, explain("remove artefact", "", errors.Join(j.remove(), work.sync()))
}

// VerifyArtefact reads everything that was published and computes the
// fingerprint anew. When it isn't what the stored manifest says the error is
// ErrArtefactChanged and names the first paths that differ.
func (s *Store) VerifyArtefact(ctx context.Context, tenant, artefact uuid.UUID, progress func(Progress)) (Manifest, error) {
	work, top, err := s.artefact(ctx, tenant, artefact)
	if err != nil {
		return Manifest{}, err
	}
	defer work.close()
	defer top.close()
	c := s.copier(ctx, storage.Root, work, artefact.String(), nil, progress)
	c.scan.maxFiles, c.scan.maxBytes = 1<<62, 1<<62 // the limits of today don't make what is there wrong
	nodes, err := c.scan.scan(top, "", 0)
	if err != nil {
		return Manifest{}, fmt.Errorf("%w: %w", ErrArtefactChanged, err)
	}
	c.done.TotalFiles, c.done.TotalBytes = c.scan.plainFiles, c.scan.bytes
	if err := c.hashFolder(top, nodes, ""); err != nil {
		return Manifest{}, err
	}
	now, err := writeManifest(io.Discard, c.items)
	if err != nil {
		return Manifest{}, err
	}
	stored := make(map[string]item, len(c.items))
	was, err := readStored(work, artefact.String(), func(i item) { stored[i.path] = i })
	if err == nil && was.Fingerprint != now.Fingerprint {
		err = fmt.Errorf("%w: %s", ErrArtefactChanged, strings.Join(differences(stored, c.items), ", "))
	}
	return now, err
}

func (c *copier) hashFolder(d *dir, nodes []*node, path string) error {
	for _, n := range nodes {
		here := below(path, n.name)
		var err error
		switch {
		case !n.stat.dir:
			err = c.hashFile(d, n, here)
		case len(n.kids) == 0:
			c.items = append(c.items, item{path: here, mark: 'd'})
		default:
			var sub *dir
			if sub, err = d.child(n.name); err == nil {
				err = c.hashFolder(sub, n.kids, here)
				sub.close()
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) hashFile(d *dir, n *node, path string) error {
	f, _, err := d.open(n.name, unix.O_RDONLY)
	if err != nil {
		return fmt.Errorf("files: verify: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	digest := sha256.New()
	if err := c.hashClone(digest, f, n.stat.size); err != nil {
		return fmt.Errorf("files: verify: %w", err)
	}
	c.add(n, path, digest.Sum(nil))
	c.done.DoneFiles++
	report(c.progress, c.done)
	return nil
}

const maxDifferences = 10

// differences names what was changed, added or lost, at most maxDifferences.
func differences(stored map[string]item, now []item) []string {
	var found []string
	note := func(what, path string) {
		if len(found) < maxDifferences {
			found = append(found, what+" "+quote(path))
		}
	}
	for _, i := range now {
		was, ok := stored[i.path]
		switch {
		case !ok:
			note("added", i.path)
		case was != i:
			note("changed", i.path)
		}
		delete(stored, i.path)
	}
	for path := range stored {
		note("lost", path)
	}
	return found
}
