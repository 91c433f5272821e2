package embedded

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func TestACLForms(t *testing.T) {
	ada, bob := principal{name: "ada"}, principal{name: "bob", groups: []string{"readers"}}
	admin, nobody := principal{name: "root", groups: []string{groupAdmins}}, principal{}
	for _, tc := range []struct {
		name, metadata, settings, stream string
		who                              principal
		want                             access
		permitted                        bool
	}{
		{"no list: a user", ``, ``, "s", ada, accessWrite, true},
		{"no list: nobody", ``, ``, "s", nobody, accessRead, false},
		{"no list: a system stream", ``, ``, "$s", ada, accessRead, false},
		{"no list: a system stream, admin", ``, ``, "$s", admin, accessRead, true},
		{"a name", `{"$acl":{"$r":"ada"}}`, ``, "s", ada, accessRead, true},
		{"another name", `{"$acl":{"$r":"ada"}}`, ``, "s", bob, accessRead, false},
		{"what the list leaves out", `{"$acl":{"$r":"ada"}}`, ``, "s", bob, accessWrite, true},
		{"null leaves out", `{"$acl":{"$r":null}}`, ``, "s", bob, accessRead, true},
		{"a group", `{"$acl":{"$d":["x","readers"]}}`, ``, "s", bob, accessDelete, true},
		{"an empty list", `{"$acl":{"$r":[]}}`, ``, "s", ada, accessRead, false},
		{"an empty list, admin", `{"$acl":{"$r":[]}}`, ``, "s", admin, accessRead, true},
		{"everyone", `{"$acl":{"$r":"$all"}}`, ``, "s", nobody, accessRead, true},
		{"the empty name is nobody's", `{"$acl":{"$r":""}}`, ``, "s", nobody, accessRead, false},
		{"a system stream opened", `{"$acl":{"$r":"ada"}}`, ``, "$all", ada, accessRead, true},
		{"a default for users' streams", ``, `{"$userStreamAcl":{"$r":"$all","$w":"bob"}}`, "s", nobody, accessRead, true},
		{"a default for users' streams, not of it", ``, `{"$userStreamAcl":{"$r":"$all","$w":"bob"}}`, "s", ada, accessWrite, false},
		{"a default for system streams", ``, `{"$systemStreamAcl":{"$r":["readers"]}}`, "$s", bob, accessRead, true},
		{"a default left as it is", ``, `{"$systemStreamAcl":{"$r":["readers"]}}`, "$s", bob, accessWrite, false},
		{"a list by its name", `{"$acl":"$systemStreamAcl"}`, ``, "s", ada, accessRead, false},
		{"the other list by its name", `{"$acl":"$userStreamAcl"}`, ``, "$s", ada, accessRead, true},
		{"an unknown name of a list opens nothing", `{"$acl":"open"}`, ``, "s", ada, accessRead, false},
		{"a slip opens nothing", `{"$acl":{"$r":7}}`, ``, "s", ada, accessRead, false},
		{"a slip in a list opens nothing", `{"$acl":{"$r":["ada",7]}}`, ``, "s", ada, accessRead, false},
		{"metadata that can't be read opens nothing", `{`, ``, "s", ada, accessRead, false},
		{"metadata that is no object opens nothing", `["ada"]`, ``, "s", ada, accessRead, false},
		{"metadata that can't be read, admin", `{`, ``, "s", admin, accessRead, true},
		{"settings that can't be read open nothing", ``, `{`, "s", ada, accessRead, false},
		{"settings that can't be read open no system stream", ``, `{`, "$s", ada, accessRead, false},
		{"settings that can't be read, a list of its own", `{"$acl":{"$r":"ada"}}`, `{`, "s", ada, accessRead, true},
		{"settings that can't be read, admin", ``, `{`, "s", admin, accessWrite, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := parseSettings([]byte(tc.settings)).of(tc.stream, []byte(tc.metadata)).permits(tc.who, tc.want); got != tc.permitted {
				t.Fatal(got)
			}
		})
	}
}

