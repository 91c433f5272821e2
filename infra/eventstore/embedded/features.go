package embedded

import (
	"context"

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
	{"event_store.client.streams.streams", []string{"read", "append", "batchappend", "delete", "tombstone"}},
	{"event_store.client.persistent_subscriptions.persistentsubscriptions", []string{
		"create", "update", "delete", "read", "getinfo", "replayparked", "list", "restartsubsystem",
	}},
	{"event_store.client.gossip.gossip", []string{"read"}},
	{"event_store.client.server_features.serverfeatures", []string{"getsupportedmethods"}},
}

// groupFeatures are what groups of persistent subscriptions may be on: a stream,
// and the whole log.
var groupFeatures = []string{"stream", "all"}

// featuresService tells clients what there is.
type featuresService struct {
	serverfeatures.UnimplementedServerFeaturesServer
}

// GetSupportedMethods lists the implemented calls.
func (featuresService) GetSupportedMethods(context.Context, *shared.Empty) (*serverfeatures.SupportedMethods, error) {
	answer := &serverfeatures.SupportedMethods{EventStoreServerVersion: protocolVersion}
	for _, f := range features {
		for _, m := range f.methods {
			one := &serverfeatures.SupportedMethod{ServiceName: f.service, MethodName: m}
			if m == "create" {
				one.Features = groupFeatures
			}
			answer.Methods = append(answer.Methods, one)
		}
	}
	return answer, nil
}
