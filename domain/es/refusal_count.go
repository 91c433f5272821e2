package es

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/fault"
)

const (
	// refusalsPerMinute are recorded singly per actor, code and minute, and again
	// of each action and subject, so that a flood of one hides no other.
	refusalsPerMinute = 10
	// refusalsOfActor is when that ends for an actor who varies what they ask for:
	// the rest of their minute is told by the summary alone.
	refusalsOfActor = 100
	// refusalsWithReason is the bound for commands that want a reason. Each of them
	// is recorded singly up to it: those are the ones that somebody will ask about.
	refusalsWithReason = 1000
	// refusalsListed is how many actions and subjects a summary tells apart;
	// further subjects are counted by their action.
	refusalsListed = 200
)

// Refusals counts refusals, so that a client in a loop can't flood the log.
type Refusals struct {
	mu     sync.Mutex
	counts map[refusalKey]*refusalCount
	singly map[refusalKey]int // by actor and minute, without a code
}

// NewRefusals makes the counter; its Run writes the summaries.
func NewRefusals() *Refusals {
	return &Refusals{counts: map[refusalKey]*refusalCount{}, singly: map[refusalKey]int{}}
}

// refusalKey is what one summary is of.
type refusalKey struct {
	tenant, user uuid.UUID
	code         fault.Code
	minute       time.Time
}

// refusalCount is what was refused under one key.
type refusalCount struct {
	all int
	of  map[refusalOf]refusalTally
}

// refusalOf is what somebody wanted, and on what.
type refusalOf struct {
	action string
	on     Ref
}

// refusalTally counts refusals, and those of them that the summary is to tell.
type refusalTally struct{ all, folded int }

// admit counts and tells whether this one is recorded singly.
func (r *Refusals) admit(cmd Command, code fault.Code, now time.Time) bool {
	k := refusalKey{cmd.Tenant, cmd.Actor.User, code, now.Truncate(time.Minute)}
	actor := k
	actor.code = ""
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.count(k)
	of := c.place(refusalOf{cmd.Action, cmd.Subject})
	t := c.of[of]
	c.all++
	t.all++
	single := c.all <= refusalsPerMinute
	switch n := r.singly[actor]; {
	case cmd.NeedsReason:
		single = single || n < refusalsWithReason
	default:
		single = single || t.all <= refusalsPerMinute && n < refusalsOfActor
	}
	if single {
		r.singly[actor]++
	} else {
		t.folded++
	}
	c.of[of] = t
	return single
}

// count is the count of a key; r.mu is held.
func (r *Refusals) count(k refusalKey) *refusalCount {
	c := r.counts[k]
	if c == nil {
		c = &refusalCount{of: map[refusalOf]refusalTally{}}
		r.counts[k] = c
	}
	return c
}

// place is where something is counted: by itself while there is room, then with
// all others of its action, of which there are as many as commands.
func (c *refusalCount) place(of refusalOf) refusalOf {
	if _, known := c.of[of]; !known && len(c.of) >= refusalsListed {
		of.on = Ref{}
	}
	return of
}

// add puts a count back whose summary could not be written.
func (c *refusalCount) add(other *refusalCount) {
	c.all += other.all
	for of, more := range other.of {
		of = c.place(of)
		t := c.of[of]
		c.of[of] = refusalTally{t.all + more.all, t.folded + more.folded}
	}
}

// folded is how many were not recorded singly.
func (c *refusalCount) folded() (n int) {
	for _, t := range c.of {
		n += t.folded
	}
	return n
}

// parts are what the summary tells apart, the most frequent first.
func (c *refusalCount) parts() []RefusalsOf {
	parts := make([]RefusalsOf, 0, len(c.of))
	for of, t := range c.of {
		if t.folded > 0 {
			parts = append(parts, RefusalsOf{Action: of.action, On: of.on, Count: t.folded})
		}
	}
	slices.SortFunc(parts, func(a, b RefusalsOf) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(a.Action, b.Action), strings.Compare(a.On.ID.String(), b.On.ID.String()))
	})
	return parts
}
