package persistent

import (
	"errors"
	"fmt"
	"time"
)

// Names of the consumer strategies, as clients write them.
const (
	// RoundRobin hands events out evenly among the consumers that have room.
	RoundRobin = "RoundRobin"
	// DispatchToSingle fills one consumer before it goes on to the next.
	DispatchToSingle = "DispatchToSingle"
	// Pinned gives all events of one source stream to one consumer, as long as
	// it stays.
	Pinned = "Pinned"
	// PinnedByCorrelation is Pinned by the events' correlation id.
	PinnedByCorrelation = "PinnedByCorrelation"
)

// Settings are what a client asks of a group. Durations are in milliseconds,
// as on the wire, so that they are told again as they were given.
type Settings struct {
	ResolveLinks       bool
	ExtraStatistics    bool
	MaxRetryCount      int32 // failures after which an event is parked
	MinCheckpointCount int32 // events that make a timed checkpoint worth it
	MaxCheckpointCount int32 // events after which a checkpoint does not wait
	MaxSubscriberCount int32 // 0 is any number
	LiveBufferSize     int32 // events waiting for consumers while at the end of the source
	ReadBatchSize      int32 // events read at once
	HistoryBufferSize  int32 // events waiting for consumers while behind
	MessageTimeout     int32 // ms until an unanswered event is given to another; 0 is never
	CheckpointAfter    int32 // ms between two timed checkpoints
	Strategy           string
}

// Validate tells what is wrong with the settings, in words for the client.
func (s *Settings) Validate() error {
	if newStrategy(s.Strategy) == nil {
		return fmt.Errorf("consumer strategy %q does not exist", s.Strategy)
	}
	for _, n := range []struct {
		name  string
		value int32
	}{
		{"maxRetryCount", s.MaxRetryCount},
		{"minCheckPointCount", s.MinCheckpointCount},
		{"maxCheckPointCount", s.MaxCheckpointCount},
		{"maxSubscriberCount", s.MaxSubscriberCount},
		{"liveBufferSize", s.LiveBufferSize},
		{"readBatchSize", s.ReadBatchSize},
		{"historyBufferSize", s.HistoryBufferSize},
		{"messageTimeout", s.MessageTimeout},
		{"checkPointAfter", s.CheckpointAfter},
	} {
		if n.value < 0 {
			return errors.New(n.name + " must not be negative")
		}
	}
	return nil
}

func (s *Settings) messageTimeout() time.Duration {
	return time.Duration(s.MessageTimeout) * time.Millisecond
}

func (s *Settings) checkpointAfter() time.Duration {
	return time.Duration(s.CheckpointAfter) * time.Millisecond
}

// atLeastOne reads a size for which 0 would mean that nothing ever moves.
func atLeastOne(n int32) int { return int(max(n, 1)) }
