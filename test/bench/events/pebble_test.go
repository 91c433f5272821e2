package events

import (
	"context"
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// maxGroup is how many writers share a sync at most, as in the embedded store.
const maxGroup = 512

// rawPebble appends into a bare Pebble: one goroutine writes what waits, under
// a growing key, and syncs once. Nothing is checked, indexed or sent.
func rawPebble(b *testing.B) appender {
	b.Helper()
	db, err := pebble.Open(filepath.Join(place(b), "pebble"), &pebble.Options{
		FS: vfs.Default, MemTableSize: 16 << 20, FormatMajorVersion: pebble.FormatValueSeparation, Logger: quiet{b},
	})
	if err != nil {
		b.Fatal(err)
	}
	queue := make(chan chan error, maxGroup)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		groupCommit(db, queue)
	}()
	b.Cleanup(func() {
		close(queue)
		<-ended
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	return func(context.Context, string, int64) error {
		done := make(chan error, 1)
		queue <- done
		return <-done
	}
}

// groupCommit writes one value for each who waits and syncs once for all of them.
func groupCommit(db *pebble.DB, queue <-chan chan error) {
	var position uint64
	for first := range queue {
		group := append(make([]chan error, 0, maxGroup), first)
		for more := true; more && len(group) < maxGroup; {
			select {
			case next, ok := <-queue:
				if more = ok; ok {
					group = append(group, next)
				}
			default:
				more = false
			}
		}
		batch := db.NewBatch()
		var err error
		for range group {
			position++
			if e := batch.Set(binary.BigEndian.AppendUint64(nil, position), newBody(), nil); e != nil {
				err = e
			}
		}
		if err == nil {
			err = batch.Commit(pebble.Sync)
		}
		if e := batch.Close(); err == nil {
			err = e
		}
		for _, done := range group {
			done <- err
		}
	}
}

// quiet keeps Pebble's messages out of the figures, but for the fatal one.
type quiet struct{ b *testing.B }

func (quiet) Infof(string, ...any)                {}
func (quiet) Errorf(string, ...any)               {}
func (q quiet) Fatalf(format string, args ...any) { q.b.Errorf(format, args...) }
