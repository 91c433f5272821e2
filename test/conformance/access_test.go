package conformance

import (
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const accessDenied = "eventstore.md, Errors on the wire: PermissionDenied; exception=access-denied"

var access = []check{
	{"gossip and features for everyone", "eventstore.md, Client facts: Gossip.Read, then ServerFeatures.GetSupportedMethods, both anonymous", func(t *testing.T, n *node) {
		info, err := gossip.NewGossipClient(n.conn).Read(nobody(t), &shared.Empty{})
		if err != nil || len(info.GetMembers()) == 0 {
			t.Fatal(info, err)
		}
		leaders := 0
		for _, m := range info.GetMembers() {
			if m.GetState() == gossip.MemberInfo_Leader && m.GetIsAlive() && m.GetHttpEndPoint().GetPort() > 0 {
				leaders++
			}
		}
		if leaders != 1 {
			t.Fatal(info)
		}
		methods, err := serverfeatures.NewServerFeaturesClient(n.conn).GetSupportedMethods(nobody(t), &shared.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		named := map[string]bool{}
		for _, m := range methods.GetMethods() {
			named[m.GetServiceName()+"/"+m.GetMethodName()] = true
		}
		for _, m := range []string{"read", "append", "delete", "tombstone", "batchappend"} {
			if !named["event_store.client.streams.streams/"+m] {
				t.Error(m + " is not named")
			}
		}
	}},
	{"the version", "eventstore.md, Client facts: version text must be up to three dot-separated integers", func(t *testing.T, n *node) {
		if v, err := n.client.GetServerVersion(); err != nil || v.Major < 22 {
			t.Fatal(v, err)
		}
	}},
	{"wrong credentials", "eventstore.md, Conformance: wrong credentials refused; client: append_test.go, appendToSystemStreamWithIncorrectCredentials", secured(func(t *testing.T, n *node) {
		_, err := n.client.AppendToStream(nobody(t), stream(), esdb.AppendToStreamOptions{
			ExpectedRevision: esdb.Any{}, Authenticated: &esdb.Credentials{Login: "bad_user", Password: "bad_password"},
		}, events(1)...)
		wants(t, err, esdb.ErrorCodeUnauthenticated)
	})},
	{"the list of users", "client: containers_test.go, WaitForAdminToBeAvailable", secured(func(t *testing.T, n *node) {
		got, err := n.read(t, "$users", esdb.ReadStreamOptions{}, 1)
		if err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
	})},
	{"system streams are closed", "docs: Security, Access control lists, default ACL: $systemStreamAcl is for $admins; " + accessDenied, secured(func(t *testing.T, n *node) {
		for _, name := range []string{"$users", "$$$all"} {
			denied(t, n, name)
		}
	})},
	{"a list of readers", "docs: Security, Access control lists, $acl.$r; " + accessDenied, secured(func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(1)...)
		n.describe(t, s, func(m *esdb.StreamMetadata) {
			var a esdb.Acl
			a.AddReadRoles("$admins")
			m.SetAcl(a)
		})
		denied(t, n, s)
		if _, err := n.read(t, s, esdb.ReadStreamOptions{}, 1); err != nil {
			t.Fatal(err)
		}
	})},
}

// secured leaves a check out where the node has no users.
func secured(run func(*testing.T, *node)) func(*testing.T, *node) {
	return func(t *testing.T, n *node) {
		if n.config.DisableTLS || n.config.Username == "" {
			t.Skip("the node is open to everybody")
		}
		run(t, n)
	}
}

// denied fails the test unless a stream is closed to who comes without credentials.
func denied(t *testing.T, n *node, name string) {
	t.Helper()
	var trailer metadata.MD
	r, err := n.streams().Read(nobody(t), readRequest(name), grpc.Trailer(&trailer))
	if err == nil {
		_, err = r.Recv()
	}
	if status.Code(err) != codes.PermissionDenied {
		t.Fatal(name, err)
	}
	trails(t, trailer, "exception", "access-denied")
}
