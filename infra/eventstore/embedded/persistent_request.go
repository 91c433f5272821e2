package embedded

import (
	"math"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/persistent"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"

	logic "tallyard/infra/eventstore/embedded/persistent"
)

// groupStart is where a client wants a group to begin.
type groupStart struct {
	end bool
	// first is the first position that the group is handed, if it isn't the end.
	first uint64
}

// endMark is how older clients say the end where a revision is asked for.
const endMark = math.MaxUint64

// wireSettings are the settings that Create and Update have in common.
type wireSettings interface {
	GetResolveLinks() bool
	GetRevision() uint64
	GetExtraStatistics() bool
	GetMaxRetryCount() int32
	GetMinCheckpointCount() int32
	GetMaxCheckpointCount() int32
	GetMaxSubscriberCount() int32
	GetLiveBufferSize() int32
	GetReadBatchSize() int32
	GetHistoryBufferSize() int32
	GetMessageTimeoutTicks() int64
	GetMessageTimeoutMs() int32
	GetCheckpointAfterTicks() int64
	GetCheckpointAfterMs() int32
}

// createEntry reads the group that a client wants made.
func createEntry(o *persistent.CreateReq_Options) (groupEntry, groupStart, error) {
	s := o.GetSettings()
	if s == nil {
		return groupEntry{}, groupStart{}, invalid("the group has no settings")
	}
	strategy := s.GetConsumerStrategy()
	if strategy == "" {
		strategy = s.GetNamedConsumerStrategy().String() //nolint:staticcheck // what the Go client fills
	}
	id, start := o.GetStreamIdentifier(), revisionStart(s.GetRevision()) //nolint:staticcheck // what older clients fill
	all := o.GetAll() != nil
	if stream := o.GetStream(); stream != nil {
		id = stream.GetStreamIdentifier()
		switch x := stream.GetRevisionOption().(type) {
		case *persistent.CreateReq_StreamOptions_Revision:
			start = revisionStart(x.Revision)
		case *persistent.CreateReq_StreamOptions_Start:
			start = groupStart{}
		case *persistent.CreateReq_StreamOptions_End:
			start = groupStart{end: true}
		}
	}
	switch x := o.GetAll().GetAllOption().(type) {
	case *persistent.CreateReq_AllOptions_Position:
		start = groupStart{first: x.Position.GetCommitPosition()}
	case *persistent.CreateReq_AllOptions_Start:
		start = groupStart{}
	case *persistent.CreateReq_AllOptions_End:
		start = groupStart{end: true}
	}
	e, err := newEntry(id, all, o.GetGroupName(), s, strategy)
	if err != nil {
		return e, groupStart{}, err
	}
	e.Filter, err = newGroupFilter(o.GetAll().GetFilter())
	return e, start, err
}

// updateEntry reads what a client wants made of a group.
func updateEntry(o *persistent.UpdateReq_Options) (groupEntry, groupStart, error) {
	s := o.GetSettings()
	if s == nil {
		return groupEntry{}, groupStart{}, invalid("the group has no settings")
	}
	id, start := o.GetStreamIdentifier(), revisionStart(s.GetRevision()) //nolint:staticcheck // what older clients fill
	all := o.GetAll() != nil
	if stream := o.GetStream(); stream != nil {
		id = stream.GetStreamIdentifier()
		switch x := stream.GetRevisionOption().(type) {
		case *persistent.UpdateReq_StreamOptions_Revision:
			start = revisionStart(x.Revision)
		case *persistent.UpdateReq_StreamOptions_Start:
			start = groupStart{}
		case *persistent.UpdateReq_StreamOptions_End:
			start = groupStart{end: true}
		}
	}
	switch x := o.GetAll().GetAllOption().(type) {
	case *persistent.UpdateReq_AllOptions_Position:
		start = groupStart{first: x.Position.GetCommitPosition()}
	case *persistent.UpdateReq_AllOptions_Start:
		start = groupStart{}
	case *persistent.UpdateReq_AllOptions_End:
		start = groupStart{end: true}
	}
	e, err := newEntry(id, all, o.GetGroupName(), s, s.GetNamedConsumerStrategy().String())
	return e, start, err
}

