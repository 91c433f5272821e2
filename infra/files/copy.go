package files

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"tallyard/domain/fault"
)

// modes of the files that a copy makes.
type modes struct{ file, program, folder fs.FileMode }

// copier copies a folder into <name>.partial in a working directory. Files that
// are durable there are recorded in <name>.journal; a later try with the same
// journal takes them over.
type copier struct {
	ctx      context.Context // lives for one call
	store    *Store
	scan     *scanner
	work     *dir
	name     string
	modes    modes
	journal  *journal
	progress func(Progress)
	room     func(bytes int64) error // takes room for a file; nil: nobody counts

	done         Progress
	known        map[string]record
	items        []item
	pending      []record // copied, not yet durable
	pendingBytes int64
	cannotClone  bool
	buffer       []byte
}

const (
	maxPendingFiles = 512
	maxPendingBytes = 64 << 20
	copyBuffer      = 1 << 20
	// A file of this size is worth an fsync of its own; smaller ones are made
	// durable together.
	largeFile = 4 << 20
)

func (c *copier) partialName() string { return c.name + ".partial" }
func (c *copier) trashPrefix() string { return c.name + ".trash." }

// run copies src and gives the open, complete copy, which is durable after the
// next syncAround.
func (c *copier) run(src *dir) (partial *dir, err error) {
	tree, err := c.scan.scan(src, "", 0)
	if err != nil {
		return nil, err
	}
	if c.scan.plainFiles == 0 {
		return nil, fault.New(fault.State, fault.CodeInvalidState,
			"The folder "+c.scan.quote("")+" holds no files; put at least one file into it, then retry.")
	}
	c.done.TotalFiles, c.done.TotalBytes = c.scan.plainFiles, c.scan.bytes
	if c.known, err = c.journal.read(); err != nil {
		return nil, explain("read the journal of a copy", "", err)
	}
	if _, err := emptyTrash(c.ctx, c.work, c.trashPrefix(), "", nil); err != nil {
		return nil, err
	}
	partial, err = c.openFolder(c.work, c.partialName())
	if err != nil {
		return nil, explain("copy", c.scan.inSpace(""), err)
	}
	if err = c.prune(partial, tree); err == nil {
		err = c.copyFolder(src, partial, tree, "")
	}
	if err == nil {
		err = c.checkUnchanged(src, tree)
	}
	if err == nil {
		err = explain("copy", c.scan.inSpace(""), c.fixFolders(partial, tree))
	}
	if err != nil {
		err = errors.Join(err, c.keep(partial)) // what was copied need not be copied again
		partial.close()
		return nil, err
	}
	return partial, nil
}

