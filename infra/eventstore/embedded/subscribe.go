package embedded

import (
	"context"
	"math"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
)

// quietTime is how long a live filtered subscription waits, after events that
// did not pass its filter, before it tells the client that it has seen them. A
// client's checkpoint then never lags behind an idle log.
const quietTime = 250 * time.Millisecond

// subscribeAll follows the whole log, behind the given position.
func (r *reader) subscribeAll(o *streams.ReadReq_Options_AllOptions) error {
	after := uint64(0)
	switch x := o.GetAllOption().(type) {
	case *streams.ReadReq_Options_AllOptions_Start:
	case *streams.ReadReq_Options_AllOptions_End:
		after = r.store.committed.Load()
	case *streams.ReadReq_Options_AllOptions_Position:
		after = min(x.Position.GetCommitPosition(), math.MaxInt64)
	default:
		return invalid("the subscription names no position")
	}
	if err := r.out.Send(confirmationMessage(uuid.NewString())); err != nil {
		return err
	}
	s := &allSubscription{reader: r, looked: after}
	return toStatus(streamTrailer(r.out), "$all", s.run())
}

// allSubscription is where a subscription to the whole log stands.
type allSubscription struct {
	*reader
	looked     uint64 // position of the last event looked at
	told       uint64 // position of the last checkpoint sent
	considered int    // events looked at since then
	unmatched  bool   // the last event looked at did not pass the filter
	live       bool
}

func (s *allSubscription) run() error {
	ctx := s.out.Context()
	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	for {
		// Taken before the read: what comes after it wakes us.
		news := s.store.news.next()
		more, err := s.page(ctx)
		if err != nil {
			return err
		}
		if more {
			if err := s.goesOn(); err != nil {
				return err
			}
			s.live = false
			continue
		}
		if !s.live {
			if err := s.goLive(); err != nil {
				return err
			}
		}
		var idle <-chan time.Time
		if s.filter != nil && s.unmatched && s.looked > s.told {
			quiet.Reset(quietTime)
			idle = quiet.C
		}
		select {
		case <-news:
		case <-idle:
			if err := s.checkpoint(); err != nil {
				return err
			}
		case <-s.server.stopping:
			return s.server.stopped()
		case <-s.store.failed():
			return errFailed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// page delivers the next page and tells whether there is more behind it.
func (s *allSubscription) page(ctx context.Context) (more bool, err error) {
	buf := takePageBuffer()
	defer buf.giveBack()
	p, err := s.store.readAll(ctx, s.looked+1, false, pageEvents, buf)
	if err != nil {
		return false, err
	}
	return p.more, s.deliver(p.events)
}

// deliver sends the events that pass the filter, and checkpoints between them.
func (s *allSubscription) deliver(events []event) error {
	for i := range events {
		e := &events[i]
		s.looked = e.position
		if changesAccess(e, "$all") {
			if err := s.authorize("$all"); err != nil {
				return err
			}
		}
		s.unmatched = !s.filter.match(e)
		if !s.unmatched {
			if err := s.send(e); err != nil {
				return err
			}
		}
		if s.filter == nil {
			continue
		}
		if s.considered++; s.considered >= s.filter.interval {
			if err := s.checkpoint(); err != nil {
				return err
			}
		}
	}
	return nil
}

// goLive tells the client that it has everything there is.
func (s *allSubscription) goLive() error {
	s.live = true
	if s.filter != nil {
		if err := s.checkpoint(); err != nil {
			return err
		}
	}
	return s.out.Send(caughtUpMessage())
}

// checkpoint tells the client how far the log was looked at. Checkpoints grow
// strictly and lie inside the log, also if the client began beyond its end.
func (s *allSubscription) checkpoint() error {
	s.considered = 0
	if s.looked <= s.told || s.looked > s.store.committed.Load() {
		return nil
	}
	s.told = s.looked
	return s.out.Send(checkpointMessage(s.looked))
}

// subscribeStream follows one stream, behind the given revision. The stream
// need not exist.
func (r *reader) subscribeStream(name string, o *streams.ReadReq_Options_StreamOptions) error {
	ctx := r.out.Context()
	next, err := r.streamStart(name, o)
	if err != nil {
		return err
	}
	if err := r.out.Send(confirmationMessage(uuid.NewString())); err != nil {
		return err
	}
	var live, looked bool
	var changed uint64
	for {
		news := r.store.news.next()
		h, err := r.open(name)
		if err != nil {
			return err
		}
		if !looked || h.changed != changed {
			// What has changed may be who may read it.
			if err := r.authorize(name); err != nil {
				return err
			}
			p, following, err := r.store.readStream(ctx, name, &h, next, false, pageEvents)
			if err != nil {
				return err
			}
			for i := range p.events {
				if err := r.send(&p.events[i]); err != nil {
					return err
				}
			}
			next = max(next, following)
			if p.more {
				if err := r.goesOn(); err != nil {
					return err
				}
				live, looked = false, false
				continue
			}
			changed, looked = h.changed, true
		}
		if !live {
			live = true
			if err := r.out.Send(caughtUpMessage()); err != nil {
				return err
			}
		}
		select {
		case <-news:
		case <-r.server.stopping:
			return r.server.stopped()
		case <-r.store.failed():
			return errFailed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// streamStart turns the start of a subscription to a stream into the first revision it delivers.
func (r *reader) streamStart(name string, o *streams.ReadReq_Options_StreamOptions) (int64, error) {
	switch x := o.GetRevisionOption().(type) {
	case *streams.ReadReq_Options_StreamOptions_Start:
		return 0, nil
	case *streams.ReadReq_Options_StreamOptions_Revision:
		return int64(min(x.Revision, math.MaxInt64-1)) + 1, nil
	case *streams.ReadReq_Options_StreamOptions_End:
		h, err := r.open(name)
		return h.last + 1, err
	default:
		return 0, invalid("the subscription names no revision")
	}
}
