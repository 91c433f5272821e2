package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/uuid"
)

// TestBadDisk: a sync that fails is never acknowledged, whatever Pebble does
// about it; appends get Unavailable from then on, and reads go on. It runs in a
// process of its own, since a failed store can't be closed.
func TestBadDisk(t *testing.T) {
	startChild(t, childBadDisk, childDir+"="+t.TempDir(), childSocket+"="+socketPath(t)).fine(t)
}

func childMeetBadDisk() error {
	// Writes go through, only syncs of the write-ahead log fail.
	broken := errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		syncs := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if syncs && strings.HasSuffix(op.Path, ".log") {
			return errorfs.ErrInjected
		}
		return nil
	})}
	broken.Off()
	opt := storeOptions{dir: os.Getenv(childDir), fs: errorfs.Wrap(vfs.Default, &broken), logger: discard(), clock: time.Now}
	st, err := openStore(context.Background(), opt)
	if err != nil {
		return err
	}
	s, err := serveStore(context.Background(), st, Config{Socket: os.Getenv(childSocket), Logger: discard()})
	if err != nil {
		return err
	}
	client, err := esdb.NewClient(&esdb.Configuration{Address: s.Address(), DisableTLS: true, MaxDiscoverAttempts: 1, GossipTimeout: 5})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := client.AppendToStream(ctx, "s", esdb.AppendToStreamOptions{}, newEvents(1)...); err != nil {
		return fmt.Errorf("the disk is still good: %w", err)
	}
	sub, err := client.SubscribeToAll(ctx, esdb.SubscribeToAllOptions{From: esdb.End{}})
	if err != nil {
		return err
	}
	broken.On()
	for range 3 {
		if _, err := client.AppendToStream(ctx, "s", esdb.AppendToStreamOptions{}, newEvents(1)...); code(err) != esdb.ErrorUnavailable {
			return fmt.Errorf("an append on a broken disk: %w", err)
		}
	}
	select {
	case <-s.Failed():
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.Err() == nil {
		return fmt.Errorf("the store doesn't say why it failed")
	}
	broken.Off()
	if _, err := client.AppendToStream(ctx, "s", esdb.AppendToStreamOptions{}, newEvents(1)...); code(err) != esdb.ErrorUnavailable {
		return fmt.Errorf("an append after the failure: %w", err)
	}
	for {
		if m := sub.Recv(); m.SubscriptionDropped != nil {
			break
		} else if m.EventAppeared != nil {
			return fmt.Errorf("an event that was never acknowledged was delivered")
		}
	}
	read, err := client.ReadAll(ctx, esdb.ReadAllOptions{From: esdb.Start{}}, 10)
	if err != nil {
		return err
	}
	n := 0
	for {
		if _, err := read.Recv(); err != nil {
			break
		}
		n++
	}
	if n != 1 {
		return fmt.Errorf("%d events are read, 1 was acknowledged", n)
	}
	if err := s.Close(ctx); err == nil {
		return fmt.Errorf("closing a failed store says nothing")
	}
	returned := make(chan struct{})
	go func() { defer close(returned); st.trap.Fatalf("once more") }()
	select {
	case <-returned:
		return fmt.Errorf("Fatalf has returned")
	case <-time.After(100 * time.Millisecond):
	}
	fmt.Println("fine")
	return nil
}

// TestBadTables: when what was collected in memory can't be written into
// tables, Pebble would try for ever and let appends wait for ever. The store
// gives up, and says why.
func TestBadTables(t *testing.T) {
	startChild(t, childBadTables).fine(t)
}

func childMeetBadTables() error {
	mem := vfs.NewCrashableMem()
	if err := mkdirSynced(mem); err != nil {
		return err
	}
	broken := errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.HasSuffix(op.Path, tableSuffix) {
			return errorfs.ErrInjected
		}
		return nil
	})}
	s, err := openStore(context.Background(), memOptions(errorfs.Wrap(mem, &broken)))
	if err != nil {
		return err
	}
	broken.On()
	ctx, cancel := context.WithTimeout(context.Background(), workloadLimit)
	defer cancel()
	written := 0
	for ; err == nil && ctx.Err() == nil; written++ {
		_, err = s.append(ctx, &appendRequest{stream: "s", events: []proposed{{id: uuid.New(), kind: "made", contentType: contentBinary, data: make([]byte, 10_000)}}})
	}
	if !errors.Is(err, errFailed) || !strings.Contains(err.Error(), errorfs.ErrInjected.Error()) || written < 5 {
		return fmt.Errorf("after %d appends: %w", written, err)
	}
	select {
	case <-s.failed():
	default:
		return errors.New("the store has not failed")
	}
	if err := inTime("closing", s.close); !errors.Is(err, errFailed) {
		return fmt.Errorf("close: %w", err)
	}
	// Nothing is lost by it: the write-ahead log has everything.
	after, err := openStore(ctx, memOptions(mem.CrashClone(vfs.CrashCloneCfg{})))
	if err != nil {
		return err
	}
	log, err := wholeOf(after)
	if err != nil || len(log) < written-1 {
		return fmt.Errorf("%d of %d events are there: %w", len(log), written-1, err)
	}
	if err := after.close(); err != nil {
		return err
	}
	fmt.Println("fine")
	return nil
}
