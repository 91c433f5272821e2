package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"sync/atomic"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"
)

func parkedStream() string { return groupName{"s", "g"}.parked() }

// TestPark: persistent_subscription.go of the client, NackActionPark, and
// eventstore.md: parked messages are links in a durable stream.
func TestPark(t *testing.T) {
	r := newGroupRig(t, Config{})
	mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(2)...)
	r.create("s", esdb.Start{}, eager(nil))
	c := r.consume("s", 5)
	c.nack(esdb.NackActionPark, c.want("s/0 s/1")...)
	r.awaitParked("s", 2)
	r.awaitCheckpoint("s", 1)
	links, err := readForward(t, r.c, parkedStream(), esdb.Start{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []string{"0@s", "1@s"} {
		var meta struct {
			Added, Reason           string
			SubscriptionEventNumber int
		}
		if err := json.Unmarshal(links[n].UserMetadata, &meta); err != nil {
			t.Fatal(err)
		}
		if string(links[n].Data) != want || links[n].EventType != linkType || meta.Added == "" ||
			meta.Reason != "The consumer parked it: because" || meta.SubscriptionEventNumber != n {
			t.Errorf("%s, %+v", links[n].Data, meta)
		}
	}
}

// TestReplayParked: client tests persistentReplayParkedMessages and …ToAll.
func TestReplayParked(t *testing.T) {
	t.Run("all", func(t *testing.T) {
		r := newGroupRig(t, Config{})
		mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(3)...)
		r.create("s", esdb.Start{}, eager(nil))
		c := r.consume("s", 5)
		c.nack(esdb.NackActionPark, c.want("s/0 s/1 s/2")...)
		r.awaitParked("s", 3)
		r.replay("s", 0)
		again := c.want("s/0 s/1 s/2")
		if link := again[0].Link; link == nil || link.StreamID != parkedStream() {
			t.Fatalf("%+v", again[0])
		}
		c.ack(again...)
		r.awaitParked("s", 0)
		r.replay("s", 0) // there are none
		c.quiet()
		// Those parked later are replayed alone.
		mustAppend(t, r.c, "s", esdb.Any{}, newEvents(1)...)
		c.nack(esdb.NackActionPark, c.want("s/3")...)
		r.awaitParked("s", 1)
		r.replay("s", 0)
		c.nack(esdb.NackActionPark, c.want("s/3")...) // and parked again
		r.await("s", "parked anew", func(*esdb.PersistentSubscriptionInfo) bool {
			links, err := readForward(t, r.c, parkedStream(), esdb.Start{}, 10)
			return err == nil && len(links) == 1 && links[0].EventNumber == 4 && string(links[0].Data) == "3@s"
		})
	})
	t.Run("up to a revision", func(t *testing.T) { // client, ReplayParkedMessagesOptions.StopAt
		r := newGroupRig(t, Config{})
		mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(5)...)
		r.create("s", esdb.Start{}, eager(nil))
		c := r.consume("s", 5)
		c.nack(esdb.NackActionPark, c.want("s/0 s/1 s/2 s/3 s/4")...)
		r.awaitParked("s", 5)
		r.replay("s", 2)
		c.ack(c.want("s/0 s/1")...)
		c.quiet()
		r.awaitParked("s", 3)
	})
	t.Run("the whole log", func(t *testing.T) {
		r := newGroupRig(t, Config{})
		r.createAll(esdb.PersistentAllSubscriptionOptions{Settings: eager(nil)})
		c := r.consume("$all", 5)
		mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(2)...)
		c.nack(esdb.NackActionPark, c.want("s/0 s/1")...)
		r.awaitParked("$all", 2)
		c.quiet() // parking makes events, which are none of the group's
		if err := r.c.ReplayParkedMessagesToAll(context.Background(), "g", esdb.ReplayParkedMessagesOptions{}); err != nil {
			t.Fatal(err)
		}
		c.ack(c.want("s/0 s/1")...)
		r.awaitParked("$all", 0)
	})
	t.Run("parked messages outlive a restart, in a replay too", func(t *testing.T) {
		dir := t.TempDir()
		r := newGroupRig(t, Config{Dir: dir})
		mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(3)...)
		r.create("s", esdb.Start{}, eager(nil))
		c := r.consume("s", 5)
		c.nack(esdb.NackActionPark, c.want("s/0 s/1 s/2")...)
		r.awaitParked("s", 3)
		r.restart(dir)
		c = r.consume("s", 5)
		c.quiet()
		r.replay("s", 0)
		c.ack(c.want("s/0 s/1 s/2")[0])
		r.await("s", "the answer", func(i *esdb.PersistentSubscriptionInfo) bool { return i.Stats.TotalInFlightMessages == 2 })
		r.restart(dir)
		c = r.consume("s", 5)
		c.quiet()
		r.awaitParked("s", 2)
		r.replay("s", 0)
		c.want("s/1 s/2")
	})
	t.Run("an event that is gone is passed by", func(t *testing.T) {
		r := newGroupRig(t, Config{})
		mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(3)...)
		r.create("s", esdb.Start{}, eager(nil))
		c := r.consume("s", 5)
		c.nack(esdb.NackActionPark, c.want("s/0 s/1 s/2")...)
		r.awaitParked("s", 3)
		m := esdb.StreamMetadata{}
		m.SetTruncateBefore(2)
		setMetadata(t, r.c, "s", m)
		r.replay("s", 0)
		c.ack(c.want("s/2")...)
		r.awaitParked("s", 0)
	})
	t.Run("holes among the parked are passed by", func(t *testing.T) {
		r := newGroupRig(t, Config{})
		mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(30)...)
		r.create("s", esdb.Start{}, eager(func(s *esdb.PersistentSubscriptionSettings) { s.ReadBatchSize = 2 }))
		c := r.consume("s", 50)
		e, _ := c.events(30)
		c.nack(esdb.NackActionPark, e...)
		r.awaitParked("s", 30)
		g, err := r.s.subs.find(groupName{"s", "g"})
		if err != nil {
			t.Fatal(err)
		}
		// The first ones go while the group believes that it reads from 0 on.
		if err := r.s.store.appendMetadata(context.Background(), parkedStream(), map[string]int64{"$tb": 27}); err != nil {
			t.Fatal(err)
		}
		g.mu.Lock()
		g.state.Replay(0, 30)
		signal(g.kick)
		g.mu.Unlock()
		c.ack(c.want("s/27 s/28 s/29")...)
		r.awaitParked("s", 0)
	})
}

