package eventstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"tallyard/domain/es"
)

const (
	metadataPrefix = "$$"
	metadataType   = "$metadata"
)

// Append implements [es.Log].
func (l *Log) Append(ctx context.Context, stream string, expected es.Expected, events ...es.Raw) (es.Written, error) {
	if stream == "" {
		return es.Written{}, errors.New("append: the stream has no name")
	}
	data := make([]esdb.EventData, len(events))
	for i, e := range events {
		// The client would give it a random id, and a retry another.
		if e.ID == uuid.Nil {
			return es.Written{}, fmt.Errorf("append to %s: event %d has no id", stream, i)
		}
		if e.Type == "" {
			return es.Written{}, fmt.Errorf("append to %s: event %d has no type", stream, i)
		}
		data[i] = esdb.EventData{
			EventID: e.ID, EventType: e.Type, ContentType: esdb.ContentTypeJson, Data: e.Data, Metadata: e.Metadata,
		}
	}
	return l.appendData(ctx, stream, expected, data)
}

func (l *Log) appendData(ctx context.Context, stream string, expected es.Expected, data []esdb.EventData) (es.Written, error) {
	opts := esdb.AppendToStreamOptions{ExpectedRevision: expectedRevision(expected)}
	res, err := call(ctx, l, func(ctx context.Context, c *esdb.Client, _ int) (*esdb.WriteResult, error) {
		return c.AppendToStream(ctx, stream, opts, data...)
	})
	if err != nil {
		return es.Written{}, fmt.Errorf("append to %s, expecting %s: %w", stream, expected, err)
	}
	if res.CommitPosition != res.PreparePosition {
		return es.Written{}, fmt.Errorf("append to %s: %w", stream, errSplitPosition)
	}
	w := es.Written{Revision: es.Revision(res.NextExpectedVersion), Position: es.Position(res.CommitPosition)}
	if w.Position == es.StartPosition {
		w.Revision = es.NoRevision // nothing was given and nothing is there
	}
	return w, nil
}

// Delete implements [es.Log].
func (l *Log) Delete(ctx context.Context, stream string, expected es.Expected) error {
	opts := esdb.DeleteStreamOptions{ExpectedRevision: expectedRevision(expected)}
	repeated := false
	_, err := call(ctx, l, func(ctx context.Context, c *esdb.Client, attempt int) (*esdb.DeleteResult, error) {
		repeated = attempt > 0
		return c.DeleteStream(ctx, stream, opts)
	})
	if repeated && (errors.Is(err, es.ErrStreamDeleted) || errors.Is(err, es.ErrWrongRevision) && l.gone(ctx, stream)) {
		return nil // an earlier attempt, whose answer was lost, did it
	}
	if err != nil {
		return fmt.Errorf("delete %s, expecting %s: %w", stream, expected, err)
	}
	return nil
}

// gone tells whether a stream shows nothing any more.
func (l *Log) gone(ctx context.Context, stream string) bool {
	for _, err := range l.ReadStream(ctx, stream, es.NoRevision, es.Backward, 1) {
		return errors.Is(err, es.ErrStreamNotFound)
	}
	return false
}

// Tombstone implements [es.Log].
func (l *Log) Tombstone(ctx context.Context, stream string, expected es.Expected) error {
	opts := esdb.TombstoneStreamOptions{ExpectedRevision: expectedRevision(expected)}
	repeated := false
	_, err := call(ctx, l, func(ctx context.Context, c *esdb.Client, attempt int) (*esdb.DeleteResult, error) {
		repeated = attempt > 0
		return c.TombstoneStream(ctx, stream, opts)
	})
	if repeated && errors.Is(err, es.ErrStreamDeleted) {
		return nil // an earlier attempt, whose answer was lost, did it
	}
	if err != nil {
		return fmt.Errorf("tombstone %s, expecting %s: %w", stream, expected, err)
	}
	return nil
}

// KeepLast implements [es.Log]. What else the stream's metadata says stays.
func (l *Log) KeepLast(ctx context.Context, stream string, n int) error {
	if n < 1 {
		return fmt.Errorf("keep the last events of %s: %d is not at least 1", stream, n)
	}
	const attempts = 5
	var err error
	for range attempts {
		if err = l.keepLast(ctx, stream, n); !errors.Is(err, es.ErrWrongRevision) {
			break // only another writer of the metadata is a reason to look again
		}
	}
	if err != nil {
		return fmt.Errorf("keep the last events of %s: %w", stream, err)
	}
	return nil
}

func (l *Log) keepLast(ctx context.Context, stream string, n int) error {
	metadata := map[string]json.RawMessage{}
	expected := es.NoStream()
	for e, err := range l.ReadStream(ctx, metadataPrefix+stream, es.NoRevision, es.Backward, 1) {
		if errors.Is(err, es.ErrStreamNotFound) {
			break
		}
		if err != nil {
			return err
		}
		expected = es.At(e.Revision)
		if err := json.Unmarshal(e.Data, &metadata); err != nil || metadata == nil {
			metadata = map[string]json.RawMessage{}
		}
	}
	want, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if string(metadata["$maxCount"]) == string(want) {
		return nil
	}
	metadata["$maxCount"] = want
	body, err := json.Marshal(metadata)
	if err != nil {
		return err
	}
	_, err = l.Append(ctx, metadataPrefix+stream, expected, es.Raw{ID: uuid.New(), Type: metadataType, Data: body})
	return err
}

// expectedRevision translates an expectation.
func expectedRevision(x es.Expected) esdb.ExpectedRevision {
	return es.Match(x,
		func() esdb.ExpectedRevision { return esdb.Any{} },
		func() esdb.ExpectedRevision { return esdb.NoStream{} },
		func() esdb.ExpectedRevision { return esdb.StreamExists{} },
		func(r es.Revision) esdb.ExpectedRevision { return esdb.Revision(uint64(r)) })
}
