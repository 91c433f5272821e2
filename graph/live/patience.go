package live

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"tallyard/domain/es"
)

// How long an event waits for its read model before it goes out all the same:
// the log is the truth, and a read model that is stuck is waited for once, not
// by every event.
const readModelPatience = 3 * time.Second

// rowsPatience is how long is waited for rows that there is no item without.
const rowsPatience = 10 * time.Second

// How often it is looked whether a read model that was given up on is back,
// and how long such a look may take: it holds up one subscriber.
const (
	probeEvery = time.Second
	probeTime  = 50 * time.Millisecond
)

// errStuck says that the read model is behind and is not waited for.
var errStuck = errors.New("the read model is behind")

// patience waits for read models, for all subscribers of a process. Once a wait
// was in vain, nobody waits for that read model any more until it has caught up:
// until it shows the newest that was asked for when it is looked at.
type patience struct {
	most time.Duration // how long an event waits; 0: readModelPatience

	mu    sync.Mutex
	stuck map[string]*stuck
	// unconfirmed counts the events that went out before their read model had them.
	unconfirmed int64
}

// stuck is a time in which a read model is not waited for.
type stuck struct {
	since  time.Time
	from   es.Position // the read model was not seen to have reached it
	asked  es.Position // the newest that was asked for
	looked time.Time   // when it was last looked at
}

// ready waits until the read models show an event that goes out in any case.
// Where they don't it counts that and says so in the log, once; it fails with
// ctx alone.
func (h *Hub) ready(ctx context.Context, p es.Position, projections []string) error {
	if h.await(ctx, p, projections) != nil && ctx.Err() == nil {
		h.waits.count()
	}
	return ctx.Err()
}

func (h *Hub) await(ctx context.Context, p es.Position, projections []string) error {
	name := strings.Join(projections, ",")
	if !h.waits.worthwhile(name, p) {
		return h.probe(ctx, name, projections)
	}
	most := h.waits.most
	if most == 0 {
		most = readModelPatience
	}
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := h.Waiter.Await(limited, p, projections...)
	if err == nil || ctx.Err() != nil || limited.Err() == nil {
		return err
	}
	if h.waits.giveUp(name, p) {
		h.Logger.WarnContext(ctx, "a read model is behind: live updates go out without waiting for it", "projections", name)
	}
	return err
}

// rows waits for rows that there is nothing to show without.
func (h *Hub) rows(ctx context.Context, p es.Position, patience time.Duration, projections []string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return h.Waiter.Await(ctx, p, projections...)
}

// probe looks whether read models that were given up on are back, when it is
// time to.
func (h *Hub) probe(ctx context.Context, name string, projections []string) error {
	asked, due := h.waits.look(name)
	if !due {
		return errStuck
	}
	limited, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	if err := h.Waiter.Await(limited, asked, projections...); err != nil {
		return err
	}
	if since, stood := h.waits.back(name); stood {
		h.Logger.InfoContext(ctx, "a read model has caught up: live updates wait for it again", "projections", name, "behind", time.Since(since))
	}
	return nil
}

// Behind tells of the read models that are not waited for, for how long, and
// how many events went out before their read model had them.
func (h *Hub) Behind(ctx context.Context) (behind map[string]time.Duration, unconfirmed int64) {
	for name := range h.waits.all() {
		_ = h.probe(ctx, name, strings.Split(name, ",")) // when it is still behind it stays on the list
	}
	behind = map[string]time.Duration{}
	for name, since := range h.waits.all() {
		behind[name] = time.Since(since)
	}
	h.waits.mu.Lock()
	defer h.waits.mu.Unlock()
	return behind, h.waits.unconfirmed
}

// worthwhile tells whether an event is to wait. One of before the standstill is:
// its rows are there, or the standstill is older than was known.
func (w *patience) worthwhile(name string, p es.Position) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stuck[name]
	if s == nil || p < s.from {
		return true
	}
	s.asked = max(s.asked, p)
	return false
}

// count notes an event that went out before its read model had it.
func (w *patience) count() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unconfirmed++
}

// giveUp notes that a wait was in vain and tells whether it was the first.
func (w *patience) giveUp(name string, p es.Position) (first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.stuck[name]; s != nil {
		s.from, s.asked = min(s.from, p), max(s.asked, p)
		return false
	}
	if w.stuck == nil {
		w.stuck = map[string]*stuck{}
	}
	now := time.Now()
	w.stuck[name] = &stuck{since: now, from: p, asked: p, looked: now}
	return true
}

// look tells what to look for, when it is time to.
func (w *patience) look(name string) (asked es.Position, due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stuck[name]
	if s == nil || time.Since(s.looked) < probeEvery {
		return 0, false
	}
	s.looked = time.Now()
	return s.asked, true
}

// back ends a standstill and tells since when it was.
func (w *patience) back(name string) (since time.Time, stood bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stuck[name]
	if s == nil {
		return time.Time{}, false
	}
	delete(w.stuck, name)
	return s.since, true
}

// all gives the read models that are not waited for, and since when.
func (w *patience) all() map[string]time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[string]time.Time, len(w.stuck))
	for name, s := range w.stuck {
		out[name] = s.since
	}
	return out
}