// openFolder opens a folder of the copy, which an earlier try may have made read-only already.
func (c *copier) openFolder(in *dir, name string) (*dir, error) {
	if _, err := in.mkdir(name, privateMode); err != nil { // made durable with its files
		return nil, err
	}
	d, err := in.child(name)
	if err != nil {
		return nil, err
	}
	if err := d.chmod(privateMode); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// prune removes what an earlier try copied and the source no longer has.
func (c *copier) prune(d *dir, wanted []*node) error {
	nodes := make(map[string]*node, len(wanted))
	for _, n := range wanted {
		nodes[n.name] = n
	}
	names, err := d.names()
	if err != nil {
		return explain("list", "", err)
	}
	for _, name := range names {
		st, err := d.lstat(name)
		if err != nil {
			return explain("stat", "", err)
		}
		n := nodes[name]
		switch {
		case n != nil && n.stat.dir && st.dir:
			err = c.pruneFolder(d, n)
		case n == nil || n.stat.dir || !st.regular:
			err = discard(c.ctx, d, name, c.work, c.trashPrefix())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) pruneFolder(in *dir, n *node) error {
	d, err := c.openFolder(in, n.name)
	if err != nil {
		return explain("open", "", err)
	}
	defer d.close()
	return c.prune(d, n.kids)
}

// discard removes a whole tree by way of a trash directory on the same file system.
func discard(ctx context.Context, in *dir, name string, trash *dir, prefix string) error {
	if err := ignoreMissing(moveAway(in, name, trash, prefix+uuid.NewString())); err != nil {
		return explain("discard", "", err)
	}
	_, err := emptyTrash(ctx, trash, prefix, "", nil)
	return err
}

func (c *copier) copyFolder(src, dst *dir, nodes []*node, path string) error {
	for _, n := range nodes {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		here := below(path, n.name)
		var err error
		if n.stat.dir {
			err = c.copySubfolder(src, dst, n, here)
		} else {
			err = c.copyFile(src, dst, n, here)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) copySubfolder(src, dst *dir, n *node, path string) error {
	if len(n.kids) == 0 {
		c.items = append(c.items, item{path: path, mark: 'd'})
	}
	from, err := src.child(n.name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) {
		return sourceChanged(c.scan.inSpace(path))
	}
	if err != nil {
		return explain("open", c.scan.inSpace(path), err)
	}
	defer from.close()
	to, err := c.openFolder(dst, n.name)
	if err != nil {
		return explain("copy", c.scan.inSpace(path), err)
	}
	defer to.close()
	return c.copyFolder(from, to, n.kids, path)
}

// copyFile copies one file, or takes it over from an earlier try.
func (c *copier) copyFile(src, dst *dir, n *node, path string) error {
	if c.takeOver(dst, n, path) {
		return nil
	}
	if err := dst.unlink(n.name); err != nil {
		return explain("copy", c.scan.inSpace(path), err)
	}
	in, st, err := src.open(n.name, unix.O_RDONLY)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errIsDir), errors.Is(err, errOther), err == nil && !st.same(n.stat):
		if err == nil {
			_ = in.Close() // only read
		}
		return sourceChanged(c.scan.inSpace(path))
	case err != nil:
		return explain("open", c.scan.inSpace(path), err)
	}
	defer func() { _ = in.Close() }() // only read
	if c.room != nil {
		if err := c.room(n.stat.size); err != nil {
			return err
		}
	}
	sum, err := c.copyContent(dst, in, n, path)
	if err != nil {
		return errors.Join(explain("copy", c.scan.inSpace(path), err), dst.unlink(n.name))
	}
	c.add(n, path, sum)
	c.done.DoneFiles++
	report(c.progress, c.done)
	c.pending = append(c.pending, recordOf(path, n.stat, sum))
	if c.pendingBytes += n.stat.size; c.pendingBytes >= maxPendingBytes || len(c.pending) >= maxPendingFiles {
		if err := c.flush(dst); err != nil {
			return err
		}
	}
	if c.store.afterFile != nil {
		c.store.afterFile(path)
	}
	return nil
}

func (c *copier) takeOver(dst *dir, n *node, path string) bool {
	r, ok := c.known[path]
	if !ok || !r.of(n.stat) || len(r.sum()) != sha256.Size {
		return false
	}
	there, err := dst.lstat(n.name)
	if err != nil || !there.regular || there.size != n.stat.size {
		return false
	}
	c.add(n, path, r.sum())
	c.done.DoneFiles++
	c.done.ReusedFiles++
	c.done.DoneBytes += n.stat.size
	c.done.ReusedBytes += n.stat.size
	report(c.progress, c.done)
	return true
}

func (c *copier) add(n *node, path string, sum []byte) {
	i := item{path: path, size: n.stat.size, mark: '-', sum: [sha256.Size]byte(sum)}
	if n.stat.exec {
		i.mark = 'x'
	}
	c.items = append(c.items, i)
}

// flush makes what was copied durable and then, not before, records it.
func (c *copier) flush(d *dir) error {
	if len(c.pending) == 0 {
		return nil
	}
	if err := c.store.syncAround(d); err != nil {
		return explain("copy", c.scan.inSpace(""), err)
	}
	if err := c.journal.append(c.pending); err != nil {
		return explain("copy", c.scan.inSpace(""), err)
	}
	c.pending, c.pendingBytes = c.pending[:0], 0
	return nil
}

// keep records what was copied when the copy stops. On a full disk the files
// copied last make room for the records of the others.
func (c *copier) keep(partial *dir) error {
	err := c.flush(partial)
	for isFull(err) && len(c.pending) > 0 {
		last := c.pending[len(c.pending)-1]
		c.pending = c.pending[:len(c.pending)-1]
		if err := partial.unlinkBelow(last.Path); err != nil {
			return explain("copy", c.scan.inSpace(""), err)
		}
		err = c.flush(partial)
	}
	return err
}

// checkUnchanged looks the source over once more, so that the copy is of a
// folder as it was at one moment, not of a mixture.
func (c *copier) checkUnchanged(src *dir, before []*node) error {
	again := *c.scan
	again.files, again.bytes, again.plainFiles = 0, 0, 0
	after, err := again.scan(src, "", 0)
	if err != nil {
		return err
	}
	if path, changed := firstChange(before, after, ""); changed {
		return sourceChanged(c.scan.inSpace(path))
	}
	return nil
}

// fixFolders gives the folders of the copy their final mode, the inner ones first.
func (c *copier) fixFolders(d *dir, nodes []*node) error {
	for _, n := range nodes {
		if !n.stat.dir {
			continue
		}
		sub, err := d.child(n.name)
		if err != nil {
			return err
		}
		err = c.fixFolders(sub, n.kids)
		sub.close()
		if err != nil {
			return err
		}
	}
	return d.chmod(c.modes.folder)
}
