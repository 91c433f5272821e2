package storage

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/storage"
	"tallyard/graph/gqlmodel"
	"tallyard/projections/page"
)

type sources []string

func (s sources) SourcesIn(context.Context, uuid.UUID, uuid.UUID) ([]string, error) { return s, nil }

type disk struct {
	Disk
	entries []Entry
	err     error
}

func (d disk) List(_ context.Context, _, _ uuid.UUID, _ storage.Path, after string, limit int) ([]Entry, bool, error) {
	var list []Entry
	for _, e := range d.entries {
		if e.Key > after {
			list = append(list, e)
		}
	}
	return list[:min(limit, len(list))], len(list) > limit, d.err
}

func path(t *testing.T, text string) storage.Path {
	t.Helper()
	p, bad := storage.ParsePath(text)
	if bad != nil {
		t.Fatal(bad)
	}
	return p
}

// TestEntriesAsFiles: what is read from has an address whose every name is
// escaped by itself; what was taken from carries the mark; what has no path is
// only shown.
func TestEntriesAsFiles(t *testing.T) {
	a := &API{Sources: sources{"code/a", "../bad"}}
	show, err := a.show(context.Background(), place{name: homeName})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	file := func(p string, k EntryKind) *gqlmodel.File {
		return show(Entry{Name: path(t, p).Base(), Key: "k", Path: path(t, p), Kind: k, SizeBytes: 3, ModifiedAt: at})
	}
	f := file("code/a/ü b?#%.py", File)
	if !f.Shared || *f.SizeBytes != 3 || f.Path != "code/a/ü b?#%.py" {
		t.Errorf("the file is %+v", f)
	}
	u, err := url.Parse(*f.URL)
	if err != nil || u.Path != "/files/home/code/a/ü b?#%.py" || u.RawQuery != "" || strings.ContainsAny(*f.URL, " ü") {
		t.Errorf("its address is %q, %v", *f.URL, err)
	}
	if d := file("code/a", Directory); !d.Shared || d.SizeBytes != nil || d.URL != nil {
		t.Errorf("the directory is %+v", d)
	}
	if d := file("code/ab", Directory); d.Shared {
		t.Error("a name that begins alike carries the mark")
	}
	if o := show(Entry{Name: "x\uFFFD", Key: "x\x01", Kind: Other}); o.URL != nil || o.Path != "x\uFFFD" || o.Kind != gqlmodel.FileKindOther {
		t.Errorf("what has no path is %+v", o)
	}
}

// TestPagesOfADirectory: every page goes on behind the last key.
func TestPagesOfADirectory(t *testing.T) {
	d := disk{entries: []Entry{{Key: "a"}, {Key: "b\xff"}, {Key: "c"}}}
	a := &API{Disk: d}
	p := page.Page{First: 2}
	rows, err := a.rows(context.Background(), place{}, storage.Root, p)
	if err != nil || len(rows.Items) != 2 || !rows.HasNext || rows.HasPrevious {
		t.Fatalf("%+v, %v", rows, err)
	}
	p.After = &page.Key{Value: rows.Items[1].Key}
	rows, err = a.rows(context.Background(), place{}, storage.Root, p)
	if err != nil || len(rows.Items) != 1 || rows.Items[0].Key != "c" || rows.HasNext || !rows.HasPrevious {
		t.Fatalf("%+v, %v", rows, err)
	}
	// The space is in the log, and nothing of it on the disk: empty, but a
	// directory of it is not there.
	a.Disk = disk{err: noDirectory()}
	if rows, err = a.rows(context.Background(), place{}, storage.Root, p); err != nil || len(rows.Items) != 0 {
		t.Errorf("%+v, %v", rows, err)
	}
	if _, err = a.rows(context.Background(), place{}, path(t, "x"), p); err == nil {
		t.Error("a directory that is not there is empty")
	}
}
