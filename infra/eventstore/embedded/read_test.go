package embedded

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
)

// eventstore.md, Server contract: forward is inclusive of the revision;
// backward on a stream inclusive.
func TestReadStream(t *testing.T) {
	c := connect(t, serve(t, Config{}))
	events := newEvents(600) // more than two pages
	mustAppend(t, c, "s", esdb.NoStream{}, events...)
	mustAppend(t, c, "s2", esdb.NoStream{}, newEvents(3)...)
	for _, tc := range []struct {
		name     string
		from     esdb.StreamPosition
		backward bool
		n        uint64
		first    uint64
		want     int
	}{
		{"forward from the start", esdb.Start{}, false, 1000, 0, 600},
		{"forward, some", esdb.Start{}, false, 300, 0, 300},
		{"forward inclusive", esdb.Revision(298), false, 5, 298, 5},
		{"forward over the end", esdb.Revision(598), false, 5, 598, 2},
		{"forward from beyond the end", esdb.Revision(600), false, 5, 0, 0},
		{"forward from the end", esdb.End{}, false, 5, 0, 0},
		{"backward from the end", esdb.End{}, true, 1000, 599, 600},
		{"backward inclusive", esdb.Revision(298), true, 5, 298, 5},
		{"backward over the start", esdb.Revision(1), true, 5, 1, 2},
		{"backward from beyond the end", esdb.Revision(5000), true, 2, 599, 2},
		{"backward from the start", esdb.Start{}, true, 5, 0, 1},
		{"none", esdb.Start{}, false, 0, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			read := readForward
			if tc.backward {
				read = readBackward
			}
			got, err := read(t, c, "s", tc.from, tc.n)
			if err != nil || len(got) != tc.want {
				t.Fatalf("%d events, %v", len(got), err)
			}
			for i, e := range got {
				want := tc.first + uint64(i)
				if tc.backward {
					want = tc.first - uint64(i)
				}
				if e.EventNumber != want || e.StreamID != "s" || e.EventID != events[want].EventID {
					t.Fatalf("event %d is %d of %s", i, e.EventNumber, e.StreamID)
				}
			}
		})
	}
	got, _ := readForward(t, c, "s", esdb.Revision(5), 1)
	e := got[0]
	if string(e.Data) != `{"a":1}` || string(e.UserMetadata) != `{"m":1}` || e.EventType != "made" || e.ContentType != "application/json" {
		t.Errorf("%+v", e)
	}
	if age := time.Since(e.CreatedDate); age < 0 || age > time.Minute {
		t.Errorf("created %v", e.CreatedDate)
	}
	if e.Position.Commit == 0 || e.Position.Commit != e.Position.Prepare {
		t.Errorf("position %+v", e.Position)
	}
}

// eventstore.md, Server contract: missing or softly deleted stream →
// stream_not_found; a stream with nothing visible → zero events.
func TestReadMissing(t *testing.T) {
	c := connect(t, serve(t, Config{}))
	ctx := context.Background()
	mustAppend(t, c, "deleted", esdb.NoStream{}, newEvents(2)...)
	if _, err := c.DeleteStream(ctx, "deleted", esdb.DeleteStreamOptions{ExpectedRevision: esdb.StreamExists{}}); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, c, "ended", esdb.NoStream{}, newEvents(2)...)
	if _, err := c.TombstoneStream(ctx, "ended", esdb.TombstoneStreamOptions{}); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, c, "hidden", esdb.NoStream{}, newEvents(2)...)
	m := esdb.StreamMetadata{}
	m.SetTruncateBefore(2)
	setMetadata(t, c, "hidden", m)
	for _, tc := range []struct {
		stream string
		code   esdb.ErrorCode
	}{
		{"missing", esdb.ErrorCodeResourceNotFound},
		{"$$missing", esdb.ErrorCodeResourceNotFound},
		{"deleted", esdb.ErrorCodeResourceNotFound},
		{"ended", esdb.ErrorCodeStreamDeleted},
		{"$$ended", esdb.ErrorCodeStreamDeleted},
		{"hidden", -1},
	} {
		for _, read := range []func(testing.TB, *esdb.Client, string, esdb.StreamPosition, uint64) ([]*esdb.RecordedEvent, error){readForward, readBackward} {
			got, err := read(t, c, tc.stream, esdb.Revision(0), 10)
			if len(got) != 0 || code(err) != tc.code {
				t.Errorf("%s: %d events, %v", tc.stream, len(got), err)
			}
		}
	}
}

