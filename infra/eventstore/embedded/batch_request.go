package embedded

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
)

// batch is one append among those that a client sends on one call. It may come
// in several messages, the first of which has the options and the last of which
// is final.
type batch struct {
	correlation *shared.UUID                    // as the client wrote it
	options     *streams.BatchAppendReq_Options // nil where the client left them out
	request     *appendRequest                  // nil if there is something wrong with the options
	bad         error                           // what is wrong, told when the batch is final
	deadline    time.Time                       // zero is none
	answered    bool                            // the client has its answer; the rest is only skipped
}

// newBatch begins a batch with its first message.
func newBatch(m *streams.BatchAppendReq, now time.Time) *batch {
	b := &batch{correlation: m.GetCorrelationId(), options: m.GetOptions()}
	if b.options == nil {
		b.bad = invalid("the options must stand in the first message of a batch")
		return b
	}
	if b.deadline, b.bad = batchDeadline(b.options, now); b.bad == nil {
		b.request, b.bad = batchOptions(b.options)
	}
	return b
}

// add takes the events of a message. The first error stays; what is wrong is
// told at the end, since a client doesn't expect an answer before that.
func (b *batch) add(m *streams.BatchAppendReq) {
	for _, p := range m.GetProposedMessages() {
		if b.bad != nil || b.answered {
			return
		}
		b.bad = b.request.propose(p)
	}
}

// size is how much memory the batch holds until it is final.
func (b *batch) size() int {
	if b.request == nil || b.request.events == nil {
		return 0
	}
	return b.request.size
}

// expired tells whether the client no longer waits for the batch.
func (b *batch) expired(now time.Time) bool {
	return !b.deadline.IsZero() && !now.Before(b.deadline)
}

func batchOptions(o *streams.BatchAppendReq_Options) (*appendRequest, error) {
	name, err := writableName(o.GetStreamIdentifier())
	if err != nil {
		return nil, err
	}
	r := &appendRequest{stream: name}
	switch x := o.GetExpectedStreamPosition().(type) {
	case *streams.BatchAppendReq_Options_StreamPosition:
		r.expected, err = expectAt(x.StreamPosition)
	case *streams.BatchAppendReq_Options_NoStream:
		r.expected.kind = expectNoStream
	case *streams.BatchAppendReq_Options_StreamExists:
		r.expected.kind = expectExists
	case *streams.BatchAppendReq_Options_Any:
		r.expected.kind = expectAny
	default:
		err = invalid("the batch names no expected revision")
	}
	return r, err
}

// batchDeadline reads the deadline in either of its forms: older clients send a
// moment of their own clock, newer ones a time to wait.
func batchDeadline(o *streams.BatchAppendReq_Options, now time.Time) (time.Time, error) {
	switch x := o.GetDeadlineOption().(type) {
	case *streams.BatchAppendReq_Options_Deadline_21_10_0:
		if err := x.Deadline_21_10_0.CheckValid(); err != nil {
			return time.Time{}, invalid("the deadline is no moment")
		}
		return x.Deadline_21_10_0.AsTime(), nil
	case *streams.BatchAppendReq_Options_Deadline:
		if err := x.Deadline.CheckValid(); err != nil {
			return time.Time{}, invalid("the deadline is no duration")
		}
		return now.Add(x.Deadline.AsDuration()), nil
	default:
		return time.Time{}, nil
	}
}

// correlationID reads the id by which a client tells its batches apart. It is
// the client's to choose, zero included.
func correlationID(u *shared.UUID) (uuid.UUID, error) {
	switch v := u.GetValue().(type) {
	case *shared.UUID_Structured_:
		return structured(v.Structured), nil
	case *shared.UUID_String_:
		id, err := uuid.Parse(v.String_)
		if err != nil {
			return uuid.Nil, errors.New("the batch's correlation id is not a UUID")
		}
		return id, nil
	default:
		return uuid.Nil, errors.New("the batch has no correlation id")
	}
}

func structured(s *shared.UUID_Structured) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[:8], uint64(s.GetMostSignificantBits()))
	binary.BigEndian.PutUint64(id[8:], uint64(s.GetLeastSignificantBits()))
	return id
}
