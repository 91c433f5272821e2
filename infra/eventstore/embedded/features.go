package embedded

import (
	"context"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
)

// protocolVersion is the version of the protocol's reference server whose
// behaviour the append rules and reads follow. Clients parse it as numbers.
const protocolVersion = "24.10.0"

// features are the calls that the server implements; clients use others only
// where they are named.
var features = []struct {
	service string
	methods []string
}{
	{"event_store.client.streams.streams", []string{"read", "append", "delete", "tombstone"}},
	{"event_store.client.gossip.gossip", []string{"read"}},
	{"event_store.client.server_features.serverfeatures", []string{"getsupportedmethods"}},
}

// featuresService tells clients what there is.
type featuresService struct {
	serverfeatures.UnimplementedServerFeaturesServer
}

// GetSupportedMethods lists the implemented calls.
func (featuresService) GetSupportedMethods(context.Context, *shared.Empty) (*serverfeatures.SupportedMethods, error) {
	answer := &serverfeatures.SupportedMethods{EventStoreServerVersion: protocolVersion}
	for _, f := range features {
		for _, m := range f.methods {
			answer.Methods = append(answer.Methods, &serverfeatures.SupportedMethod{ServiceName: f.service, MethodName: m})
		}
	}
	return answer, nil
}

// gossipService answers for a cluster of one.
type gossipService struct {
	gossip.UnimplementedGossipServer
	server *Server
}

// Read describes the one member, which leads.
func (g gossipService) Read(context.Context, *shared.Empty) (*gossip.ClusterInfo, error) {
	s := g.server
	return &gossip.ClusterInfo{Members: []*gossip.MemberInfo{{
		InstanceId:   structuredUUID(s.store.id),
		TimeStamp:    ticks(s.store.opt.clock()),
		State:        gossip.MemberInfo_Leader,
		IsAlive:      true,
		HttpEndPoint: &gossip.EndPoint{Address: s.socket},
	}}}, nil
}
