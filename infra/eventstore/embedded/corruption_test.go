package embedded

import (
	"context"
	"errors"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// How a flipped bit in a file was met with.
const (
	seenAtOpen    = "refused at open"
	seenByVerify  = "found by verify"
	seenByReaders = "an error to readers"
	cutTail       = "end of the log cut off"
	noHarm        = "no harm"
	silent        = "SILENT"
)

// TestFlippedBits: a bit that flips in any file of the store is found when the
// store is opened or verified, or changes nothing that anybody reads. The one
// thing that can't be told from a write that a crash cut off is the very end of
// the write-ahead log of a store that was killed, behind the last note of where
// the log ends: there whole appends go. EVENTSTORE_FLIP_ALL=1 flips every byte.
func TestFlippedBits(t *testing.T) {
	for _, closed := range []bool{true, false} {
		name := "killed"
		if closed {
			name = "closed"
		}
		t.Run(name, func(t *testing.T) {
			fs := newMemFS(t)
			s := newTestStore(t, memOptions(fs))
			fillSample(t, s)
			noted := 0
			if !closed {
				s.noteEnd()
				noted = len(whole(t, s))
				put(t, s, "plain", expectation{}, 2)
				put(t, s, "late", expectation{}, 2)
			}
			log := whole(t, s)
			if closed {
				noted = len(log)
			}
			if !closed {
				fs = copyOf(fs)
				defer abandon(t, s)
			} else if err := s.close(); err != nil {
				t.Fatal(err)
			}
			files, err := fs.List(memDir)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(files)
			total := map[string]map[string]int{}
			for _, file := range files {
				kind := file[strings.LastIndexAny(file, ".-")+1:]
				if i := strings.Index(file, "-"); i > 0 {
					kind = file[:i]
				}
				if total[kind] == nil {
					total[kind] = map[string]int{}
				}
				info, err := fs.Stat(fs.PathJoin(memDir, file))
				if err != nil {
					t.Fatal(err)
				}
				step := max(1, info.Size()/40)
				if os.Getenv("EVENTSTORE_FLIP_ALL") != "" {
					step = 1
				}
				for at := int64(0); at < info.Size(); at += step {
					outcome := flipAndOpen(t, fs, file, at, log, noted)
					total[kind][outcome]++
					if outcome == silent || outcome == cutTail && kind != "log" {
						t.Errorf("%s, byte %d of %d: %s", file, at, info.Size(), outcome)
					}
				}
			}
			for _, kind := range slices.Sorted(maps.Keys(total)) {
				t.Logf("%-20s %v", kind, total[kind])
			}
		})
	}
}

// flipAndOpen flips a bit in a copy of the files and tells what became of it.
func flipAndOpen(t *testing.T, fs *vfs.MemFS, file string, at int64, log []event, noted int) string {
	t.Helper()
	fs = copyOf(fs)
	f, err := fs.OpenReadWrite(fs.PathJoin(memDir, file), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 << (at % 8)
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	// First as a look at the stopped store, which must not change it …
	offline, err := verifyDir(context.Background(), memOptions(fs), nil)
	found := err != nil || offline.Damaged > 0
	// … then as the program would come upon it.
	s, err := openStore(context.Background(), memOptions(fs))
	if err != nil {
		if !found {
			t.Errorf("%s, byte %d: refused at open, but sound to verify: %v", file, at, err)
		}
		return seenAtOpen
	}
	defer abandon(t, s)
	if rep, err := s.verify(context.Background(), nil); err != nil || rep.Damaged > 0 {
		return seenByVerify
	}
	got, err := wholeOf(s)
	switch {
	case err != nil:
		return seenByReaders
	case reflect.DeepEqual(got, log):
		return noHarm
	case noted <= len(got) && len(got) < len(log) && reflect.DeepEqual(got, log[:len(got)]) && log[len(got)-1].more == 0:
		return cutTail
	}
	return silent
}

// wholeOf reads the whole log of a store.
func wholeOf(s *store) (out []event, err error) {
	for from := uint64(0); ; from = out[len(out)-1].position + 1 {
		p, err := s.readAll(context.Background(), from, false, pageEvents, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, p.events...)
		if !p.more {
			if len(out) == 0 {
				return nil, errors.New("the log is empty")
			}
			return out, nil
		}
	}
}