// newEntry makes an entry without its start. With an error it has at least the
// names, if those are good.
func newEntry(id *shared.StreamIdentifier, all bool, group string, s wireSettings, strategy string) (groupEntry, error) {
	name, err := newGroupName(id, all, group)
	if err != nil {
		return groupEntry{}, err
	}
	e := groupEntry{
		Stream: name.stream, Group: name.group, Strategy: strategy,
		ResolveLinks: s.GetResolveLinks(), ExtraStatistics: s.GetExtraStatistics(), MaxRetryCount: s.GetMaxRetryCount(),
		MinCheckpointCount: s.GetMinCheckpointCount(), MaxCheckpointCount: s.GetMaxCheckpointCount(),
		MaxSubscriberCount: s.GetMaxSubscriberCount(), LiveBufferSize: s.GetLiveBufferSize(),
		ReadBatchSize: s.GetReadBatchSize(), HistoryBufferSize: s.GetHistoryBufferSize(),
		MessageTimeout:  milliseconds(s.GetMessageTimeoutTicks(), s.GetMessageTimeoutMs()),
		CheckpointAfter: milliseconds(s.GetCheckpointAfterTicks(), s.GetCheckpointAfterMs()),
	}
	if name.wholeLog() && !all {
		return e, groupFailure{"a group on the whole log is asked for as one on all, not by a stream's name"}
	}
	settings := e.settings()
	if err := settings.Validate(); err != nil {
		return e, groupFailure{err.Error()}
	}
	return e, nil
}

// milliseconds reads a time that is given in ticks or in milliseconds.
func milliseconds(ticks int64, ms int32) int32 {
	if ticks == 0 {
		return ms
	}
	const perMillisecond = ticksPerSecond / 1000
	return int32(max(min(ticks/perMillisecond, math.MaxInt32), -1))
}

func revisionStart(revision uint64) groupStart {
	if revision == endMark {
		return groupStart{end: true}
	}
	return groupStart{first: revision}
}

// newGroupFilter reads the filter of a group; nil is none. Clients leave its
// multiplier at 0, unlike that of a subscription.
func newGroupFilter(o *persistent.CreateReq_AllOptions_FilterOptions) (*groupFilter, error) {
	if o == nil {
		return nil, nil //nolint:nilnil // no filter is a filter
	}
	f := &groupFilter{}
	var x *persistent.CreateReq_AllOptions_FilterOptions_Expression
	switch {
	case o.GetEventType() != nil:
		f.ByType, x = true, o.GetEventType()
	case o.GetStreamIdentifier() != nil:
		x = o.GetStreamIdentifier()
	default:
		return nil, invalid("the filter names neither streams nor event types")
	}
	window := int64(defaultWindow)
	if o.GetMax() > 0 {
		window = int64(o.GetMax())
	}
	f.Regex, f.Prefixes = x.GetRegex(), x.GetPrefix()
	f.Interval = int(min(window*int64(max(o.GetCheckpointIntervalMultiplier(), 1)), maxInterval))
	if _, err := (&groupEntry{Filter: f}).filter(); err != nil {
		return nil, invalid(err.Error())
	}
	return f, nil
}

// settle puts the start into the entry. The end is that of this moment.
func (s groupStart) settle(e *groupEntry, last logic.Position) {
	all := e.name().wholeLog()
	switch {
	case s.end:
		e.StartPosition, e.StartAfter = logic.Before.Format(all), last
	default:
		first := logic.Position(min(s.first, math.MaxInt64-1))
		e.StartPosition, e.StartAfter = first.Format(all), first-1
	}
}
