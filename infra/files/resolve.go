package files

import (
	"errors"
	"io/fs"

	"golang.org/x/text/unicode/norm"

	"tallyard/domain/storage"
)

// lookup finds a name, given in NFC, in a directory: itself, or else the first
// name in bytewise order whose NFC form it is. Files come from systems that
// write names in NFD; for people these are the same names (GEN-01).
// The error is fs.ErrNotExist when there is none.
func (d *dir) lookup(name string) (onDisk string, st stat, err error) {
	st, err = d.lstat(name)
	if !errors.Is(err, fs.ErrNotExist) || isASCII(name) {
		return name, st, err
	}
	missing := err
	err = d.each(func(other string) error {
		if (onDisk == "" || other < onDisk) && !isASCII(other) && norm.NFC.String(other) == name {
			onDisk = other
		}
		return nil
	})
	if err != nil {
		return "", stat{}, err
	}
	if onDisk == "" {
		return name, stat{}, missing
	}
	st, err = d.lstat(onDisk)
	return onDisk, st, err
}

// Only texts beyond ASCII have more than one form.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// place is a name in an open directory; there may be nothing of that name.
type place struct {
	parent *dir
	name   string // on disk
	found  bool
	stat   stat
}

func (pl *place) close() { pl.parent.close() }

// locate opens the folder above p and looks p up in it. A missing folder
// above, or a file in a folder's place, is the error notFound.
func locate(top *dir, p storage.Path) (*place, error) {
	names := p.Names()
	parent, err := descend(top, p.Dir())
	if err != nil {
		return nil, err
	}
	pl := &place{parent: parent}
	pl.name, pl.stat, err = parent.lookup(names[len(names)-1])
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		parent.close()
		return nil, explain("look up", p.String(), err)
	}
	pl.found = err == nil
	return pl, nil
}

// descend opens the folder p; the caller closes it, top stays open.
func descend(top *dir, p storage.Path) (*dir, error) {
	at, err := top.again()
	if err != nil {
		return nil, explain("open", "", err)
	}
	for _, name := range p.Names() {
		next, err := at.step(name)
		at.close()
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) {
			return nil, notFound(p)
		}
		if err != nil {
			return nil, explain("open", p.String(), err)
		}
		at = next
	}
	return at, nil
}

// step opens the directory of a name given in NFC.
func (d *dir) step(name string) (*dir, error) {
	next, err := d.child(name)
	if !errors.Is(err, fs.ErrNotExist) || isASCII(name) {
		return next, err
	}
	onDisk, _, err := d.lookup(name)
	if err != nil {
		return nil, err
	}
	return d.child(onDisk)
}

// again opens the same directory once more, with a reading position of its own.
func (d *dir) again() (*dir, error) {
	fd, err := openSelf(d)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: ".", Err: err}
	}
	return fd, nil
}

// build opens the folder p and makes what is missing of it. A file in the way is a fault.
func build(top *dir, p storage.Path) (*dir, error) {
	at, err := top.again()
	if err != nil {
		return nil, explain("open", "", err)
	}
	var here storage.Path
	for _, name := range p.Names() {
		here, _ = here.Join(name) // a prefix of a valid path is valid
		next, err := at.step(name)
		if errors.Is(err, fs.ErrNotExist) {
			next, err = at.ensure(name, folderMode)
		}
		at.close()
		if errors.Is(err, errNotDir) {
			return nil, fileInTheWay(here)
		}
		if err != nil {
			return nil, explain("make folder", here.String(), err)
		}
		at = next
	}
	return at, nil
}
