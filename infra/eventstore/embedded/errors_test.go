package embedded

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func identifier(stream string) *shared.StreamIdentifier {
	return &shared.StreamIdentifier{StreamName: []byte(stream)}
}

func readRequest(stream string) *streams.ReadReq {
	return &streams.ReadReq{Options: &streams.ReadReq_Options{
		StreamOption: &streams.ReadReq_Options_Stream{Stream: &streams.ReadReq_Options_StreamOptions{
			StreamIdentifier: identifier(stream),
			RevisionOption:   &streams.ReadReq_Options_StreamOptions_Start{Start: &shared.Empty{}},
		}},
		CountOption: &streams.ReadReq_Options_Count{Count: 5},
	}}
}

func optionsMessage(stream string, f func(*streams.AppendReq_Options)) *streams.AppendReq {
	o := &streams.AppendReq_Options{StreamIdentifier: identifier(stream), ExpectedStreamRevision: &streams.AppendReq_Options_Any{Any: &shared.Empty{}}}
	if f != nil {
		f(o)
	}
	return &streams.AppendReq{Content: &streams.AppendReq_Options_{Options: o}}
}

func proposedMessage(f func(*streams.AppendReq_ProposedMessage)) *streams.AppendReq {
	m := &streams.AppendReq_ProposedMessage{
		Id:       structuredUUID(uuid.New()),
		Metadata: map[string]string{"type": "made", "content-type": contentJSON},
		Data:     []byte("{}"),
	}
	if f != nil {
		f(m)
	}
	return &streams.AppendReq{Content: &streams.AppendReq_ProposedMessage_{ProposedMessage: m}}
}

// sendAppend sends an append message by message and gives what came back.
func sendAppend(c streams.StreamsClient, msgs ...*streams.AppendReq) (*streams.AppendResp, metadata.MD, error) {
	var trailer metadata.MD
	a, err := c.Append(context.Background(), grpc.Trailer(&trailer))
	if err != nil {
		return nil, nil, err
	}
	for _, m := range msgs {
		if err := a.Send(m); err != nil {
			return nil, nil, err // the server answered early
		}
	}
	resp, err := a.CloseAndRecv()
	return resp, trailer, err
}

// TestErrorsOnTheWire goes through eventstore.md, "Errors on the wire".
func TestErrorsOnTheWire(t *testing.T) {
	s := serve(t, Config{})
	c, raw := connect(t, s), stub(t, s)
	ctx := context.Background()
	mustAppend(t, c, "three", esdb.NoStream{}, newEvents(3)...)
	mustAppend(t, c, "ended", esdb.NoStream{}, newEvents(1)...)
	if _, err := c.TombstoneStream(ctx, "ended", esdb.TombstoneStreamOptions{}); err != nil {
		t.Fatal(err)
	}
	big := bytes.Repeat([]byte("x"), maxAppend/2+1)
	for _, tc := range []struct {
		name    string
		call    func(*metadata.MD) error
		code    codes.Code
		trailer map[string]string
	}{
		{"read of a tombstoned stream", func(md *metadata.MD) error {
			r, err := raw.Read(ctx, readRequest("ended"), grpc.Trailer(md))
			if err != nil {
				return err
			}
			_, err = r.Recv()
			return err
		}, codes.FailedPrecondition, map[string]string{"exception": "stream-deleted", "stream-name": "ended"}},
		{"append to a tombstoned stream", func(md *metadata.MD) error {
			_, trailer, err := sendAppend(raw, optionsMessage("ended", nil), proposedMessage(nil))
			*md = trailer
			return err
		}, codes.FailedPrecondition, map[string]string{"exception": "stream-deleted", "stream-name": "ended"}},
		{"delete of a tombstoned stream", func(md *metadata.MD) error {
			_, err := raw.Delete(ctx, deleteRequest("ended", nil), grpc.Trailer(md))
			return err
		}, codes.FailedPrecondition, map[string]string{"exception": "stream-deleted", "stream-name": "ended"}},
		{"wrong version on delete", func(md *metadata.MD) error {
			seven := uint64(7)
			_, err := raw.Delete(ctx, deleteRequest("three", &seven), grpc.Trailer(md))
			return err
		}, codes.FailedPrecondition, map[string]string{
			"exception": "wrong-expected-version", "stream-name": "three", "expected-version": "7", "actual-version": "2",
		}},
		{"delete of a missing stream", func(md *metadata.MD) error {
			_, err := raw.Delete(ctx, deleteRequest("missing", nil), grpc.Trailer(md))
			return err
		}, codes.FailedPrecondition, map[string]string{
			"exception": "wrong-expected-version", "stream-name": "missing", "expected-version": "-2", "actual-version": "-1",
		}},
		{"too large", func(md *metadata.MD) error {
			large := func(m *streams.AppendReq_ProposedMessage) { m.Data = big }
			_, trailer, err := sendAppend(raw, optionsMessage("large", nil), proposedMessage(large), proposedMessage(large), proposedMessage(nil))
			*md = trailer
			return err
		}, codes.InvalidArgument, map[string]string{"exception": "maximum-append-size-exceeded", "maximum-append-size": "1048576"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var md metadata.MD
			err := tc.call(&md)
			if status.Code(err) != tc.code {
				t.Fatal(err)
			}
			for k, v := range tc.trailer {
				if got := md.Get(k); len(got) != 1 || got[0] != v {
					t.Errorf("trailer %s is %q, want %q", k, got, v)
				}
			}
		})
	}
}

