package conformance

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const deleteContract = "eventstore.md, Server contract: "

var deleting = []check{
	{"delete", "client: delete_test.go, canDeleteStream", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.NoStream{}, events(1)...)
		d, err := n.client.DeleteStream(nobody(t), s, esdb.DeleteStreamOptions{ExpectedRevision: esdb.Revision(0)})
		if err != nil || d.Position.Commit == 0 {
			t.Fatal(d, err)
		}
		_, err = n.read(t, s, esdb.ReadStreamOptions{From: esdb.Start{}}, 1)
		wants(t, err, esdb.ErrorCodeResourceNotFound)
	}},
	{"delete writes metadata", deleteContract + `delete writes $metadata {"$tb": 9223372036854775807} to $$stream`, func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(1)...)
		n.delete(t, s)
		got, err := n.read(t, "$$"+s, esdb.ReadStreamOptions{From: esdb.End{}, Direction: esdb.Backwards}, 1)
		if err != nil || len(got) != 1 || got[0].Event.EventType != "$metadata" {
			t.Fatal(got, err)
		}
		var m map[string]json.Number
		if err := json.Unmarshal(got[0].Event.Data, &m); err != nil || m["$tb"] != "9223372036854775807" {
			t.Fatal(string(got[0].Event.Data), err)
		}
	}},
	{"write again", deleteContract + "a later append goes on with the old revisions", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(3)...)
		n.delete(t, s)
		n.append(t, s, esdb.Any{}, events(1)...)
		got, err := n.read(t, s, esdb.ReadStreamOptions{From: esdb.Start{}}, 10)
		if err != nil || revisions(got) != "[3]" {
			t.Fatal(revisions(got), err)
		}
	}},
	{"a wrong version", "eventstore.md, Errors on the wire: FailedPrecondition; exception=wrong-expected-version, stream-name, expected-version, actual-version", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(3)...)
		var trailer metadata.MD
		_, err := n.streams().Delete(n.admin(t), &streams.DeleteReq{Options: &streams.DeleteReq_Options{
			StreamIdentifier: identifier(s), ExpectedStreamRevision: &streams.DeleteReq_Options_Revision{Revision: 7},
		}}, grpc.Trailer(&trailer))
		if status.Code(err) != codes.FailedPrecondition {
			t.Fatal(err)
		}
		trails(t, trailer, "exception", "wrong-expected-version")
		trails(t, trailer, "stream-name", s)
		trails(t, trailer, "expected-version", "7")
		trails(t, trailer, "actual-version", "2")
	}},
	{"tombstone", "client: delete_test.go, canTombstoneStream; " + deleteContract + "$streamDeleted at revision 2^63-1", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(1)...)
		d, err := n.client.TombstoneStream(nobody(t), s, esdb.TombstoneStreamOptions{ExpectedRevision: esdb.Revision(0)})
		if err != nil {
			t.Fatal(err)
		}
		got, err := n.log(t, esdb.ReadAllOptions{From: d.Position}, 1)
		if err != nil || len(got) != 1 || got[0].Event.EventType != "$streamDeleted" || got[0].Event.EventNumber != math.MaxInt64 || got[0].Event.StreamID != s {
			t.Fatal(got, err)
		}
	}},
	{"delete what is tombstoned", "docs: Deleting streams and events, hard delete: the stream can't be used again", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(1)...)
		n.tombstone(t, s)
		_, err := n.client.DeleteStream(nobody(t), s, esdb.DeleteStreamOptions{ExpectedRevision: esdb.Any{}})
		wants(t, err, esdb.ErrorCodeStreamDeleted)
	}},
}
