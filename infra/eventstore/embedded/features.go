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
	groups  bool // the calls are about groups of persistent subscriptions
}{
	{"event_store.client.streams.streams", []string{"read", "append", "batchappend", "delete", "tombstone"}, false},
	{"event_store.client.persistent_subscriptions.persistentsubscriptions", []string{
		"create", "update", "delete", "read", "getinfo", "replayparked", "list", "restartsubsystem",
	}, true},
	{"event_store.client.gossip.gossip", []string{"read"}, false},
	{"event_store.client.server_features.serverfeatures", []string{"getsupportedmethods"}, false},
}

// groupFeatures are what groups of persistent subscriptions may be on: a stream,
// and the whole log. The npm clients ask for these of every call.
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
			if f.groups && m != "restartsubsystem" {
				one.Features = groupFeatures
			}
			answer.Methods = append(answer.Methods, one)
		}
	}
	return answer, nil
}
