package runner

import (
	"encoding/json"
	"time"

	"tallyard/domain/es"
)

// TimelineName is the name of the built-in projection that finds positions by time.
const TimelineName = "timeline"

// timelineProjection keeps, at about every 256th event, how far the recorded
// time had come: [Reader.PositionAt] starts there and reads on in the log.
//
// Which events get a row depends on their id alone, so batches, restarts and
// rebuilds choose the same ones. What is removed from the log in the normal
// course of things neither gets a row nor moves the time: else a rebuild after
// the removal would differ.
func timelineProjection() Projection {
	return Projection{
		Name:    TimelineName,
		Version: 1,
		Schema: `
CREATE TABLE timeline (
	position bigint PRIMARY KEY,
	latest timestamptz NOT NULL
);
CREATE TABLE timeline_latest_time (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	latest timestamptz NOT NULL
);
`,
		Indexes: `CREATE INDEX timeline_latest ON timeline (latest, position)`,
		raw:     projectTimeline,
	}
}

// projectTimeline queues a batch's marks. The running maximum of the batch
// joins the one in the table in SQL, since handlers can't read.
func projectTimeline(w *Writer, items []*item) {
	var (
		positions []int64
		times     []time.Time
		latest    time.Time
	)
	for _, it := range items {
		at, ok := timelineTime(it)
		if !ok {
			continue
		}
		if at.After(latest) {
			latest = at
		}
		if marked(&it.rec) {
			positions = append(positions, dbPosition(it.rec.Position))
			times = append(times, latest)
		}
	}
	if latest.IsZero() {
		return
	}
	if len(positions) > 0 {
		w.Exec(`INSERT INTO {g}.timeline (position, latest)
			SELECT m.position, greatest(m.latest, l.latest)
			FROM unnest($1::bigint[], $2::timestamptz[]) AS m (position, latest)
			LEFT JOIN {g}.timeline_latest_time l ON true`, positions, times)
	}
	w.Exec(`INSERT INTO {g}.timeline_latest_time AS t (latest) VALUES ($1)
		ON CONFLICT (one) DO UPDATE SET latest = excluded.latest
		WHERE excluded.latest > t.latest`, latest)
}

// marked chooses one event in 256, by its id.
func marked(rec *es.Recorded) bool { return rec.ID[15] == 0 }

// volatileCategories are the streams whose events are removed in the normal
// course of things: bounded checkpoints, expiring keys, erased persons.
var volatileCategories = []string{es.ProcessCategory, es.CommandCategory, "person"}

// timelineTime is the recorded time of an event that counts for the timeline.
func timelineTime(it *item) (time.Time, bool) {
	switch {
	case volatile(it.rec.Stream):
		return time.Time{}, false
	case it.decoded && !it.env.Meta.Time.IsZero():
		return it.env.Meta.Time.UTC().Truncate(time.Microsecond), true
	default:
		return recordedTime(&it.rec)
	}
}

// recordedTime reads the time out of an event's metadata, also of one that
// this program does not know.
func recordedTime(rec *es.Recorded) (time.Time, bool) {
	var meta struct {
		Time time.Time `json:"time"`
	}
	if json.Unmarshal(rec.Metadata, &meta) != nil || meta.Time.IsZero() {
		return time.Time{}, false
	}
	return meta.Time.UTC().Truncate(time.Microsecond), true
}

// volatile tells whether a stream is one whose events don't stay.
func volatile(stream string) bool {
	c := categoryOf(stream)
	for _, v := range volatileCategories {
		if c == v {
			return true
		}
	}
	return false
}