// eventstore.md, Server contract: on $all forward is inclusive, backward exclusive.
func TestReadAll(t *testing.T) {
	c := connect(t, serve(t, Config{}))
	if got := readAll(t, c, esdb.End{}, esdb.Backwards, 10); len(got) != 0 {
		t.Fatal("an empty log has events")
	}
	for i := range 600 {
		if i%3 == 0 {
			mustAppend(t, c, fmt.Sprint("s", i%7), esdb.Any{}, newEvents(3)...)
		}
	}
	all := readAll(t, c, esdb.Start{}, esdb.Forwards, 10_000)
	if len(all) != 600 {
		t.Fatal(len(all))
	}
	for i := range all[1:] {
		if all[i].Position.Commit >= all[i+1].Position.Commit {
			t.Fatal("positions don't grow")
		}
	}
	p := all[300].Position
	for _, tc := range []struct {
		name  string
		from  esdb.AllPosition
		dir   esdb.Direction
		n     uint64
		first int
		want  int
	}{
		{"forward inclusive", p, esdb.Forwards, 400, 300, 300},
		{"forward, some", p, esdb.Forwards, 3, 300, 3},
		{"forward from the end", esdb.End{}, esdb.Forwards, 3, 0, 0},
		{"forward from beyond the end", esdb.Position{Commit: 1 << 50, Prepare: 1 << 50}, esdb.Forwards, 3, 0, 0},
		{"backward exclusive", p, esdb.Backwards, 400, 299, 300},
		{"backward, some", p, esdb.Backwards, 3, 299, 3},
		{"backward from the end", esdb.End{}, esdb.Backwards, 700, 599, 600},
		{"backward from the start", esdb.Start{}, esdb.Backwards, 3, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := readAll(t, c, tc.from, tc.dir, tc.n)
			if len(got) != tc.want {
				t.Fatalf("%d events", len(got))
			}
			for i, e := range got {
				want := tc.first + i
				if tc.dir == esdb.Backwards {
					want = tc.first - i
				}
				if e.EventID != all[want].EventID {
					t.Fatalf("event %d is the wrong one", i)
				}
			}
		})
	}
}

// eventstore.md, Server contract: $maxAge, $maxCount, $tb.
func TestMetadataHidesEvents(t *testing.T) {
	clock := newTestClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	c := connect(t, serve(t, Config{Clock: clock.now}))
	for _, tc := range []struct {
		name string
		set  func(*esdb.StreamMetadata)
		want string
	}{
		{"none", func(*esdb.StreamMetadata) {}, "0 1 2 3 4 5 6 7 8 9 "},
		{"$maxCount", func(m *esdb.StreamMetadata) { m.SetMaxCount(3) }, "7 8 9 "},
		{"$maxCount beyond", func(m *esdb.StreamMetadata) { m.SetMaxCount(30) }, "0 1 2 3 4 5 6 7 8 9 "},
		{"$tb", func(m *esdb.StreamMetadata) { m.SetTruncateBefore(6) }, "6 7 8 9 "},
		{"$tb beyond", func(m *esdb.StreamMetadata) { m.SetTruncateBefore(60) }, ""},
		{"$maxAge", func(m *esdb.StreamMetadata) { m.SetMaxAge(5 * time.Second) }, "5 6 7 8 9 "},
		{"$maxAge over all", func(m *esdb.StreamMetadata) { m.SetMaxAge(time.Hour) }, "0 1 2 3 4 5 6 7 8 9 "},
		{"all three", func(m *esdb.StreamMetadata) {
			m.SetMaxAge(5 * time.Second)
			m.SetMaxCount(8)
			m.SetTruncateBefore(7)
		}, "7 8 9 "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for range 10 {
				mustAppend(t, c, tc.name, esdb.Any{}, newEvents(1)...)
				clock.add(time.Second)
			}
			m := esdb.StreamMetadata{}
			tc.set(&m)
			setMetadata(t, c, tc.name, m)
			got, err := readForward(t, c, tc.name, esdb.Start{}, 100)
			if err != nil || revisions(got) != tc.want {
				t.Errorf("forward %s, %v", revisions(got), err)
			}
			back, err := readBackward(t, c, tc.name, esdb.End{}, 100)
			if err != nil || len(back) != len(got) {
				t.Errorf("backward %s, %v", revisions(back), err)
			}
		})
	}
	t.Run("all events too old", func(t *testing.T) {
		clock.add(time.Hour)
		got, err := readForward(t, c, "$maxAge", esdb.Start{}, 100)
		if err != nil || len(got) != 0 {
			t.Errorf("%s, %v", revisions(got), err)
		}
	})
}

// eventstore.md, Server contract: metadata streams behave as maxCount 1.
func TestMetadataStreamShowsItsLast(t *testing.T) {
	c := connect(t, serve(t, Config{}))
	for i := range 4 {
		m := esdb.StreamMetadata{}
		m.SetMaxCount(uint64(i + 1))
		m.AddCustomProperty("color", "red")
		setMetadata(t, c, "s", m)
	}
	got, err := readForward(t, c, "$$s", esdb.Start{}, 100)
	if err != nil || revisions(got) != "3 " || got[0].EventType != "$metadata" {
		t.Fatal(revisions(got), err)
	}
	m, err := c.GetStreamMetadata(context.Background(), "s", esdb.ReadStreamOptions{})
	if err != nil || *m.MaxCount() != 4 || m.CustomProperty("color") != "red" {
		t.Fatal(m, err)
	}
}

