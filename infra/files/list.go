package files

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"golang.org/x/text/unicode/norm"

	"tallyard/domain/storage"
)

// Kind of an entry.
type Kind string

// Kinds of entries. OTHER is everything that is neither read nor copied.
const (
	KindFile      Kind = "FILE"
	KindDirectory Kind = "DIRECTORY"
	KindOther     Kind = "OTHER"
)

// Entry is a file or folder as it is listed.
type Entry struct {
	Name       string       // to be shown
	Key        string       // place in the order of the folder, to be handed back as after; any bytes
	Path       storage.Path // the root when it has no path that can be asked for (see the package comment)
	Kind       Kind
	SizeBytes  int64 // of files; 0 for all others
	ModifiedAt time.Time
	Executable bool
}

// Page is a part of a folder.
type Page struct {
	Entries []Entry
	More    bool // there are names after the last key
	Next    string
}

// List gives the entries of a folder in bytewise order of their names, those
// after the key, at most limit. Names that come or go in between don't shift it.
func (s *Store) List(ctx context.Context, tenant, space uuid.UUID, folder storage.Path, after string, limit int) (Page, error) {
	top, err := s.space(ctx, tenant, space)
	if err != nil {
		return Page{}, err
	}
	defer top.close()
	return list(ctx, top, folder, after, limit)
}

// Stat gives one entry. The space itself is a folder without a name.
func (s *Store) Stat(ctx context.Context, tenant, space uuid.UUID, p storage.Path) (Entry, error) {
	top, err := s.space(ctx, tenant, space)
	if err != nil {
		return Entry{}, err
	}
	defer top.close()
	return statPath(top, p)
}

func statPath(top *dir, p storage.Path) (Entry, error) {
	if p.IsRoot() {
		st, err := top.stat()
		if err != nil {
			return Entry{}, explain("stat", "", err)
		}
		return entryOf("", p, st), nil
	}
	pl, err := locate(top, p)
	if err != nil {
		return Entry{}, err
	}
	defer pl.close()
	if !pl.found {
		return Entry{}, notFound(p)
	}
	return entryOf(pl.name, p, pl.stat), nil
}

func list(ctx context.Context, top *dir, folder storage.Path, after string, limit int) (Page, error) {
	d, err := openFolder(top, folder)
	if err != nil {
		return Page{}, err
	}
	defer d.close()
	limit = max(limit, 1)
	names, err := d.smallest(ctx, after, limit+1, folder.IsRoot())
	if err != nil {
		return Page{}, explain("list", folder.String(), err)
	}
	var page Page
	if len(names) > limit {
		page.More, names = true, names[:limit]
	}
	twins, err := d.twins(names)
	if err != nil {
		return Page{}, explain("list", folder.String(), err)
	}
	for _, name := range names {
		page.Next = name
		st, err := d.lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone in between
		}
		if err != nil {
			return Page{}, explain("list", folder.String(), err)
		}
		p, fl := folder.Join(name)
		if fl != nil || twins[name] {
			p = storage.Root
		}
		page.Entries = append(page.Entries, entryOf(name, p, st))
	}
	return page, nil
}

// openFolder is descend with a better answer when a file stands there.
func openFolder(top *dir, folder storage.Path) (*dir, error) {
	d, err := descend(top, folder)
	if err == nil || folder.IsRoot() {
		return d, err
	}
	if e, statErr := statPath(top, folder); statErr == nil {
		switch e.Kind {
		case KindFile:
			return nil, isFile(folder)
		case KindOther:
			return nil, isOther(folder.String())
		case KindDirectory:
		}
	}
	return nil, err
}

func entryOf(onDisk string, p storage.Path, st stat) Entry {
	e := Entry{
		Name: printable(onDisk), Key: onDisk, Path: p,
		Kind: KindOther, ModifiedAt: st.modTime(), Executable: st.exec,
	}
	switch {
	case p.IsRoot() && onDisk != "":
		// Without a path it can't be asked for, whatever it is.
	case st.dir:
		e.Kind = KindDirectory
	case st.regular:
		e.Kind, e.SizeBytes = KindFile, st.size
	}
	return e
}

func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(name, string(unicode.ReplacementChar)))
}

// smallest gives the first n names after a key in bytewise order. Memory is
// bounded by n, not by the folder, which may hold millions.
func (d *dir) smallest(ctx context.Context, after string, n int, top bool) ([]string, error) {
	var kept []string
	cut := func() {
		slices.Sort(kept)
		kept = kept[:min(n, len(kept))]
	}
	seen := 0
	err := d.each(func(name string) error {
		if seen++; seen%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if name <= after || (top && name == storage.ReservedName) {
			return nil
		}
		if kept = append(kept, name); len(kept) >= 2*n+64 {
			cut()
		}
		return nil
	})
	cut()
	return kept, err
}

// twins tells which of the names are not the one that their NFC form finds.
func (d *dir) twins(names []string) (map[string]bool, error) {
	found := map[string]string{} // NFC form → name that lookup would find
	for _, name := range names {
		if nfc := norm.NFC.String(name); nfc != name {
			found[nfc] = ""
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	err := d.each(func(name string) error {
		nfc := norm.NFC.String(name)
		best, wanted := found[nfc]
		if wanted && best != nfc && (best == "" || name == nfc || name < best) {
			found[nfc] = name
		}
		return nil
	})
	twins := map[string]bool{}
	for _, name := range names {
		if best, ok := found[norm.NFC.String(name)]; ok && best != name {
			twins[name] = true
		}
	}
	return twins, err
}
