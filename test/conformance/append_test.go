package conformance

import (
	"bytes"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const appendRules = "eventstore.md, Append rules: "

var appending = []check{
	{"a new stream", "eventstore.md, Server contract: success {current_revision, position}: position of the last event", func(t *testing.T, n *node) {
		s := stream()
		w := n.append(t, s, esdb.NoStream{}, events(3)...)
		got, err := n.read(t, s, esdb.ReadStreamOptions{From: esdb.End{}, Direction: esdb.Backwards}, 1)
		if err != nil || w.NextExpectedVersion != 2 || len(got) != 1 || w.CommitPosition != got[0].OriginalEvent().Position.Commit {
			t.Fatal(w, got, err)
		}
	}},
	{"no events", "eventstore.md, Server contract: zero events is legal", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.NoStream{}, events(2)...)
		if w := n.append(t, s, esdb.Any{}); w.NextExpectedVersion != 1 {
			t.Fatal(w)
		}
	}},
	{"tombstoned", appendRules + "tombstoned → StreamDeleted", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(1)...)
		n.tombstone(t, s)
		_, err := n.try(t, s, esdb.Any{}, events(1)...)
		wants(t, err, esdb.ErrorCodeStreamDeleted)
	}},
	{"a revision to come", appendRules + "expected > current → wrong version", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(2)...)
		_, err := n.try(t, s, esdb.Revision(5), events(1)...)
		wants(t, err, esdb.ErrorCodeWrongExpectedVersion)
	}},
	{"the revision, with an id that was used", appendRules + "expected == current → write, even if an event id was used before", func(t *testing.T, n *node) {
		s, e := stream(), events(1)
		n.append(t, s, esdb.NoStream{}, e...)
		if w := n.append(t, s, esdb.Revision(0), e...); w.NextExpectedVersion != 1 {
			t.Fatal(w)
		}
	}},
	{"an old revision, the same events", appendRules + "success without writing when all given ids sit at exactly the following revisions; the original last revision and its position", func(t *testing.T, n *node) {
		s, e := stream(), events(4)
		n.append(t, s, esdb.NoStream{}, e[0])
		first := n.append(t, s, esdb.Revision(0), e[1:3]...)
		n.append(t, s, esdb.Revision(2), e[3])
		again := n.append(t, s, esdb.Revision(0), e[1:3]...)
		if again.NextExpectedVersion != first.NextExpectedVersion || again.CommitPosition != first.CommitPosition {
			t.Fatal(first, again)
		}
	}},
	{"an old revision, some of the events", appendRules + "partly or otherwise → wrong version", func(t *testing.T, n *node) {
		s, e := stream(), events(4)
		n.append(t, s, esdb.NoStream{}, e[:3]...)
		for _, given := range [][]esdb.EventData{{e[1], e[3]}, {e[2]}, {e[3]}} {
			_, err := n.try(t, s, esdb.Revision(0), given...)
			wants(t, err, esdb.ErrorCodeWrongExpectedVersion)
		}
	}},
	{"no stream, the same events", appendRules + "no_stream on an existing stream: success without writing", func(t *testing.T, n *node) {
		s, e := stream(), events(2)
		first := n.append(t, s, esdb.NoStream{}, e...)
		if again := n.append(t, s, esdb.NoStream{}, e...); again.CommitPosition != first.CommitPosition || again.NextExpectedVersion != 1 {
			t.Fatal(first, again)
		}
	}},
	{"no stream, others", appendRules + "no_stream on an existing stream, otherwise → wrong version", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.NoStream{}, events(1)...)
		_, err := n.try(t, s, esdb.NoStream{}, events(1)...)
		wants(t, err, esdb.ErrorCodeWrongExpectedVersion)
	}},
	{"no stream, on a deleted one", appendRules + "no_stream on a soft-deleted stream writes", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.NoStream{}, events(2)...)
		n.delete(t, s)
		if w := n.append(t, s, esdb.NoStream{}, events(1)...); w.NextExpectedVersion != 2 {
			t.Fatal(w)
		}
	}},
	{"any, events that are there", appendRules + "any: every id known in that stream → idempotent success", func(t *testing.T, n *node) {
		s, e := stream(), events(3)
		first := n.append(t, s, esdb.Any{}, e[:2]...)
		n.append(t, s, esdb.Any{}, e[2])
		if again := n.append(t, s, esdb.Any{}, e[:2]...); again.NextExpectedVersion != 1 || again.CommitPosition != first.CommitPosition {
			t.Fatal(first, again)
		}
	}},
	{"any, some of which are there", appendRules + "any: partly known → wrong version", func(t *testing.T, n *node) {
		s, e := stream(), events(2)
		n.append(t, s, esdb.Any{}, e[0])
		_, err := n.try(t, s, esdb.Any{}, e...)
		wants(t, err, esdb.ErrorCodeWrongExpectedVersion)
	}},
	{"stream exists, on none", "client: append_test.go, appendWithInvalidStreamRevision", func(t *testing.T, n *node) {
		_, err := n.try(t, stream(), esdb.StreamExists{}, events(1)...)
		wants(t, err, esdb.ErrorCodeWrongExpectedVersion)
	}},
	{"stream exists, on a deleted one", appendRules + "stream_exists on a soft-deleted stream → StreamDeleted", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(1)...)
		n.delete(t, s)
		_, err := n.try(t, s, esdb.StreamExists{}, events(1)...)
		wants(t, err, esdb.ErrorCodeStreamDeleted)
	}},
	{"a wrong version is a message", "eventstore.md, Server contract: wrong expected version on append is a normal response message (current_revision or current_no_stream, and the expected_* field)", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(3)...)
		o := optionsOf(s)
		o.ExpectedStreamRevision = &streams.AppendReq_Options_Revision{Revision: 9}
		resp, _, err := n.raw(t, o)
		if w := resp.GetWrongExpectedVersion(); err != nil || w.GetCurrentRevision() != 2 || w.GetExpectedRevision() != 9 {
			t.Fatal(resp, err)
		}
		o = optionsOf(stream())
		o.ExpectedStreamRevision = &streams.AppendReq_Options_StreamExists{StreamExists: &shared.Empty{}}
		resp, _, err = n.raw(t, o)
		if w := resp.GetWrongExpectedVersion(); err != nil || w.GetCurrentNoStream() == nil || w.GetExpectedStreamExists() == nil {
			t.Fatal(resp, err)
		}
	}},
	{"too large", "eventstore.md, Errors on the wire: InvalidArgument; exception=maximum-append-size-exceeded, maximum-append-size", func(t *testing.T, n *node) {
		_, trailer, err := n.raw(t, optionsOf(stream()), bytes.Repeat([]byte("x"), 1<<20), []byte("more"))
		if status.Code(err) != codes.InvalidArgument {
			t.Fatal(err)
		}
		trails(t, trailer, "exception", "maximum-append-size-exceeded")
		trails(t, trailer, "maximum-append-size", "1048576")
	}},
	{"metadata streams keep their last", "eventstore.md, Server contract: metadata streams $$… behave as maxCount 1", func(t *testing.T, n *node) {
		s := stream()
		for i := range 3 {
			n.describe(t, s, func(m *esdb.StreamMetadata) { m.SetMaxCount(uint64(i + 1)) })
		}
		got, err := n.read(t, "$$"+s, esdb.ReadStreamOptions{From: esdb.Start{}}, 10)
		if err != nil || revisions(got) != "[2]" {
			t.Fatal(revisions(got), err)
		}
	}},
}