// eventstore.md, Server contract: a delete writes $tb to the metadata stream,
// and a later append goes on with the old revisions.
func TestDeleteAndRevive(t *testing.T) {
	c := connect(t, serve(t, Config{}))
	ctx := context.Background()
	mustAppend(t, c, "s", esdb.NoStream{}, newEvents(3)...)
	res, err := c.DeleteStream(ctx, "s", esdb.DeleteStreamOptions{ExpectedRevision: esdb.Revision(2)})
	if err != nil || res.Position.Commit == 0 || res.Position.Commit != res.Position.Prepare {
		t.Fatal(res, err)
	}
	meta, err := readForward(t, c, "$$s", esdb.Start{}, 10)
	if err != nil || string(meta[0].Data) != `{"$tb":9223372036854775807}` || meta[0].Position != res.Position {
		t.Fatal(meta, err)
	}
	mustAppend(t, c, "s", esdb.NoStream{}, newEvents(2)...)
	got, err := readForward(t, c, "s", esdb.Start{}, 10)
	if err != nil || revisions(got) != "3 4 " {
		t.Fatal(revisions(got), err)
	}
	m, err := c.GetStreamMetadata(ctx, "s", esdb.ReadStreamOptions{})
	if err != nil || m.TruncateBefore() == nil || *m.TruncateBefore() != 3 {
		t.Fatal(m, err)
	}
}

func TestTombstoneEvent(t *testing.T) {
	c := connect(t, serve(t, Config{}))
	mustAppend(t, c, "s", esdb.NoStream{}, newEvents(1)...)
	res, err := c.TombstoneStream(context.Background(), "s", esdb.TombstoneStreamOptions{ExpectedRevision: esdb.Revision(0)})
	if err != nil {
		t.Fatal(err)
	}
	all := readAll(t, c, esdb.Start{}, esdb.Forwards, 10)
	last := all[len(all)-1]
	if last.EventType != "$streamDeleted" || last.EventNumber != 1<<63-1 || last.StreamID != "s" || last.Position != res.Position {
		t.Fatalf("%+v", last)
	}
}

// A link is followed where the reader asks for it, and stays where its target is gone.
func TestReadResolvesLinks(t *testing.T) {
	c := connect(t, serve(t, Config{}))
	ctx := context.Background()
	target := newEvents(2)
	mustAppend(t, c, "target", esdb.NoStream{}, target...)
	link := func(body string) esdb.EventData {
		return esdb.EventData{EventID: uuid.New(), EventType: "$>", Data: []byte(body)}
	}
	mustAppend(t, c, "links", esdb.NoStream{}, link("1@target"), link("7@target"), link("nonsense"))
	s, err := c.ReadStream(ctx, "links", esdb.ReadStreamOptions{From: esdb.Start{}, ResolveLinkTos: true}, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e, err := s.Recv()
	if err != nil || e.Link == nil || e.Event.EventID != target[1].EventID || e.OriginalEvent().StreamID != "links" {
		t.Fatalf("%+v, %v", e, err)
	}
	for range 2 {
		if e, err = s.Recv(); err != nil || e.Link != nil || e.Event.EventType != "$>" {
			t.Fatalf("%+v, %v", e, err)
		}
	}
}

// eventstore.md, Client facts: every event needs its created time, and ids come in the form asked for.
func TestReadWireForm(t *testing.T) {
	s := serve(t, Config{})
	id := uuid.New()
	mustAppend(t, connect(t, s), "s", esdb.NoStream{}, newEvent(id))
	read, err := stub(t, s).Read(context.Background(), &streams.ReadReq{Options: &streams.ReadReq_Options{
		StreamOption: &streams.ReadReq_Options_Stream{Stream: &streams.ReadReq_Options_StreamOptions{
			StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte("s")},
			RevisionOption:   &streams.ReadReq_Options_StreamOptions_Start{Start: &shared.Empty{}},
		}},
		CountOption:   &streams.ReadReq_Options_Count{Count: 5},
		UuidOption:    &streams.ReadReq_Options_UUIDOption{Content: &streams.ReadReq_Options_UUIDOption_String_{String_: &shared.Empty{}}},
		FilterOption:  &streams.ReadReq_Options_NoFilter{NoFilter: &shared.Empty{}},
		ControlOption: &streams.ReadReq_Options_ControlOption{Compatibility: 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := read.Recv()
	if err != nil {
		t.Fatal(err)
	}
	e := m.GetEvent().GetEvent()
	if e.GetId().GetString_() != id.String() || e.GetMetadata()["created"] == "" || e.GetMetadata()["type"] != "made" ||
		e.GetMetadata()["content-type"] != "application/json" || string(e.GetStreamIdentifier().GetStreamName()) != "s" {
		t.Fatal(e)
	}
}
