package embedded

import (
	"encoding/binary"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Keys of the metadata map that travels with every event.
const (
	wireType        = "type"
	wireContentType = "content-type"
	wireCreated     = "created"
)

func invalid(text string) error { return status.Error(codes.InvalidArgument, text) }

func structuredUUID(id uuid.UUID) *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
		MostSignificantBits:  int64(binary.BigEndian.Uint64(id[:8])),
		LeastSignificantBits: int64(binary.BigEndian.Uint64(id[8:])),
	}}}
}

// eventID reads an event's id in either of its two forms.
func eventID(u *shared.UUID) (uuid.UUID, error) {
	switch v := u.GetValue().(type) {
	case *shared.UUID_Structured_:
		id := structured(v.Structured)
		if id == uuid.Nil {
			return id, errors.New("the event's id is empty")
		}
		return id, nil
	case *shared.UUID_String_:
		id, err := uuid.Parse(v.String_)
		if err != nil || id == uuid.Nil {
			return uuid.Nil, errors.New("the event's id is not a UUID")
		}
		return id, nil
	default:
		return uuid.Nil, errors.New("the event has no id")
	}
}

// streamName reads and checks the name of a stream.
func streamName(id *shared.StreamIdentifier) (string, error) {
	name := id.GetStreamName()
	switch {
	case len(name) == 0:
		return "", invalid("the stream has no name")
	case len(name) > maxStreamName:
		return "", invalid("the stream's name is longer than " + strconv.Itoa(maxStreamName) + " bytes")
	case !utf8.Valid(name):
		return "", invalid("the stream's name is not UTF-8")
	}
	return string(name), nil
}

// writableName is streamName for a stream that is to be written.
func writableName(id *shared.StreamIdentifier) (string, error) {
	name, err := streamName(id)
	switch {
	case err != nil:
		return "", err
	case name == "$all" || name == metadataPrefix:
		return "", invalid("the stream " + name + " can't be written")
	case len(name) > 2 && name[:2] == metadataPrefix:
		if _, ok := metadataOf(name); !ok {
			return "", invalid("a metadata stream has no metadata of its own")
		}
	}
	return name, nil
}

// wireOptions are what a reader asked of the form of events.
type wireOptions struct {
	textIDs bool
}

// recorded makes the message of an event.
func (o wireOptions) recorded(e *event) *streams.ReadResp_ReadEvent_RecordedEvent {
	r := &streams.ReadResp_ReadEvent_RecordedEvent{
		StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(e.stream)},
		StreamRevision:   uint64(e.revision),
		CommitPosition:   e.position,
		PreparePosition:  e.position,
		Metadata: map[string]string{
			wireType:        e.kind,
			wireContentType: e.contentType,
			wireCreated:     strconv.FormatInt(e.created, 10),
		},
		CustomMetadata: e.metadata,
		Data:           e.data,
	}
	if o.textIDs {
		r.Id = &shared.UUID{Value: &shared.UUID_String_{String_: e.id.String()}}
	} else {
		r.Id = structuredUUID(e.id)
	}
	return r
}

func notFoundMessage(stream string) *streams.ReadResp {
	return &streams.ReadResp{Content: &streams.ReadResp_StreamNotFound_{StreamNotFound: &streams.ReadResp_StreamNotFound{
		StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(stream)},
	}}}
}

func confirmationMessage(id string) *streams.ReadResp {
	return &streams.ReadResp{Content: &streams.ReadResp_Confirmation{
		Confirmation: &streams.ReadResp_SubscriptionConfirmation{SubscriptionId: id},
	}}
}

func checkpointMessage(position uint64) *streams.ReadResp {
	return &streams.ReadResp{Content: &streams.ReadResp_Checkpoint_{
		Checkpoint: &streams.ReadResp_Checkpoint{CommitPosition: position, PreparePosition: position},
	}}
}

func caughtUpMessage() *streams.ReadResp {
	return &streams.ReadResp{Content: &streams.ReadResp_CaughtUp_{CaughtUp: &streams.ReadResp_CaughtUp{}}}
}