func deleteRequest(stream string, revision *uint64) *streams.DeleteReq {
	o := &streams.DeleteReq_Options{StreamIdentifier: identifier(stream), ExpectedStreamRevision: &streams.DeleteReq_Options_Any{Any: &shared.Empty{}}}
	if revision != nil {
		o.ExpectedStreamRevision = &streams.DeleteReq_Options_Revision{Revision: *revision}
	}
	return &streams.DeleteReq{Options: o}
}

// eventstore.md, Server contract: a wrong expected version on append is a
// normal message with both revisions.
func TestWrongVersionIsAMessage(t *testing.T) {
	s := serve(t, Config{})
	mustAppend(t, connect(t, s), "three", esdb.NoStream{}, newEvents(3)...)
	resp, _, err := sendAppend(stub(t, s), optionsMessage("three", func(o *streams.AppendReq_Options) {
		o.ExpectedStreamRevision = &streams.AppendReq_Options_Revision{Revision: 9}
	}), proposedMessage(nil))
	if w := resp.GetWrongExpectedVersion(); err != nil || w.GetCurrentRevision() != 2 || w.GetExpectedRevision() != 9 {
		t.Fatal(resp, err)
	}
	resp, _, err = sendAppend(stub(t, s), optionsMessage("missing", func(o *streams.AppendReq_Options) {
		o.ExpectedStreamRevision = &streams.AppendReq_Options_StreamExists{StreamExists: &shared.Empty{}}
	}), proposedMessage(nil))
	if w := resp.GetWrongExpectedVersion(); err != nil || w.GetCurrentNoStream() == nil || w.GetExpectedStreamExists() == nil {
		t.Fatal(resp, err)
	}
}

