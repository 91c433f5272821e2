package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"tallyard/domain/es"
	"tallyard/infra/eventstore"
)

// gaps knows of each stream by how much its revisions in the source are ahead
// of those in the target. That is the number of its events that were scavenged;
// of a metadata stream also less than zero, by what the target's server wrote
// itself. Streams without a difference are not in it, so its size is that of
// the scavenged streams and no more.
type gaps struct {
	by  map[string]int64
	new map[string]int64 // what the map file does not say yet
}

func newGaps() *gaps { return &gaps{by: map[string]int64{}, new: map[string]int64{}} }

// set takes note of a difference.
func (g *gaps) set(stream string, by int64) {
	if g.by[stream] != by {
		g.by[stream] = by
		g.new[stream] = by
	}
}

// note takes the difference from an event that is in both stores.
func (g *gaps) note(source, target *eventstore.Event) {
	if source.Type != tombstoneType {
		g.set(source.Stream, int64(source.Revision-target.Revision))
	}
}

// deletedTruncate is the $tb of a stream that was deleted softly.
const deletedTruncate = math.MaxInt64

// moveTruncation makes the metadata of a stream whose beginning was scavenged
// fit the revisions that it has in the target. Others stay byte for byte.
func (c *copier) moveTruncation(ctx context.Context, base string, data []byte) ([]byte, error) {
	fields, before, ok := truncation(data)
	if !ok || before <= 0 || before >= deletedTruncate {
		return data, nil
	}
	by, known := c.gaps.by[base]
	if !known {
		head, err := c.to.Head(ctx, base)
		if err != nil {
			return nil, err
		}
		if head == es.NoRevision {
			by = before // whatever was there before is gone
		}
	}
	if by <= 0 {
		return data, nil
	}
	if before -= by; before > 0 {
		fields["$tb"] = json.RawMessage(strconv.FormatInt(before, 10))
	} else {
		delete(fields, "$tb")
	}
	moved, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("the metadata of %s: %w", base, err)
	}
	return moved, nil
}

// truncation reads $tb out of a stream's metadata.
func truncation(data []byte) (fields map[string]json.RawMessage, before int64, ok bool) {
	if json.Unmarshal(data, &fields) != nil || fields["$tb"] == nil {
		return nil, 0, false
	}
	before, err := strconv.ParseInt(string(fields["$tb"]), 10, 64)
	return fields, before, err == nil
}

// sameButTruncation tells whether two metadata say the same apart from $tb.
func sameButTruncation(a, b []byte) bool {
	var left, right map[string]json.RawMessage
	if json.Unmarshal(a, &left) != nil || json.Unmarshal(b, &right) != nil {
		return false
	}
	delete(left, "$tb")
	delete(right, "$tb")
	if len(left) != len(right) {
		return false
	}
	for name, v := range left {
		w, there := right[name]
		if !there || !sameJSON(v, w) {
			return false
		}
	}
	return true
}

func sameJSON(a, b json.RawMessage) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && string(x) == string(y)
}
