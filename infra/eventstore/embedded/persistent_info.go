package embedded

import (
	"context"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/persistent"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"

	logic "tallyard/infra/eventstore/embedded/persistent"
)

// groupRecorded is a recorded event in the form of this service, which has the
// same fields as that of the streams.
func groupRecorded(r *streams.ReadResp_ReadEvent_RecordedEvent) *persistent.ReadResp_ReadEvent_RecordedEvent {
	return &persistent.ReadResp_ReadEvent_RecordedEvent{
		Id: r.GetId(), StreamIdentifier: r.GetStreamIdentifier(), StreamRevision: r.GetStreamRevision(),
		PreparePosition: r.GetPreparePosition(), CommitPosition: r.GetCommitPosition(),
		Metadata: r.GetMetadata(), CustomMetadata: r.GetCustomMetadata(), Data: r.GetData(),
	}
}

// info tells about the group. Rates go from one call to the next.
func (g *group) info(ctx context.Context) (*persistent.SubscriptionInfo, error) {
	first, end, err := g.store.parkedRange(ctx, g.name)
	if err != nil {
		return nil, err
	}
	last, err := g.store.sourceEnd(ctx, g.name.stream)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	stats, all, e := g.state.Measure(time.Now()), g.name.wholeLog(), &g.entry
	out := &persistent.SubscriptionInfo{
		EventSource: e.Stream, GroupName: e.Group, Status: g.status(stats),
		AveragePerSecond: int32(stats.PerSecond), TotalItems: stats.Total, CountSinceLastMeasurement: stats.SinceLast,
		StartFrom: e.StartPosition, ResolveLinkTos: e.ResolveLinks, ExtraStatistics: e.ExtraStatistics,
		MessageTimeoutMilliseconds: e.MessageTimeout, MaxRetryCount: e.MaxRetryCount, LiveBufferSize: e.LiveBufferSize,
		BufferSize: e.HistoryBufferSize, ReadBatchSize: e.ReadBatchSize, CheckPointAfterMilliseconds: e.CheckpointAfter,
		MinCheckPointCount: e.MinCheckpointCount, MaxCheckPointCount: e.MaxCheckpointCount,
		NamedConsumerStrategy: e.Strategy, MaxSubscriberCount: e.MaxSubscriberCount,
		RetryBufferCount: int32(stats.Retrying), TotalInFlightMessages: int32(stats.InFlight),
		OutstandingMessagesCount: int32(stats.Outstanding), ParkedMessageCount: int64(max(end-first, 0)),
	}
	if at, known := g.state.LastCheckpoint(); known {
		out.LastCheckpointedEventPosition = at.Format(all)
	}
	if last > logic.Before && !(all && last == 0) {
		out.LastKnownEventPosition = last.Format(all)
	}
	if stats.Live {
		out.LiveBufferCount = int64(stats.Waiting)
	} else {
		out.ReadBufferCount = int32(stats.Waiting)
	}
	for _, c := range stats.Consumers {
		out.Connections = append(out.Connections, g.connection(c))
	}
	return out, nil
}

func (g *group) status(s logic.Stats) string {
	switch {
	case g.ended != nil:
		return "NotReady"
	case s.Live && s.Replaying:
		return "Live, ReplayingParkedMessages"
	case s.Live:
		return "Live"
	case s.Replaying:
		return "Behind, ReplayingParkedMessages"
	default:
		return "Behind"
	}
}

func (g *group) connection(c logic.ConsumerStats) *persistent.SubscriptionInfo_ConnectionInfo {
	out := &persistent.SubscriptionInfo_ConnectionInfo{
		AverageItemsPerSecond: int32(c.PerSecond), TotalItems: c.Total, CountSinceLastMeasurement: c.SinceLast,
		AvailableSlots: int32(c.FreeSlots), InFlightMessages: int32(c.InFlight),
	}
	for s := range g.sessions {
		if s.consumer == c.Consumer {
			out.From, out.Username, out.ConnectionName = s.about.from, s.about.user, s.about.connection
		}
	}
	for _, m := range c.Latency {
		out.ObservedMeasurements = append(out.ObservedMeasurements, &persistent.SubscriptionInfo_Measurement{Key: m.Key, Value: m.Value})
	}
	return out
}
