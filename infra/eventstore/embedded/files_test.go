package embedded

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/uuid"
)

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(workloadLimit); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in time", what)
		}
	}
}

// quality.md: when the disk is full, appends are refused and reads go on; once
// there is room, appends go on by themselves, and nothing is lost.
func TestFullDisk(t *testing.T) {
	mem := newMemFS(t)
	full := errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpReuseForWrite, errorfs.OpRename, errorfs.OpLink:
			return errNoSpace
		default:
			return nil
		}
	})}
	s := newTestStore(t, memOptions(errorfs.Wrap(mem, &full)))
	put(t, s, "s", expectation{}, 3)
	full.On()
	waiting := make(chan appendResult, 1)
	go func() {
		r := &appendRequest{stream: "waits", events: []proposed{{id: uuid.New(), kind: "made", contentType: contentJSON}}}
		res, err := s.append(context.Background(), r)
		res.err = err
		waiting <- res
	}()
	eventually(t, "a write waits for room", func() bool { return s.files.waiting.Load() > 0 })
	for range 3 {
		_, err := s.append(context.Background(), &appendRequest{stream: "s", events: []proposed{{id: uuid.New(), kind: "made", contentType: contentJSON}}})
		if !errors.Is(err, errNoRoom) {
			t.Fatalf("an append to a full disk: %v", err)
		}
	}
	if got := whole(t, s); len(got) != 3 {
		t.Fatalf("%d events are read", len(got))
	}
	eventually(t, "the store says that the disk is full", func() bool { return s.space.now().Level == SpaceFull })
	full.Off()
	select {
	case res := <-waiting:
		if res.err != nil {
			t.Fatalf("the append that waited: %v", res.err)
		}
	case <-time.After(workloadLimit):
		t.Fatal("the append that waited hangs")
	}
	eventually(t, "the store says that there is room", func() bool { return s.space.now().Level == SpaceEnough })
	put(t, s, "s", expectation{kind: expectRevision, revision: 2}, 1)
	if s.failure() != nil {
		t.Fatal(s.failure())
	}
	lost := mem.CrashClone(vfs.CrashCloneCfg{})
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	s = newTestStore(t, memOptions(lost))
	defer abandon(t, s)
	if got := whole(t, s); len(got) != 5 {
		t.Fatalf("%d events after a power loss", len(got))
	}
	if rep := verified(t, s); rep.Damaged != 0 {
		t.Fatalf("%+v", rep)
	}
}

// A store that is closed while a write waits for room does not wait with it.
func TestCloseOnFullDisk(t *testing.T) {
	startChild(t, childFullDisk).fine(t)
}

func childCloseOnFullDisk() error {
	mem := vfs.NewCrashableMem()
	if err := mkdirSynced(mem); err != nil {
		return err
	}
	full := errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite {
			return errNoSpace
		}
		return nil
	})}
	s, err := openStore(context.Background(), memOptions(errorfs.Wrap(mem, &full)))
	if err != nil {
		return err
	}
	full.On()
	answered := make(chan error, 1)
	go func() {
		_, err := s.append(context.Background(), &appendRequest{stream: "s", events: []proposed{{id: uuid.New(), kind: "made", contentType: contentJSON}}})
		answered <- err
	}()
	for s.files.waiting.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := inTime("closing", s.close); !errors.Is(err, errFailed) {
		return err
	}
	return inTime("the append", func() error {
		if err := <-answered; !errors.Is(err, errFailed) {
			return errors.Join(errors.New("an append that can't be written"), err)
		}
		return nil
	})
}

// halfFile takes half of what is written to it, and then there is no room.
type halfFile struct {
	vfs.File
	got  bytes.Buffer
	full atomic.Int32
}

func (f *halfFile) Write(p []byte) (int, error) {
	if f.full.Add(-1) < 0 {
		return f.got.Write(p)
	}
	n, _ := f.got.Write(p[:len(p)/2])
	return n, errNoSpace
}

// What was written before the disk was full is not written twice.
func TestWriteGoesOnWhereItStopped(t *testing.T) {
	files := &storeFiles{trap: newFatalTrap(discard()), quit: make(chan struct{})}
	files.phase.Store(phaseOpen)
	half := &halfFile{}
	half.full.Store(2)
	f := &storeFile{File: half, name: "1.log", files: files}
	text := []byte("0123456789")
	if n, err := f.Write(text); n != len(text) || err != nil || half.got.String() != string(text) {
		t.Fatalf("%d, %v, %q", n, err, half.got.String())
	}
}