// TestParkManyOverARestart: more than fit the buffers, and nothing is lost.
func TestParkManyOverARestart(t *testing.T) {
	const n = 700
	dir := t.TempDir()
	r := newGroupRig(t, Config{Dir: dir})
	mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(n)...)
	r.create("s", esdb.Start{}, nil)
	c := r.consume("s", 50)
	for range n {
		e, _ := c.events(1)
		c.nack(esdb.NackActionPark, e...)
	}
	r.awaitParked("s", n)
	r.restart(dir)
	c = r.consume("s", 50)
	r.replay("s", 0)
	for i := range n {
		e, text := c.events(1)
		if e[0].Event.EventNumber != uint64(i) {
			t.Fatalf("%s at %d", text, i)
		}
		c.ack(e...)
	}
	r.awaitParked("s", 0)
	c.quiet()
	if links, err := readForward(t, r.c, parkedStream(), esdb.Start{}, math.MaxInt32); err != nil || len(links) != 0 {
		t.Fatal(len(links), err)
	}
}

// smallDisk is the disk, but for how much of it is free.
type smallDisk struct {
	vfs.FS
	free atomic.Uint64
}

func (d *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.free.Load()}, nil
}

// TestParkWaitsForTheDisk: failures.md, a full disk: nothing is lost, and it
// goes on when there is room.
func TestParkWaitsForTheDisk(t *testing.T) {
	disk := &smallDisk{FS: vfs.Default}
	disk.free.Store(1 << 30)
	st := newTestStore(t, storeOptions{dir: t.TempDir(), fs: disk, reserve: 1 << 20})
	s, err := serveStore(context.Background(), st, Config{Socket: socketPath(t), Logger: discard()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeServer(t, s) })
	r := &groupRig{t: t, s: s, c: connect(t, s)}
	mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(2)...)
	r.create("s", esdb.Start{}, eager(nil))
	c := r.consume("s", 5)
	e := c.want("s/0 s/1")
	disk.free.Store(0)
	st.measureSpace() // it is asked for once in a while
	c.nack(esdb.NackActionPark, e[0])
	c.ack(e[1])
	r.await("s", "that both are answered", func(i *esdb.PersistentSubscriptionInfo) bool {
		return i.Stats.TotalInFlightMessages == 0 && i.Stats.OutstandingMessagesCount == 1
	})
	if err := st.appendOwn(context.Background(), "s", proposed{id: uuid.New(), kind: "made", contentType: contentJSON}); !errors.Is(err, errNoRoom) {
		t.Fatal("the disk is not full", err)
	}
	if i := r.info("s"); i.Stats.LastCheckpointedEventRevision != nil || i.Stats.ParkedMessagesCount != 0 {
		t.Fatalf("%+v", i.Stats)
	}
	disk.free.Store(1 << 30)
	st.measureSpace()
	r.awaitParked("s", 1)
	r.awaitCheckpoint("s", 1)
}