func optionsOf(name string) *streams.AppendReq_Options {
	return &streams.AppendReq_Options{
		StreamIdentifier:       identifier(name),
		ExpectedStreamRevision: &streams.AppendReq_Options_Any{Any: &shared.Empty{}},
	}
}

func identifier(name string) *shared.StreamIdentifier {
	return &shared.StreamIdentifier{StreamName: []byte(name)}
}

// raw appends by the stub: an event for each of the given bodies, or one that is empty.
func (n *node) raw(t *testing.T, o *streams.AppendReq_Options, bodies ...[]byte) (*streams.AppendResp, metadata.MD, error) {
	t.Helper()
	var trailer metadata.MD
	a, err := n.streams().Append(n.admin(t), grpc.Trailer(&trailer))
	if err != nil {
		t.Fatal(err)
	}
	msgs := []*streams.AppendReq{{Content: &streams.AppendReq_Options_{Options: o}}}
	if bodies == nil {
		bodies = [][]byte{nil}
	}
	for _, b := range bodies {
		e := events(1)[0]
		msgs = append(msgs, &streams.AppendReq{Content: &streams.AppendReq_ProposedMessage_{ProposedMessage: &streams.AppendReq_ProposedMessage{
			Id:       &shared.UUID{Value: &shared.UUID_String_{String_: e.EventID.String()}},
			Metadata: map[string]string{"type": e.EventType, "content-type": "application/octet-stream"}, Data: b,
		}}})
	}
	for _, m := range msgs {
		if a.Send(m) != nil {
			break // the answer tells why
		}
	}
	resp, err := a.CloseAndRecv()
	return resp, trailer, err
}

// trails fails the test unless a trailer has a value.
func trails(t *testing.T, md metadata.MD, key, want string) {
	t.Helper()
	if got := md.Get(key); len(got) != 1 || got[0] != want {
		t.Errorf("trailer %s is %q, want %q", key, got, want)
	}
}
