package eventstore

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"tallyard/domain/es"
)

const (
	// probeTimeout is how long the server may take to tell where its log ends.
	probeTimeout = 3 * time.Second
	// probeGrace is how long what the probe saw may take to arrive.
	probeGrace = 2 * time.Second
)

// watch ends the client's subscription, by its context, when it can't be
// trusted any more: when its connection is being replaced, when the server
// doesn't answer a question, or when the server has events behind those
// delivered and yet sends nothing. A silent server looks like an idle one, so
// after a silence it must be asked.
func (s *subscription) watch(ctx context.Context, cancel context.CancelCauseFunc, ses *session) {
	silent := s.log.silentAfter
	tick := time.NewTicker(max(silent/8, time.Millisecond))
	defer tick.Stop()
	var trusted time.Time // the last probe found nothing amiss
	for {
		select {
		case <-ctx.Done():
			return
		case <-ses.dead:
			cancel(errReplaced)
			return
		case <-tick.C:
		}
		since := s.waiting.Load()
		if since == 0 || time.Since(time.Unix(0, since)) < silent || time.Since(trusted) < silent {
			continue
		}
		if err := s.probe(ctx, ses); err != nil {
			cancel(err)
			return
		}
		trusted = time.Now()
	}
}

// errReplaced ends subscriptions of a session that is at its end.
var errReplaced = errors.New("the connection is being replaced")

// probe asks the server where its log ends and waits for the subscription to get there.
func (s *subscription) probe(ctx context.Context, ses *session) error {
	pctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	end, err := use(pctx, pctx, ses, false, lastPosition)
	if err != nil {
		if ctx.Err() == nil {
			ses.retire("the server does not answer")
		}
		return err
	}
	since := s.waiting.Load()
	deadline := time.NewTimer(probeGrace)
	defer deadline.Stop()
	if since == 0 || uint64(end) <= s.told.Load() {
		return nil
	}
	select {
	case <-deadline.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.waiting.Load() != since {
		return nil // something came
	}
	return errSilent
}

// lastPosition asks for the position of the last event of the log, 0 if it is empty.
func lastPosition(ctx context.Context, c *esdb.Client) (es.Position, error) {
	stream, err := c.ReadAll(ctx, esdb.ReadAllOptions{Direction: esdb.Backwards, From: esdb.End{}}, 1)
	if err != nil {
		return es.StartPosition, err
	}
	defer stream.Close()
	e, err := stream.Recv()
	if errors.Is(err, io.EOF) && ctx.Err() == nil {
		return es.StartPosition, nil
	}
	if err != nil {
		return es.StartPosition, err
	}
	r, err := recorded(e.OriginalEvent())
	return r.Position, err
}
