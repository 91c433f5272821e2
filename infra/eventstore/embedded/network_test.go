package embedded

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/persistent"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// testUsers are admin, ops, ada, and bob of the group readers; each has
// "secret-" and the name as password. Their hashes are cheap: under the race
// detector a good one takes a second.
var testUsers = sync.OnceValues(func() (string, error) {
	var lines strings.Builder
	for name, groups := range map[string]string{"admin": groupAdmins, "ops": groupOps, "ada": "", "bob": "readers"} {
		hash, err := bcrypt.GenerateFromPassword([]byte("secret-"+name), bcrypt.MinCost)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&lines, "%s:%s:%s\n", name, hash, groups)
	}
	return lines.String(), nil
})

// serveNetwork opens a server with as many members on the network as wanted.
func serveNetwork(t testing.TB, members int) (s *Server, ca string) {
	t.Helper()
	dir := t.TempDir()
	settings, err := OwnCertificate(dir, []string{"localhost"}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := testUsers()
	if err != nil {
		t.Fatal(err)
	}
	users, err := parseUsers(strings.NewReader(lines), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	c := &NetworkConfig{TLS: settings, Users: users}
	for range members {
		c.Listen = append(c.Listen, "localhost:0")
	}
	return serve(t, Config{Network: c}), filepath.Join(dir, CAFile)
}

// dial connects to the n-th member of the network.
func dial(t testing.TB, s *Server, ca string, n int) *grpc.ClientConn {
	t.Helper()
	trust, err := credentials.NewClientTLSFromFile(ca, "")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(s.NetworkAddresses()[n], grpc.WithTransportCredentials(trust))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// as is a context in which calls carry a user's name and password; empty is nobody.
func as(name string) context.Context {
	if name == "" {
		return context.Background()
	}
	return withBasic(name + ":secret-" + name)
}

func withBasic(text string) context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), "authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(text)))
}

// appendAs appends one event and gives what came back.
func appendAs(ctx context.Context, c streams.StreamsClient, stream string) (metadata.MD, error) {
	var trailer metadata.MD
	a, err := c.Append(ctx, grpc.Trailer(&trailer))
	if err != nil {
		return nil, err
	}
	for _, m := range []*streams.AppendReq{optionsMessage(stream, nil), proposedMessage(nil)} {
		if err := a.Send(m); err != nil {
			return nil, fmt.Errorf("answered early: %w", err)
		}
	}
	_, err = a.CloseAndRecv()
	return trailer, err
}

// readAs reads a stream as far as its first answer.
func readAs(ctx context.Context, c streams.StreamsClient, req *streams.ReadReq) (*streams.ReadResp, metadata.MD, error) {
	var trailer metadata.MD
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := c.Read(ctx, req, grpc.Trailer(&trailer))
	if err != nil {
		return nil, nil, err
	}
	m, err := r.Recv()
	return m, trailer, err
}

// eventstore.md, Conformance: wrong credentials are refused, and without any
// there is Gossip and ServerFeatures ("Both anonymous").
func TestCredentials(t *testing.T) {
	s, ca := serveNetwork(t, 1)
	conn := dial(t, s, ca, 0)
	c := streams.NewStreamsClient(conn)
	for _, tc := range []struct {
		name string
		ctx  context.Context
		want codes.Code
	}{
		{"right", as("admin"), codes.OK},
		{"right, remembered", as("admin"), codes.OK},
		{"wrong password", withBasic("admin:secret-ada"), codes.Unauthenticated},
		{"unknown user", withBasic("eve:secret-eve"), codes.Unauthenticated},
		{"no colon", withBasic("admin"), codes.Unauthenticated},
		{"password with a tail that bcrypt would not see", withBasic("admin:secret-admin" + strings.Repeat("\x00", 80)), codes.Unauthenticated},
		{"another scheme", metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer x"), codes.Unauthenticated},
		{"no base64", metadata.AppendToOutgoingContext(context.Background(), "authorization", "Basic ???"), codes.Unauthenticated},
		{"twice", metadata.AppendToOutgoingContext(as("admin"), "authorization", "Basic x"), codes.Unauthenticated},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := appendAs(tc.ctx, c, "s"); status.Code(err) != tc.want {
				t.Fatal(err)
			}
		})
	}
	if _, err := gossip.NewGossipClient(conn).Read(context.Background(), &shared.Empty{}); err != nil {
		t.Error(err)
	}
	if _, err := serverfeatures.NewServerFeaturesClient(conn).GetSupportedMethods(context.Background(), &shared.Empty{}); err != nil {
		t.Error(err)
	}
}

