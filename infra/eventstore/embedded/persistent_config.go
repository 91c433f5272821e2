package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tallyard/infra/eventstore/embedded/persistent"
)

// groupConfig is the body of an event of the stream of groups.
type groupConfig struct {
	Version string       `json:"version"`
	Updated time.Time    `json:"updated"`
	Entries []groupEntry `json:"entries"`
}

// groupConfigVersion is the form of the body. The protocol's reference server
// has its own form in a stream of the same name, numbered.
const groupConfigVersion = "tallyard-1"

// groupEntry is one group.
type groupEntry struct {
	Stream string       `json:"stream"`
	Group  string       `json:"group"`
	Filter *groupFilter `json:"filter,omitempty"`
	// StartPosition is what the client asked for: "0" or "C:0/P:0" is the start,
	// "-1" or "C:-1/P:-1" the end.
	StartPosition string `json:"startPosition"`
	// StartAfter is the position behind which the group begins while it has no
	// checkpoint. The end is settled when the group is made, so that nothing is
	// missed that comes before its first consumer.
	StartAfter persistent.Position `json:"startAfter"`

	ResolveLinks       bool   `json:"resolveLinkTos"`
	ExtraStatistics    bool   `json:"extraStatistics"`
	MessageTimeout     int32  `json:"messageTimeout"`
	LiveBufferSize     int32  `json:"liveBufferSize"`
	HistoryBufferSize  int32  `json:"historyBufferSize"`
	MaxRetryCount      int32  `json:"maxRetryCount"`
	ReadBatchSize      int32  `json:"readBatchSize"`
	CheckpointAfter    int32  `json:"checkPointAfter"`
	MinCheckpointCount int32  `json:"minCheckPointCount"`
	MaxCheckpointCount int32  `json:"maxCheckPointCount"`
	MaxSubscriberCount int32  `json:"maxSubscriberCount"`
	Strategy           string `json:"namedConsumerStrategy"`
}

// groupFilter is the filter of a group on the whole log.
type groupFilter struct {
	ByType   bool     `json:"byType"`
	Regex    string   `json:"regex,omitempty"`
	Prefixes []string `json:"prefixes,omitempty"`
	// Interval is how many events that do not pass count as one towards a checkpoint.
	Interval int `json:"interval"`
}

func (e *groupEntry) name() groupName { return groupName{stream: e.Stream, group: e.Group} }

func (e *groupEntry) settings() persistent.Settings {
	return persistent.Settings{
		ResolveLinks: e.ResolveLinks, ExtraStatistics: e.ExtraStatistics, MaxRetryCount: e.MaxRetryCount,
		MinCheckpointCount: e.MinCheckpointCount, MaxCheckpointCount: e.MaxCheckpointCount,
		MaxSubscriberCount: e.MaxSubscriberCount, LiveBufferSize: e.LiveBufferSize, ReadBatchSize: e.ReadBatchSize,
		HistoryBufferSize: e.HistoryBufferSize, MessageTimeout: e.MessageTimeout, CheckpointAfter: e.CheckpointAfter,
		Strategy: e.Strategy,
	}
}

// filter makes the filter ready; nil lets all events pass.
func (e *groupEntry) filter() (*eventFilter, error) {
	if e.Filter == nil {
		return nil, nil //nolint:nilnil // no filter is a filter
	}
	f := &eventFilter{byType: e.Filter.ByType, interval: e.Filter.Interval}
	return f, f.setExpression(e.Filter.Regex, e.Filter.Prefixes)
}

// loadGroups reads which groups there are.
func (s *store) loadGroups(ctx context.Context) ([]groupEntry, error) {
	e, ok, err := s.lastVisible(ctx, groupConfigStream)
	if err != nil || !ok {
		return nil, err
	}
	var c groupConfig
	if err := json.Unmarshal(e.data, &c); err != nil {
		return nil, fmt.Errorf("read the event of %s at %d: %w", groupConfigStream, e.position, err)
	}
	if c.Version != groupConfigVersion {
		return nil, fmt.Errorf("the event of %s at %d has the unknown version %q", groupConfigStream, e.position, c.Version)
	}
	for i := range c.Entries {
		settings := c.Entries[i].settings()
		if err := settings.Validate(); err != nil {
			return nil, fmt.Errorf("group %s: %w", c.Entries[i].name().id(), err)
		}
		if _, err := c.Entries[i].filter(); err != nil {
			return nil, fmt.Errorf("group %s: %w", c.Entries[i].name().id(), err)
		}
	}
	return c.Entries, nil
}

// saveGroups writes which groups there are.
func (s *store) saveGroups(ctx context.Context, entries []groupEntry) error {
	data, err := json.Marshal(groupConfig{Version: groupConfigVersion, Updated: s.opt.clock().UTC(), Entries: entries})
	if err != nil {
		return fmt.Errorf("write the list of groups: %w", err)
	}
	if len(data) > maxAppend {
		return groupFailure{"there are too many groups: their list is larger than an append may be"}
	}
	if err := s.appendOwn(ctx, groupConfigStream, proposed{id: uuid.New(), kind: groupConfigType, contentType: contentJSON, data: data}); err != nil {
		return err
	}
	return s.keepLast(ctx, groupConfigStream)
}

// appendOwn appends events of the server's own to a stream, whatever is there.
func (s *store) appendOwn(ctx context.Context, stream string, events ...proposed) error {
	r := &appendRequest{stream: stream, events: events}
	for _, e := range events {
		r.size += perEvent + len(e.data) + len(e.metadata)
	}
	res, err := s.append(ctx, r)
	if err == nil && res.wrong {
		err = errors.New("the events are there in part") // ids are new, so they can't be
	}
	return err
}

// keptEvents is how many events are kept of streams of which the last counts.
const keptEvents = 2

// keepLast sees to it that a stream keeps its last events only.
func (s *store) keepLast(ctx context.Context, stream string) error {
	h, err := s.readHead(stream)
	if err != nil || h.meta.maxCount == keptEvents {
		return err
	}
	meta := map[string]int64{"$maxCount": keptEvents}
	if h.meta.truncateBefore > 0 {
		meta["$tb"] = h.meta.truncateBefore
	}
	return s.appendMetadata(ctx, stream, meta)
}

// appendMetadata replaces a stream's metadata.
func (s *store) appendMetadata(ctx context.Context, stream string, meta map[string]int64) error {
	data, err := json.Marshal(meta)
	if err != nil {
		return fmt.Errorf("write the metadata of %s: %w", stream, err)
	}
	return s.appendOwn(ctx, metadataPrefix+stream, proposed{id: uuid.New(), kind: metadataType, contentType: contentJSON, data: data})
}

// lastVisible reads a stream's last event; ok is false where readers see none.
func (s *store) lastVisible(ctx context.Context, stream string) (e event, ok bool, err error) {
	h, err := s.durableHead(ctx, stream)
	if err != nil || h.missing() || h.tombstoned {
		return event{}, false, err
	}
	p, _, err := s.readStream(ctx, stream, &h, h.last, true, 1)
	if err != nil || len(p.events) == 0 {
		return event{}, false, err
	}
	return p.events[0], true, nil
}
