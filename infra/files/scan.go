package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/text/unicode/norm"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
)

// node is a file or folder of a tree that is to be copied, as it was seen.
type node struct {
	name string
	stat stat
	kids []*node // of a folder, by name
}

// scanner looks a tree over before it is copied: what may not be copied is
// found before any byte is, and the totals are known.
type scanner struct {
	ctx          context.Context // lives for one call
	at           storage.Path    // for messages: the folder that is copied
	maxFiles     int64
	maxBytes     int64
	files, bytes int64 // files and folders; bytes of files
	plainFiles   int64
}

// scan lists what is in d. The path is that of d below the folder that is copied.
func (s *scanner) scan(d *dir, path string, depth int) ([]*node, error) {
	if depth >= storage.MaxPathDepth { // what lies in it would have no path
		return nil, fault.New(fault.Invalid, fault.CodeTooLong, fmt.Sprintf(
			"The folder %s is more than %d folders deep; use fewer folders inside each other.", s.quote(path), storage.MaxPathDepth))
	}
	names, err := s.names(d, path, depth)
	if err != nil {
		return nil, err
	}
	nodes := make([]*node, 0, len(names))
	for _, name := range names {
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}
		n, err := s.look(d, name, below(path, name), depth)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// quote names something in the tree to the user, as a path in the space.
func (s *scanner) quote(path string) string { return quote(s.inSpace(path)) }

func (s *scanner) inSpace(path string) string {
	switch {
	case path == "":
		return s.at.String()
	case s.at.IsRoot():
		return path
	}
	return s.at.String() + "/" + path
}

// names gives the names in d, checked, in order.
func (s *scanner) names(d *dir, path string, depth int) ([]string, error) {
	var names []string
	forms := map[string]bool{} // NFC forms, once some name is not ASCII
	err := d.each(func(name string) error {
		if depth == 0 && s.at.IsRoot() && name == storage.ReservedName {
			return nil
		}
		if s.files++; s.files > s.maxFiles {
			return fault.New(fault.Quota, fault.CodeTooMany, fmt.Sprintf(
				"The folder %s holds more than %d files; choose a smaller folder.", s.quote(""), s.maxFiles))
		}
		if _, f := storage.ParsePath(name); f != nil { // no entry of a directory has a slash in its name
			return fault.New(fault.Invalid, f.Code, fmt.Sprintf(
				"The name %s can't be kept; rename it without control characters, backslashes and reserved names.", s.quote(below(path, name))))
		}
		if len(below(path, name)) > storage.MaxPathBytes {
			return fault.New(fault.Invalid, fault.CodeTooLong, fmt.Sprintf(
				"In the folder %s a path is longer than %d bytes; use shorter names.", s.quote(""), storage.MaxPathBytes))
		}
		if !isASCII(name) {
			form := norm.NFC.String(name)
			if forms[form] {
				return fault.New(fault.Conflict, fault.CodeDuplicate, fmt.Sprintf(
					"Two files look the same by name: %s; rename one of them.", s.quote(below(path, name))))
			}
			forms[form] = true
		}
		names = append(names, name)
		return nil
	})
	if err != nil {
		return nil, explain("list", s.inSpace(path), err)
	}
	slices.Sort(names)
	return names, nil
}

func (s *scanner) look(d *dir, name, path string, depth int) (*node, error) {
	st, err := d.lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, sourceChanged(s.inSpace(path))
	}
	if err != nil {
		return nil, explain("stat", s.inSpace(path), err)
	}
	n := &node{name: name, stat: st}
	switch {
	case st.regular:
		s.plainFiles++
		if s.bytes += st.size; s.bytes > s.maxBytes || s.bytes < 0 {
			return nil, fault.New(fault.Quota, fault.CodeLimitExceeded, fmt.Sprintf(
				"The folder %s holds more than %d bytes; choose a smaller folder.", s.quote(""), s.maxBytes))
		}
		return n, nil
	case !st.dir:
		return nil, isOther(s.inSpace(path))
	}
	sub, err := d.child(name)
	if errors.Is(err, errNotDir) || errors.Is(err, fs.ErrNotExist) {
		return nil, sourceChanged(s.inSpace(path))
	}
	if err != nil {
		return nil, explain("open", s.inSpace(path), err)
	}
	defer sub.close()
	if n.kids, err = s.scan(sub, path, depth+1); err != nil {
		return nil, err
	}
	return n, nil
}

// firstChange finds where two looks at a tree differ.
func firstChange(before, after []*node, path string) (at string, changed bool) {
	for i, j := 0, 0; i < len(before) || j < len(after); i, j = i+1, j+1 {
		switch {
		case j >= len(after) || i < len(before) && before[i].name < after[j].name:
			return below(path, before[i].name), true // lost
		case i >= len(before) || before[i].name > after[j].name:
			return below(path, after[j].name), true // added
		}
		a, b := before[i], after[j]
		here := below(path, a.name)
		if a.stat.dir != b.stat.dir || !a.stat.dir && !a.stat.same(b.stat) {
			return here, true
		}
		if at, changed := firstChange(a.kids, b.kids, here); changed {
			return at, true
		}
	}
	return "", false
}