// eventstore.md, Conformance: "the last port leads, … followers answering
// not-leader to persistent-subscription calls"; Errors on the wire: not leader.
func TestMembers(t *testing.T) {
	s, ca := serveNetwork(t, 3)
	info, err := gossip.NewGossipClient(dial(t, s, ca, 1)).Read(context.Background(), &shared.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	var states, addresses []string
	for _, m := range info.GetMembers() {
		states = append(states, m.GetState().String())
		addresses = append(addresses, net.JoinHostPort(m.GetHttpEndPoint().GetAddress(), fmt.Sprint(m.GetHttpEndPoint().GetPort())))
	}
	if fmt.Sprint(states) != "[Follower Follower Leader]" || fmt.Sprint(addresses) != fmt.Sprint(s.NetworkAddresses()) {
		t.Fatal(states, addresses, s.NetworkAddresses())
	}
	host, port, _ := net.SplitHostPort(s.NetworkAddresses()[2])
	leader := metadata.AppendToOutgoingContext(as("admin"), "requires-leader", "true")
	for n, want := range []codes.Code{codes.NotFound, codes.NotFound, codes.OK} {
		c := streams.NewStreamsClient(dial(t, s, ca, n))
		trailer, err := appendAs(leader, c, "s")
		if status.Code(err) != want {
			t.Fatal(n, err)
		}
		if want == codes.NotFound {
			got := []any{trailer.Get("exception"), trailer.Get("leader-endpoint-host"), trailer.Get("leader-endpoint-port")}
			if fmt.Sprint(got...) != fmt.Sprintf("[not-leader] [%s] [%s]", host, port) {
				t.Error(n, trailer)
			}
		}
		if _, err := appendAs(as("admin"), c, "s"); err != nil {
			t.Errorf("member %d: an append that any member may take: %v", n, err)
		}
	}
}

// The store is never served over a network without TLS, without users, or
// under an address that no client could use.
func TestNetworkSettings(t *testing.T) {
	lines, err := testUsers()
	if err != nil {
		t.Fatal(err)
	}
	users, err := parseUsers(strings.NewReader(lines), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	one := []string{"localhost:0"}
	for name, tc := range map[string]struct {
		network NetworkConfig
		says    string
	}{
		"no TLS":        {NetworkConfig{Listen: one, Users: users}, "TLS"},
		"no users":      {NetworkConfig{Listen: one, TLS: &tls.Config{MinVersion: tls.VersionTLS12}}, "users"},
		"no address":    {NetworkConfig{TLS: &tls.Config{MinVersion: tls.VersionTLS12}, Users: users}, "address"},
		"every address": {NetworkConfig{Listen: []string{"0.0.0.0:0"}, TLS: &tls.Config{MinVersion: tls.VersionTLS12}, Users: users}, "every address"},
		"in use":        {NetworkConfig{Listen: []string{busy(t)}, TLS: &tls.Config{MinVersion: tls.VersionTLS12}, Users: users}, "in use"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(context.Background(), Config{Dir: t.TempDir(), Socket: socketPath(t), DiskReserve: -1, Network: &tc.network})
			if err == nil {
				closeServer(t, s)
			}
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Fatal(err)
			}
		})
	}
}

// eventstore.md, Server contract: "Drain the request stream to its end before
// answering, errors too". A refusal at the door is no exception: a client whose
// send fails never learns why.
func TestRefusalsAreNotEarly(t *testing.T) {
	s, ca := serveNetwork(t, 1)
	conn := dial(t, s, ca, 0)
	wrong := withBasic("admin:wrong")
	for range 20 {
		if _, err := appendAs(wrong, streams.NewStreamsClient(conn), "s"); status.Code(err) != codes.Unauthenticated {
			t.Fatal(err)
		}
		r, err := persistent.NewPersistentSubscriptionsClient(conn).Read(wrong)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond) // the refusal would be here by now
		if err := r.Send(readOptions("s", 5, nil)); err != nil {
			t.Fatal("answered before it was asked:", err)
		}
		if _, err := r.Recv(); status.Code(err) != codes.Unauthenticated {
			t.Fatal(err)
		}
	}
}

// busy is an address that is taken.
func busy(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}