// eventstore.md, Server contract: the request is drained to its end before the
// answer, errors too; answered early, the client's send fails and the code is lost.
func TestAppendIsDrainedBeforeAnError(t *testing.T) {
	raw := stub(t, serve(t, Config{}))
	filler := make([]*streams.AppendReq, 300)
	for i := range filler {
		filler[i] = proposedMessage(func(m *streams.AppendReq_ProposedMessage) { m.Data = bytes.Repeat([]byte("x"), 4000) })
	}
	for _, tc := range []struct {
		name  string
		first *streams.AppendReq
		text  string
	}{
		{"no stream name", optionsMessage("", nil), "no name"},
		{"stream name too long", optionsMessage(strings.Repeat("s", maxStreamName+1), nil), "longer"},
		{"stream name not UTF-8", optionsMessage("\xff", nil), "UTF-8"},
		{"$all", optionsMessage("$all", nil), "can't be written"},
		{"metadata of metadata", optionsMessage("$$$$s", nil), "no metadata"},
		{"no expectation", optionsMessage("s", func(o *streams.AppendReq_Options) { o.ExpectedStreamRevision = nil }), "no expected revision"},
		{"revision out of range", optionsMessage("s", func(o *streams.AppendReq_Options) {
			o.ExpectedStreamRevision = &streams.AppendReq_Options_Revision{Revision: 1 << 63}
		}), "out of range"},
		{"options missing", proposedMessage(nil), "come first"},
		{"unknown part", &streams.AppendReq{}, "unknown part"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := sendAppend(raw, append([]*streams.AppendReq{tc.first}, filler...)...)
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), tc.text) {
				t.Fatal(err)
			}
		})
	}
	for name, f := range map[string]func(*streams.AppendReq_ProposedMessage){
		"no id":    func(m *streams.AppendReq_ProposedMessage) { m.Id = nil },
		"empty id": func(m *streams.AppendReq_ProposedMessage) { m.Id = structuredUUID(uuid.Nil) },
		"id no UUID": func(m *streams.AppendReq_ProposedMessage) {
			m.Id = &shared.UUID{Value: &shared.UUID_String_{String_: "x"}}
		},
		"no type":         func(m *streams.AppendReq_ProposedMessage) { delete(m.Metadata, "type") },
		"no content type": func(m *streams.AppendReq_ProposedMessage) { delete(m.Metadata, "content-type") },
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := sendAppend(raw, append([]*streams.AppendReq{optionsMessage("s", nil), proposedMessage(f)}, filler...)...)
			if status.Code(err) != codes.InvalidArgument {
				t.Fatal(err)
			}
		})
	}
	t.Run("options twice", func(t *testing.T) {
		_, _, err := sendAppend(raw, optionsMessage("s", nil), optionsMessage("s", nil))
		if status.Code(err) != codes.InvalidArgument {
			t.Fatal(err)
		}
	})
	t.Run("nothing at all", func(t *testing.T) {
		if _, _, err := sendAppend(raw); status.Code(err) != codes.InvalidArgument {
			t.Fatal(err)
		}
	})
}

func TestReadRequestsThatMakeNoSense(t *testing.T) {
	raw := stub(t, serve(t, Config{}))
	for name, f := range map[string]func(*streams.ReadReq_Options){
		"no count":           func(o *streams.ReadReq_Options) { o.CountOption = nil },
		"no stream":          func(o *streams.ReadReq_Options) { o.StreamOption = nil },
		"no revision":        func(o *streams.ReadReq_Options) { o.GetStream().RevisionOption = nil },
		"filter on a stream": func(o *streams.ReadReq_Options) { o.FilterOption = filterOption(1, "a") },
		"backward subscription": func(o *streams.ReadReq_Options) {
			o.ReadDirection = streams.ReadReq_Options_Backwards
			o.CountOption = &streams.ReadReq_Options_Subscription{}
		},
		"filter with multiplier 0": func(o *streams.ReadReq_Options) { wholeLog(o); o.FilterOption = filterOption(0, "a") },
		"empty filter":             func(o *streams.ReadReq_Options) { wholeLog(o); o.FilterOption = filterOption(1) },
		"bad regular expression": func(o *streams.ReadReq_Options) {
			wholeLog(o)
			f := filterOption(1)
			f.Filter.GetStreamIdentifier().Regex = "("
			o.FilterOption = f
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := readRequest("s")
			f(req.Options)
			r, err := raw.Read(context.Background(), req)
			if err == nil {
				_, err = r.Recv()
			}
			if status.Code(err) != codes.InvalidArgument {
				t.Fatal(err)
			}
		})
	}
	r, err := raw.Read(context.Background(), &streams.ReadReq{})
	if err == nil {
		_, err = r.Recv()
	}
	if status.Code(err) != codes.InvalidArgument {
		t.Fatal(err)
	}
}

func wholeLog(o *streams.ReadReq_Options) {
	o.StreamOption = &streams.ReadReq_Options_All{All: &streams.ReadReq_Options_AllOptions{
		AllOption: &streams.ReadReq_Options_AllOptions_Start{Start: &shared.Empty{}},
	}}
}

func filterOption(multiplier uint32, prefixes ...string) *streams.ReadReq_Options_Filter {
	return &streams.ReadReq_Options_Filter{Filter: &streams.ReadReq_Options_FilterOptions{
		Filter: &streams.ReadReq_Options_FilterOptions_StreamIdentifier{
			StreamIdentifier: &streams.ReadReq_Options_FilterOptions_Expression{Prefix: prefixes},
		},
		Window:                       &streams.ReadReq_Options_FilterOptions_Max{Max: 32},
		CheckpointIntervalMultiplier: multiplier,
	}}
}
