package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tallyard/domain/es"
)

// ReplayArgument chooses parked streams; an empty field means all.
type ReplayArgument struct {
	Projection string `json:"projection,omitempty"`
	Stream     string `json:"stream,omitempty"`
}

// ReplayReport tells how a replay ended, stream by stream.
type ReplayReport struct {
	Streams []ReplayedStream `json:"streams"`
}

// ReplayedStream is a parked stream that was tried again.
type ReplayedStream struct {
	Projection string `json:"projection"`
	Stream     string `json:"stream"`
	Events     int    `json:"events"`
	// Error says why it is still parked; empty when it is not.
	Error string `json:"error,omitempty"`
}

// replay tries parked streams again, between two batches of the live flow, so
// that nothing is missed and nothing done twice.
func (t *term) replay(ctx context.Context, which ReplayArgument) (ReplayReport, error) {
	report := ReplayReport{Streams: []ReplayedStream{}}
	f := t.live.Load()
	if f == nil {
		return report, ErrNotReady
	}
	var err error
	doErr := f.do(ctx, func() {
		if err = f.move(ctx); err != nil {
			return
		}
		for _, st := range f.states {
			if which.Projection != "" && which.Projection != st.p.Name {
				continue
			}
			for stream := range st.parked {
				if which.Stream != "" && which.Stream != stream {
					continue
				}
				var one ReplayedStream
				if one, err = f.replay(ctx, st, stream); err != nil {
					return
				}
				report.Streams = append(report.Streams, one)
			}
		}
		f.show()
	})
	return report, errors.Join(err, doErr)
}

// replay projects a parked stream from the event that failed up to the
// checkpoint. What works stays, also when a later event fails again.
func (f *flow) replay(ctx context.Context, st *state, stream string) (ReplayedStream, error) {
	done := ReplayedStream{Projection: st.p.Name, Stream: stream}
	err := f.insist(ctx, st.p.Name, func(ctx context.Context) error {
		done.Events, done.Error = 0, ""
		return f.inTx(ctx, st, func(tx pgx.Tx) error {
			var from int64
			err := tx.QueryRow(ctx, `SELECT revision FROM tallyard.parked_streams
				WHERE generation = $1 AND projection = $2 AND stream = $3 FOR UPDATE`, f.gen.id, st.p.Name, stream).Scan(&from)
			if err != nil {
				return fmt.Errorf("parked stream: %w", err)
			}
			waits := patience
			for rec, err := range f.log.ReadStream(ctx, stream, es.Revision(from), es.Forward, es.Everything) {
				if errors.Is(err, es.ErrStreamNotFound) {
					break // deleted since: there is nothing left to project
				}
				if err != nil {
					return err
				}
				if rec.Position > st.at {
					break
				}
				it := f.decode(rec)
				if st.p.raw == nil && it.err == nil && st.p.handler(it.env.Name) == nil {
					continue
				}
				cause, err := f.tryEvent(ctx, tx, st, &it, &waits)
				if err != nil {
					return err
				}
				if cause != nil {
					done.Error = cause.Error()
					return f.park(ctx, tx, st, &it, cause)
				}
				done.Events++
			}
			_, err = tx.Exec(ctx, `DELETE FROM tallyard.parked_streams
				WHERE generation = $1 AND projection = $2 AND stream = $3`, f.gen.id, st.p.Name, stream)
			return err
		})
	})
	if err == nil && done.Error == "" {
		delete(st.parked, stream)
	}
	return done, err
}
