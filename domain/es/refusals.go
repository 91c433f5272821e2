package es

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/fault"
)

// CommandRefused records that somebody was refused, and why.
type CommandRefused struct {
	On     Ref           `json:"on,omitzero"`
	Faults []StoredFault `json:"faults"`
}

// Changes implements Event.
func (CommandRefused) Changes() []Change { return nil }

// Subject implements Subjected: a refusal is about what the command was about.
func (e CommandRefused) Subject(Ref) Ref { return e.On }

// RefusalsSummarised says how many more times an actor was refused with the
// same code within one minute, after the ones that were recorded singly, and
// what they wanted.
type RefusalsSummarised struct {
	Code   fault.Code `json:"code"`
	Count  int        `json:"count"`
	Minute time.Time  `json:"minute"` // its start
	// Of are the actions that were refused and what on, the most frequent first;
	// empty when a program wrote it that did not tell them apart.
	Of []RefusalsOf `json:"of"`
}

// RefusalsOf is a part of a summary: what was refused how often. On is empty
// when the action made something new, or stands for further subjects of it.
type RefusalsOf struct {
	Action string `json:"action"`
	On     Ref    `json:"on,omitzero"`
	Count  int    `json:"count"`
}

// Changes implements Event.
func (RefusalsSummarised) Changes() []Change { return nil }

// summarisedOf is the second version of RefusalsSummarised: the first did not
// tell what was refused.
func summarisedOf(old json.RawMessage) (json.RawMessage, error) {
	var ev RefusalsSummarised
	if err := json.Unmarshal(old, &ev); err != nil {
		return nil, err
	}
	ev.Of = []RefusalsOf{}
	return json.Marshal(ev)
}

// RefusalCategory is the category of the streams of refusals, one per actor.
const RefusalCategory = "refusals"

// recorded tells which kinds of faults are answers of the domain: those are
// audited and kept for an idempotency key. The rest are mishaps.
func recorded(k fault.Kind) bool {
	switch k {
	case fault.Invalid, fault.Forbidden, fault.NotFound, fault.Conflict, fault.State, fault.Quota:
		return true
	default:
		return false
	}
}

// refused records a refusal before it is answered. That the record can't be
// written is logged and does not change the answer.
func (rt *Runtime) refused(ctx context.Context, cmd Command, err error) {
	faults, ok := fault.All(err)
	if !ok || rt.Refusals == nil || !recorded(faults[0].Kind) {
		return
	}
	if !rt.Refusals.admit(cmd, faults[0].Code, rt.Now()) {
		return
	}
	ev := CommandRefused{On: cmd.Subject, Faults: make([]StoredFault, len(faults))}
	for i, f := range faults {
		ev.Faults[i] = StoredFault{Kind: f.Kind, Code: f.Code, Message: f.Message, Field: f.Field, Details: f.Details}
	}
	// The client may have gone; the record is made all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, _, err := rt.append(ctx, cmd, refusalStream(cmd.Tenant, cmd.Actor.User), Any(), []Event{ev}); err != nil {
		rt.Logger.ErrorContext(ctx, "refusal not recorded", "action", cmd.Action, "requestId", cmd.Request, "error", err)
	}
}

func refusalStream(tenant, user uuid.UUID) StreamID {
	return StreamOf(RefusalCategory, tenant, user)
}

// Run writes a summary of each minute that is over, until ctx ends. What was
// counted in a minute that a crash cut off is lost.
func (r *Refusals) Run(ctx context.Context, rt *Runtime) error {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			// A clean stop loses nothing: the running minute is closed early.
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
			defer cancel()
			r.Summarise(last, rt, rt.Now().Add(time.Minute))
			return nil
		case <-tick.C:
			r.Summarise(ctx, rt, rt.Now())
		}
	}
}

// Summarise writes the summaries of all minutes before now's.
func (r *Refusals) Summarise(ctx context.Context, rt *Runtime, now time.Time) {
	r.mu.Lock()
	over := map[refusalKey]*refusalCount{}
	for k, c := range r.counts {
		if k.minute.Before(now.Truncate(time.Minute)) {
			delete(r.counts, k)
			if c.folded() > 0 {
				over[k] = c
			}
		}
	}
	for k := range r.singly {
		if k.minute.Before(now.Truncate(time.Minute)) {
			delete(r.singly, k)
		}
	}
	r.mu.Unlock()
	for k, c := range over {
		cmd := System(rt.IDs.New(), "refusals", "summariseRefusals", k.tenant)
		ev := RefusalsSummarised{Code: k.code, Count: c.folded(), Minute: k.minute, Of: c.parts()}
		if _, _, err := rt.append(ctx, cmd, refusalStream(k.tenant, k.user), Any(), []Event{ev}); err != nil {
			rt.Logger.ErrorContext(ctx, "summary of refusals not recorded, trying again", "count", ev.Count, "error", err)
			r.mu.Lock()
			r.count(k).add(c)
			r.mu.Unlock()
		}
	}
}
