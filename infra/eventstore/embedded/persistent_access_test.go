package embedded

import (
	"context"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/persistent"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// consumeAs begins a consumer's call in the name of a user.
func consumeAs(t *testing.T, raw persistent.PersistentSubscriptionsClient, user, stream string) (persistent.PersistentSubscriptions_ReadClient, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(as(user))
	t.Cleanup(cancel)
	r, err := raw.Read(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.Send(readOptions(stream, 5, nil)); err != nil {
		return nil, err
	}
	_, err = r.Recv()
	return r, err
}

// TestGroupAccess: eventstore.md, access denied: groups are made by operators
// and read by who may read their streams.
func TestGroupAccess(t *testing.T) {
	s, ca := serveNetwork(t, 1)
	c, raw := connect(t, s), persistent.NewPersistentSubscriptionsClient(dial(t, s, ca, 0))
	if _, err := raw.Create(as("ada"), createRequest("s", "g", nil)); status.Code(err) != codes.PermissionDenied {
		t.Fatal(err)
	}
	for _, stream := range []string{"s", "mine"} {
		if _, err := raw.Create(as("ops"), createRequest(stream, "g", nil)); err != nil {
			t.Fatal(err)
		}
	}
	mustAppend(t, c, "secret", esdb.NoStream{}, newEvents(1)...)
	acl := func(stream, readers string) {
		t.Helper()
		e := esdb.EventData{EventID: uuid.New(), EventType: metadataType, ContentType: esdb.ContentTypeJson, Data: []byte(`{"$acl":{"$r":"` + readers + `"}}`)}
		mustAppend(t, c, metadataPrefix+stream, esdb.Any{}, e)
	}
	acl("secret", "$admins")
	acl("mine", "bob")
	if _, err := consumeAs(t, raw, "", "s"); status.Code(err) != codes.PermissionDenied {
		t.Fatal(err)
	}
	if _, err := consumeAs(t, raw, "ada", "mine"); status.Code(err) != codes.PermissionDenied {
		t.Fatal(err)
	}
	// Of a group that is not there, nobody learns who may not read the stream.
	if _, err := consumeAs(t, raw, "ada", "secret"); status.Code(err) != codes.PermissionDenied {
		t.Fatal(err)
	}
	bob, err := consumeAs(t, raw, "bob", "mine")
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, c, "mine", esdb.NoStream{}, newEvents(1)...)
	if m, err := bob.Recv(); err != nil || m.GetEvent().GetEvent().GetStreamRevision() != 0 {
		t.Fatal(m, err)
	}
	info, err := raw.GetInfo(as("ada"), &persistent.GetInfoReq{Options: &persistent.GetInfoReq_Options{
		StreamOption: &persistent.GetInfoReq_Options_StreamIdentifier{StreamIdentifier: identifier("mine")}, GroupName: "g",
	}})
	if err != nil || len(info.GetSubscriptionInfo().GetConnections()) != 1 {
		t.Fatal(info, err)
	}
	if got := info.GetSubscriptionInfo().GetConnections()[0]; got.GetUsername() != "bob" || got.GetFrom() == "" {
		t.Fatal(got)
	}
	// A list that changes ends the call of who may read no more.
	acl("mine", "ops")
	mustAppend(t, c, "mine", esdb.Any{}, newEvents(1)...)
	if _, err := bob.Recv(); status.Code(err) != codes.PermissionDenied {
		t.Fatal(err)
	}
}

// TestGroupLinkAccess: a link is no way around the list of the stream it points at.
func TestGroupLinkAccess(t *testing.T) {
	s, ca := serveNetwork(t, 1)
	c, raw := connect(t, s), persistent.NewPersistentSubscriptionsClient(dial(t, s, ca, 0))
	mustAppend(t, c, "secret", esdb.NoStream{}, newEvents(1)...)
	mustAppend(t, c, "$$secret", esdb.Any{}, esdb.EventData{EventID: uuid.New(), EventType: metadataType, ContentType: esdb.ContentTypeJson, Data: []byte(`{"$acl":{"$r":"$admins"}}`)})
	mustAppend(t, c, "links", esdb.NoStream{}, esdb.EventData{EventID: uuid.New(), EventType: linkType, ContentType: esdb.ContentTypeBinary, Data: []byte("0@secret")})
	req := createRequest("links", "g", func(o *persistent.CreateReq_Options) { o.Settings.ResolveLinks, o.Settings.MaxRetryCount = true, 9 })
	if _, err := raw.Create(as("ops"), req); err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]string{"ada": "links", "admin": "secret"} {
		r, err := consumeAs(t, raw, user, "links")
		if err != nil {
			t.Fatal(err)
		}
		m, err := r.Recv()
		if err != nil || string(m.GetEvent().GetEvent().GetStreamIdentifier().GetStreamName()) != want {
			t.Fatal(user, m, err)
		}
		if err := r.Send(&persistent.ReadReq{Content: &persistent.ReadReq_Nack_{Nack: &persistent.ReadReq_Nack{
			Ids: nil, Action: persistent.ReadReq_Nack_Stop,
		}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Recv(); status.Code(err) != codes.Canceled {
			t.Fatal(err)
		}
	}
}

// TestGroupFollower: eventstore.md, not leader; client test
// notLeaderExceptionButWorkAfterRetry.
func TestGroupFollower(t *testing.T) {
	s, ca := serveNetwork(t, 3)
	follower, leader := persistent.NewPersistentSubscriptionsClient(dial(t, s, ca, 0)), persistent.NewPersistentSubscriptionsClient(dial(t, s, ca, 2))
	var md metadata.MD
	_, err := follower.Create(as("admin"), createRequest("s", "g", nil), grpc.Trailer(&md))
	if status.Code(err) != codes.NotFound || md.Get("exception")[0] != exceptionNotLeader || md.Get("leader-endpoint-host")[0] != "localhost" {
		t.Fatal(err, md)
	}
	if _, err := consumeAs(t, follower, "admin", "s"); status.Code(err) != codes.NotFound {
		t.Fatal(err)
	}
	if _, err := leader.Create(as("admin"), createRequest("s", "g", nil)); err != nil {
		t.Fatal(err)
	}
}
