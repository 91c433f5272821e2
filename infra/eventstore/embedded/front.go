package embedded

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/persistent"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

// handshakeTime is how long a connection may take until it speaks the protocol.
const handshakeTime = 10 * time.Second

// NetworkConfig opens the store to other programs, always over TLS.
type NetworkConfig struct {
	// Listen are the addresses, host:port; port 0 picks a free one. A program
	// gives one. Several make the server look like a cluster of as many members
	// over one store, of which the last leads: that is for trying clients.
	Listen []string
	// Advertise is the address that clients are told to come to, host:port; empty
	// is the address listened on. It is for a single address only.
	Advertise string
	// TLS holds the certificate.
	TLS *tls.Config
	// Users are who may come in.
	Users *Users
}

func (c *NetworkConfig) check() error {
	switch {
	case len(c.Listen) == 0:
		return errors.New("the event store's network needs an address to listen on")
	case c.TLS == nil:
		return errors.New("the event store listens on a network over TLS only: it needs a certificate")
	case c.Users == nil:
		return errors.New("the event store listens on a network for users only: it needs some")
	case c.Advertise != "" && len(c.Listen) > 1:
		return errors.New("several members each are where they listen: no other address can be advertised")
	}
	return nil
}

// maxCalls bounds the calls that are open at once on one connection, subscriptions
// counted; further ones wait in the client.
const maxCalls = 4096

// front is one way into the server, with the rules that hold for who comes by it.
type front struct {
	server   *Server
	listener net.Listener
	rpc      *grpc.Server
	users    *Users // nil at the unix socket
	member   member
	served   chan error // takes what Serve returned
}

// newFront makes a way in. Without users whoever can connect is the owner.
func (s *Server) newFront(l net.Listener, m member, network *NetworkConfig) *front {
	f := &front{server: s, listener: l, member: m, served: make(chan error, 1)}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxReceive),
		grpc.MaxSendMsgSize(maxReceive),
		grpc.MaxConcurrentStreams(maxCalls),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.ConnectionTimeout(handshakeTime),
		grpc.ChainUnaryInterceptor(f.guardUnary),
		grpc.ChainStreamInterceptor(f.guardStream),
		grpc.WaitForHandlers(true),
		grpc.ForceServerCodecV2(newCodec()),
	}
	if network != nil {
		f.users = network.Users
		options = append(options, grpc.Creds(credentials.NewTLS(network.TLS)))
	}
	f.rpc = grpc.NewServer(options...)
	streams.RegisterStreamsServer(f.rpc, &streamsService{server: s, store: s.store})
	persistent.RegisterPersistentSubscriptionsServer(f.rpc, &persistentService{server: s, subs: s.subs})
	serverfeatures.RegisterServerFeaturesServer(f.rpc, featuresService{})
	gossip.RegisterGossipServer(f.rpc, gossipService{front: f})
	return f
}

func (f *front) serve() {
	go func() { f.served <- f.rpc.Serve(f.listener) }()
}

// openNetwork listens on every address of the network. What it has opened comes
// back with an error too, for the caller to close.
func (s *Server) openNetwork(ctx context.Context, c *NetworkConfig) (fronts []*front, err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	for i, address := range c.Listen {
		l, err := lc.Listen(ctx, "tcp", address)
		if err != nil {
			return fronts, fmt.Errorf("listen for the event store's clients: %w", err)
		}
		fronts = append(fronts, &front{listener: l})
		host, port, err := advertised(address, c.Advertise, l)
		if err != nil {
			return fronts, err
		}
		m := member{id: memberID(s.store.id, i), host: host, port: port, leads: i == len(c.Listen)-1}
		fronts[i] = s.newFront(l, m, c)
	}
	return fronts, nil
}

// advertised tells where clients reach a listener: where the operator says, or
// else under the host that it was opened with.
func advertised(listen, advertise string, l net.Listener) (host string, port uint32, err error) {
	from := listen
	if advertise != "" {
		from = advertise
	}
	host, text, err := net.SplitHostPort(from)
	if err != nil {
		return "", 0, fmt.Errorf("the event store's address: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return "", 0, fmt.Errorf("the event store listens on every address (%s): tell which of them clients are to use", listen)
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("the event store's address: the port must be a number: %q", text)
	}
	if n == 0 {
		n = uint64(l.Addr().(*net.TCPAddr).Port)
	}
	return host, uint32(n), nil
}
