package embedded

import (
	"context"
	"encoding/binary"
	"net"
	"strconv"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// member is what a client is told of a way into the server. There is one
// store and so no election: who leads is settled when the server opens.
type member struct {
	id    uuid.UUID
	host  string // or the path of a socket
	port  uint32
	leads bool
}

// memberID makes the id of the n-th member on the network, the same after every start.
func memberID(store uuid.UUID, n int) uuid.UUID {
	return uuid.NewSHA1(store, binary.BigEndian.AppendUint32([]byte("member"), uint32(n)))
}

// address is where a client reaches the member.
func (m member) address() string { return net.JoinHostPort(m.host, strconv.Itoa(int(m.port))) }

// gossipService tells clients who the members are.
type gossipService struct {
	gossip.UnimplementedGossipServer
	front *front
}

// Read describes the members. Who comes by the socket is told of the socket
// alone: there is no reason to go elsewhere.
func (g gossipService) Read(context.Context, *shared.Empty) (*gossip.ClusterInfo, error) {
	s := g.front.server
	fronts := s.network
	if g.front == s.socket {
		fronts = []*front{s.socket}
	}
	now := ticks(s.store.opt.clock())
	answer := &gossip.ClusterInfo{}
	for _, f := range fronts {
		state := gossip.MemberInfo_Follower
		if f.member.leads {
			state = gossip.MemberInfo_Leader
		}
		answer.Members = append(answer.Members, &gossip.MemberInfo{
			InstanceId:   structuredUUID(f.member.id),
			TimeStamp:    now,
			State:        state,
			IsAlive:      true,
			HttpEndPoint: &gossip.EndPoint{Address: f.member.host, Port: f.member.port},
		})
	}
	return answer, nil
}

// leader is the member that leads the network.
func (s *Server) leader() member { return s.network[len(s.network)-1].member }

// checkLeader refuses at a follower what only the leader does: persistent
// subscriptions, and whatever a client wants of the leader alone. A follower
// could do it all, since there is one store; it answers as a real one so that
// clients can be tried.
func (f *front) checkLeader(ctx context.Context, set trailerSetter, method string) error {
	if f.member.leads {
		return nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	wanted := md.Get("requires-leader")
	if servicePersistent != serviceOf(method) && (len(wanted) == 0 || wanted[0] != "true") {
		return nil
	}
	to := f.server.leader()
	set(metadata.Pairs("exception", exceptionNotLeader,
		"leader-endpoint-host", to.host, "leader-endpoint-port", strconv.Itoa(int(to.port))))
	return status.Error(codes.NotFound, "Leader info available: "+to.address())
}