// Every way to a stream asks its list: eventstore.md, Errors on the wire, "access denied".
func TestAccess(t *testing.T) {
	s, ca := serveNetwork(t, 1)
	c := streams.NewStreamsClient(dial(t, s, ca, 0))
	setList := func(stream, list string) {
		t.Helper()
		a, err := c.Append(as("admin"))
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Send(optionsMessage("$$"+stream, nil))
		_ = a.Send(proposedMessage(func(m *streams.AppendReq_ProposedMessage) {
			m.Metadata["type"], m.Data = metadataType, []byte(list)
			if !json.Valid(m.Data) {
				t.Fatal(list)
			}
		}))
		if _, err := a.CloseAndRecv(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := appendAs(as("admin"), c, "theirs"); err != nil {
		t.Fatal(err)
	}
	setList("theirs", `{"$acl":{"$r":["bob"],"$w":"bob","$d":"$admins","$mr":"ada","$mw":"ada"}}`)
	setList("open", `{"$acl":{"$r":"$all"}}`)

	read := func(stream string, f func(*streams.ReadReq_Options)) func(context.Context) (metadata.MD, error) {
		return func(ctx context.Context) (metadata.MD, error) {
			req := readRequest(stream)
			if f != nil {
				f(req.Options)
			}
			_, trailer, err := readAs(ctx, c, req)
			return trailer, err
		}
	}
	subscribe := func(o *streams.ReadReq_Options) { o.CountOption = &streams.ReadReq_Options_Subscription{} }
	write := func(stream string) func(context.Context) (metadata.MD, error) {
		return func(ctx context.Context) (metadata.MD, error) { return appendAs(ctx, c, stream) }
	}
	for _, tc := range []struct {
		name    string
		call    func(context.Context) (metadata.MD, error)
		in, out []string // whom it lets in and whom not
	}{
		{"read", read("theirs", nil), []string{"bob", "admin"}, []string{"", "ada", "ops"}},
		{"subscribe", read("theirs", subscribe), []string{"bob", "admin"}, []string{"", "ada", "ops"}},
		{"append", write("theirs"), []string{"bob", "admin"}, []string{"", "ada", "ops"}},
		{"read its metadata", read("$$theirs", nil), []string{"ada", "admin"}, []string{"", "bob"}},
		{"read the whole log", read("", wholeLog), []string{"admin"}, []string{"", "ada", "bob", "ops"}},
		{"subscribe to the whole log", read("", func(o *streams.ReadReq_Options) { wholeLog(o); subscribe(o) }), []string{"admin"}, []string{"", "ada"}},
		{"a stream that says everyone", read("open", nil), []string{"", "ada"}, nil},
		{"a stream that says nothing", read("plain", nil), []string{"ada"}, []string{""}},
		{"write to what everyone may read", write("open"), []string{"ada"}, []string{""}},
		{"the list of users", read("$users", nil), []string{"admin"}, []string{"", "ada"}},
		{"the settings", write("$settings"), nil, []string{"", "ada", "ops"}},
		{"soft delete", func(ctx context.Context) (metadata.MD, error) {
			var trailer metadata.MD
			_, err := c.Delete(ctx, deleteRequest("theirs", nil), grpc.Trailer(&trailer))
			return trailer, err
		}, nil, []string{"", "ada", "bob"}},
		{"tombstone", func(ctx context.Context) (metadata.MD, error) {
			var trailer metadata.MD
			_, err := c.Tombstone(ctx, &streams.TombstoneReq{Options: &streams.TombstoneReq_Options{
				StreamIdentifier: identifier("theirs"), ExpectedStreamRevision: &streams.TombstoneReq_Options_Any{},
			}}, grpc.Trailer(&trailer))
			return trailer, err
		}, nil, []string{"", "ada", "bob"}},
		{"change its metadata", write("$$theirs"), []string{"ada"}, []string{"", "bob"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, who := range tc.out {
				trailer, err := tc.call(as(who))
				if status.Code(err) != codes.PermissionDenied || len(trailer.Get("exception")) != 1 || trailer.Get("exception")[0] != "access-denied" {
					t.Errorf("%q: %v %v", who, err, trailer)
				}
			}
			for _, who := range tc.in {
				if _, err := tc.call(as(who)); err != nil {
					t.Errorf("%q: %v", who, err)
				}
			}
		})
	}
	t.Run("the socket's owner is an admin", func(t *testing.T) {
		raw := stub(t, s)
		for name, req := range map[string]*streams.ReadReq{"the whole log": readRequest(""), "users": readRequest("$users")} {
			if name == "the whole log" {
				wholeLog(req.Options)
			}
			if _, _, err := readAs(context.Background(), raw, req); err != nil {
				t.Error(name, err)
			}
		}
	})
}

// Who follows a stream or the log is cut off when the list no longer lets him in.
func TestAccessTakenFromSubscribers(t *testing.T) {
	s, ca := serveNetwork(t, 1)
	c := streams.NewStreamsClient(dial(t, s, ca, 0))
	admin := stub(t, s)
	list := func(stream, body string) {
		t.Helper()
		_, _, err := sendAppend(admin, optionsMessage("$$"+stream, nil), proposedMessage(func(m *streams.AppendReq_ProposedMessage) {
			m.Metadata["type"], m.Data = metadataType, []byte(body)
		}))
		if err != nil {
			t.Fatal(err)
		}
	}
	list("$all", `{"$acl":{"$r":"ada"}}`)
	for name, change := range map[string]func(*streams.ReadReq_Options){"$all": wholeLog, "s": nil} {
		t.Run(name, func(t *testing.T) {
			req := readRequest(name)
			if change != nil {
				change(req.Options)
			}
			req.Options.CountOption = &streams.ReadReq_Options_Subscription{}
			r, err := c.Read(as("ada"), req)
			if err != nil {
				t.Fatal(err)
			}
			if m, err := r.Recv(); err != nil || m.GetConfirmation() == nil {
				t.Fatal(m, err)
			}
			list(name, `{"$acl":{"$r":"bob"}}`)
			for err == nil {
				_, err = r.Recv()
			}
			if status.Code(err) != codes.PermissionDenied {
				t.Fatal(err)
			}
		})
	}
}

// A link is no way around the list of the stream that it points at.
func TestAccessThroughLinks(t *testing.T) {
	s, ca := serveNetwork(t, 1)
	admin := stub(t, s)
	for _, msgs := range [][]*streams.AppendReq{
		{optionsMessage("theirs", nil), proposedMessage(nil)},
		{optionsMessage("$$theirs", nil), proposedMessage(func(m *streams.AppendReq_ProposedMessage) {
			m.Metadata["type"], m.Data = metadataType, []byte(`{"$acl":{"$r":"bob"}}`)
		})},
		{optionsMessage("links", nil), proposedMessage(func(m *streams.AppendReq_ProposedMessage) {
			m.Metadata["type"], m.Data = linkType, []byte("0@theirs")
		})},
	} {
		if _, _, err := sendAppend(admin, msgs...); err != nil {
			t.Fatal(err)
		}
	}
	c := streams.NewStreamsClient(dial(t, s, ca, 0))
	req := readRequest("links")
	req.Options.ResolveLinks = true
	for who, want := range map[string]string{"bob": "theirs", "ada": "links"} {
		m, _, err := readAs(as(who), c, req)
		if err != nil || string(m.GetEvent().GetEvent().GetStreamIdentifier().GetStreamName()) != want {
			t.Error(who, m, err)
		}
	}
}
