package conformance

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const readContract = "eventstore.md, Server contract: "

var reading = []check{
	{"a stream, forward and backward", readContract + "forward is inclusive of the given revision; backward on a stream inclusive", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(5)...)
		for _, tc := range []struct {
			o     esdb.ReadStreamOptions
			limit uint64
			want  string
		}{
			{esdb.ReadStreamOptions{From: esdb.Start{}}, 10, "[0 1 2 3 4]"},
			{esdb.ReadStreamOptions{From: esdb.Revision(2)}, 2, "[2 3]"},
			{esdb.ReadStreamOptions{From: esdb.End{}, Direction: esdb.Backwards}, 2, "[4 3]"},
			{esdb.ReadStreamOptions{From: esdb.Revision(2), Direction: esdb.Backwards}, 10, "[2 1 0]"},
			{esdb.ReadStreamOptions{From: esdb.Revision(9)}, 10, "[]"},
			{esdb.ReadStreamOptions{From: esdb.Revision(9), Direction: esdb.Backwards}, 1, "[4]"},
		} {
			got, err := n.read(t, s, tc.o, tc.limit)
			if err != nil || revisions(got) != tc.want {
				t.Errorf("%+v: %s %v", tc.o, revisions(got), err)
			}
		}
	}},
	{"the log, forward and backward", readContract + "forward is inclusive of the given position; backward exclusive on $all", func(t *testing.T, n *node) {
		s := stream()
		w := n.append(t, s, esdb.Any{}, events(2)...)
		at := esdb.Position{Commit: w.CommitPosition, Prepare: w.PreparePosition}
		got, err := n.log(t, esdb.ReadAllOptions{From: at}, 1)
		if err != nil || len(got) != 1 || got[0].Event.StreamID != s || got[0].Event.EventNumber != 1 {
			t.Fatal(got, err)
		}
		got, err = n.log(t, esdb.ReadAllOptions{From: at, Direction: esdb.Backwards}, 1)
		if err != nil || len(got) != 1 || got[0].Event.Position.Commit >= w.CommitPosition {
			t.Fatal(got, err)
		}
		from, err := n.log(t, esdb.ReadAllOptions{From: esdb.Start{}}, 2)
		if err != nil || len(from) != 2 || from[0].Event.Position.Commit >= from[1].Event.Position.Commit {
			t.Fatal(from, err)
		}
	}},
	{"no such stream", readContract + "missing → stream_not_found; client: read_stream_test.go, readStreamNotFound", func(t *testing.T, n *node) {
		_, err := n.read(t, stream(), esdb.ReadStreamOptions{From: esdb.Start{}}, 1)
		wants(t, err, esdb.ErrorCodeResourceNotFound)
	}},
	{"deleted", readContract + "soft-deleted stream → stream_not_found", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(1)...)
		n.delete(t, s)
		_, err := n.read(t, s, esdb.ReadStreamOptions{From: esdb.Start{}}, 1)
		wants(t, err, esdb.ErrorCodeResourceNotFound)
	}},
	{"tombstoned", "eventstore.md, Errors on the wire: FailedPrecondition; exception=stream-deleted, stream-name (required); client: delete_test.go, detectStreamDeleted", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(1)...)
		n.tombstone(t, s)
		_, trailer, err := n.first(t, readRequest(s))
		if status.Code(err) != codes.FailedPrecondition {
			t.Fatal(err)
		}
		trails(t, trailer, "exception", "stream-deleted")
		trails(t, trailer, "stream-name", s)
	}},
	{"nothing visible", readContract + "a stream with nothing visible → zero events", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(2)...)
		n.describe(t, s, func(m *esdb.StreamMetadata) { m.SetTruncateBefore(7) })
		got, err := n.read(t, s, esdb.ReadStreamOptions{From: esdb.Start{}}, 10)
		if err != nil || len(got) != 0 {
			t.Fatal(got, err)
		}
	}},
	{"$tb and $maxCount", "docs: Streams, Stream metadata, $tb and $maxCount", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(5)...)
		n.describe(t, s, func(m *esdb.StreamMetadata) { m.SetTruncateBefore(3) })
		got, err := n.read(t, s, esdb.ReadStreamOptions{From: esdb.Start{}}, 10)
		if err != nil || revisions(got) != "[3 4]" {
			t.Fatal(revisions(got), err)
		}
		n.describe(t, s, func(m *esdb.StreamMetadata) { m.SetMaxCount(1) })
		got, err = n.read(t, s, esdb.ReadStreamOptions{From: esdb.Start{}}, 10)
		if err != nil || revisions(got) != "[4]" {
			t.Fatal(revisions(got), err)
		}
	}},
	{"$maxAge", "client: read_stream_test.go, readStreamWithMaxAge", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(2)...)
		n.describe(t, s, func(m *esdb.StreamMetadata) { m.SetMaxAge(time.Second) })
		for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
			got, err := n.read(t, s, esdb.ReadStreamOptions{From: esdb.Start{}}, 10)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) == 0 {
				return
			}
			if time.Since(began) > 30*time.Second {
				t.Fatal("still there")
			}
		}
	}},
	{"links", "docs: Reading events, resolveLinkTos; eventstore.md, Store", func(t *testing.T, n *node) {
		s, links := stream(), stream()
		n.append(t, s, esdb.Any{}, events(3)...)
		n.append(t, links, esdb.Any{}, esdb.EventData{
			EventID: uuid.New(), EventType: "$>", ContentType: esdb.ContentTypeBinary, Data: fmt.Appendf(nil, "1@%s", s),
		})
		got, err := n.read(t, links, esdb.ReadStreamOptions{From: esdb.Start{}, ResolveLinkTos: true}, 1)
		if err != nil || len(got) != 1 || got[0].Link == nil || got[0].Event == nil || got[0].Event.StreamID != s || got[0].Event.EventNumber != 1 {
			t.Fatal(got, err)
		}
		got, err = n.read(t, links, esdb.ReadStreamOptions{From: esdb.Start{}}, 1)
		if err != nil || len(got) != 1 || got[0].OriginalEvent().EventType != "$>" {
			t.Fatal(got, err)
		}
	}},
	{"the form of an event", readContract + "every event needs metadata created (decimal 100 ns ticks since 1970), type, content-type, a stream identifier, commit = prepare position", func(t *testing.T, n *node) {
		s := stream()
		before := time.Now().Add(-time.Minute)
		n.append(t, s, esdb.Any{}, events(1)...)
		m, _, err := n.first(t, readRequest(s))
		e := m.GetEvent().GetEvent()
		if err != nil || e == nil {
			t.Fatal(m, err)
		}
		ticks, err := strconv.ParseInt(e.GetMetadata()["created"], 10, 64)
		created := time.Unix(0, ticks*100)
		switch {
		case err != nil || created.Before(before) || created.After(before.Add(10*time.Minute)):
			t.Error(e.GetMetadata(), err)
		case e.GetMetadata()["type"] != "made" || e.GetMetadata()["content-type"] != "application/json":
			t.Error(e.GetMetadata())
		case string(e.GetStreamIdentifier().GetStreamName()) != s:
			t.Error(e.GetStreamIdentifier())
		case e.GetCommitPosition() == 0 || e.GetCommitPosition() != e.GetPreparePosition():
			t.Error(e.GetCommitPosition(), e.GetPreparePosition())
		case string(e.GetCustomMetadata()) != `{"m":1}` || string(e.GetData()) != `{"i":0}`:
			t.Error(string(e.GetCustomMetadata()), string(e.GetData()))
		}
	}},
	{"events and nothing else", readContract + "a read may answer only event or stream_not_found; position messages only when control_option.compatibility ≥ 1", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(3)...)
		r, err := n.streams().Read(n.admin(t), readRequest(s))
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for {
			m, err := r.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || m.GetEvent() == nil {
				t.Fatal(m, err)
			}
			count++
		}
		if count != 3 {
			t.Fatal(count)
		}
	}},
	{"ids in either form", "docs: gRPC, streams.proto, ReadReq.uuid_option", func(t *testing.T, n *node) {
		s, e := stream(), events(1)
		n.append(t, s, esdb.Any{}, e...)
		req := readRequest(s)
		for _, text := range []bool{false, true} {
			req.Options.UuidOption = &streams.ReadReq_Options_UUIDOption{Content: &streams.ReadReq_Options_UUIDOption_Structured{Structured: &shared.Empty{}}}
			if text {
				req.Options.UuidOption.Content = &streams.ReadReq_Options_UUIDOption_String_{String_: &shared.Empty{}}
			}
			m, _, err := n.first(t, req)
			id := m.GetEvent().GetEvent().GetId()
			if err != nil || (id.GetStructured() == nil) != text || uuidOf(id) != e[0].EventID.String() {
				t.Error(text, id, err)
			}
		}
	}},
}

func readRequest(name string) *streams.ReadReq {
	return &streams.ReadReq{Options: &streams.ReadReq_Options{
		StreamOption: &streams.ReadReq_Options_Stream{Stream: &streams.ReadReq_Options_StreamOptions{
			StreamIdentifier: identifier(name),
			RevisionOption:   &streams.ReadReq_Options_StreamOptions_Start{Start: &shared.Empty{}},
		}},
		CountOption:  &streams.ReadReq_Options_Count{Count: 10},
		FilterOption: &streams.ReadReq_Options_NoFilter{NoFilter: &shared.Empty{}},
		UuidOption:   &streams.ReadReq_Options_UUIDOption{Content: &streams.ReadReq_Options_UUIDOption_Structured{Structured: &shared.Empty{}}},
	}}
}

// first reads by the stub up to the first answer.
func (n *node) first(t *testing.T, req *streams.ReadReq) (*streams.ReadResp, metadata.MD, error) {
	t.Helper()
	var trailer metadata.MD
	r, err := n.streams().Read(n.admin(t), req, grpc.Trailer(&trailer))
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Recv()
	return m, trailer, err
}
