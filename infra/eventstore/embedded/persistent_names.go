package embedded

import (
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
)

// allStream is the name under which groups on the whole log are known.
const allStream = "$all"

const (
	// groupConfigStream holds which groups there are; its last event counts.
	groupConfigStream = "$persistentSubscriptionConfig"
	groupConfigType   = "$PersistentConfig"
	checkpointType    = "$SubscriptionCheckpoint"

	groupStreams = "$persistentsubscription-"
)

// groupName names a group: its stream, or $all, and its own name.
type groupName struct{ stream, group string }

// id is the group's id, as on the wire.
func (n groupName) id() string { return n.stream + "::" + n.group }

func (n groupName) wholeLog() bool { return n.stream == allStream }

// checkpoints is the stream of the group's checkpoints.
func (n groupName) checkpoints() string { return groupStreams + n.id() + "-checkpoint" }

// parked is the stream of links to the group's parked messages.
func (n groupName) parked() string { return groupStreams + n.id() + "-parked" }

// ofGroups tells whether a stream is what the server keeps of groups. Groups on
// the whole log are not handed such events: they would answer, which would make
// the next one.
func ofGroups(stream string) bool {
	stream = strings.TrimPrefix(stream, metadataPrefix)
	return stream == groupConfigStream || strings.HasPrefix(stream, groupStreams)
}

// newGroupName reads and checks the name of a group.
func newGroupName(stream *shared.StreamIdentifier, all bool, group string) (groupName, error) {
	n := groupName{stream: allStream, group: group}
	if !all {
		name, err := streamName(stream)
		if err != nil {
			return groupName{}, err
		}
		n.stream = name
	}
	switch {
	case group == "":
		return groupName{}, invalid("the group has no name")
	case len(metadataPrefix)+len(n.checkpoints()) > maxStreamName:
		return groupName{}, invalid("the names of the stream and the group are too long together")
	}
	return n, nil
}
