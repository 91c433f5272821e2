package authn

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// who is a user of a tenant.
type who struct{ tenant, user uuid.UUID }

// session is an open context.
type session struct {
	viewer atomic.Pointer[Viewer]
	end    context.CancelCauseFunc
}

// sessions knows the open contexts by user, so that a change of a user's rights
// costs the work of that user's contexts, not of all.
type sessions struct {
	mu   sync.Mutex
	byID map[who]map[*session]struct{}
	// due holds the users whose contexts must be looked at again.
	due map[who]struct{}
	// changes counts the changes of users that were seen.
	changes uint64
	wake    chan struct{}
}

func newSessions() *sessions {
	return &sessions{byID: map[who]map[*session]struct{}{}, due: map[who]struct{}{}, wake: make(chan struct{}, 1)}
}

// seen is the count of changes; what was read after it may lack later ones.
func (s *sessions) seen() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes
}

// open makes a context for a viewer that was verified after began was taken.
func (s *sessions) open(parent context.Context, v Viewer, began uint64) context.Context {
	ctx, end := context.WithCancelCause(parent)
	one := &session{end: end}
	one.viewer.Store(&v)
	id := who{v.Tenant, v.User()}

	s.mu.Lock()
	if s.byID[id] == nil {
		s.byID[id] = map[*session]struct{}{}
	}
	s.byID[id][one] = struct{}{}
	if s.changes != began {
		// Somebody changed while the viewer was verified, perhaps this one.
		s.markLocked(id)
	}
	s.mu.Unlock()

	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.byID[id], one)
		if len(s.byID[id]) == 0 {
			delete(s.byID, id)
			delete(s.due, id)
		}
		end(nil)
	})
	return context.WithValue(ctx, viewerKey{}, func() Viewer { return *one.viewer.Load() })
}

// touch notes that a user changed.
func (s *sessions) touch(id who) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	if len(s.byID[id]) > 0 {
		s.markLocked(id)
	}
}

// touchAll has every open context looked at: changes may have been missed.
func (s *sessions) touchAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	for id := range s.byID {
		s.markLocked(id)
	}
}

// expire marks the users with a context whose credential ended by itself.
func (s *sessions) expire(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, list := range s.byID {
		for one := range list {
			if end := one.viewer.Load().ExpiresAt; !end.IsZero() && !end.After(now) {
				s.markLocked(id)
				break
			}
		}
	}
}

func (s *sessions) markLocked(id who) {
	s.due[id] = struct{}{}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// takeDue hands over who must be looked at, with their contexts.
func (s *sessions) takeDue() map[who][]*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[who][]*session, len(s.due))
	for id := range s.due {
		for one := range s.byID[id] {
			out[id] = append(out[id], one)
		}
	}
	clear(s.due)
	return out
}

// again puts a user back who could not be looked at; the next tick takes it up.
func (s *sessions) again(id who) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID[id]) > 0 {
		s.due[id] = struct{}{}
	}
}
