package es

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/google/uuid"
	"golang.org/x/text/unicode/norm"

	"tallyard/domain/fault"
)

// Name is something that must be unique: within a tenant, or within one of its
// projects. It is reserved before the thing is made and released after it is
// gone, because the log appends to one stream at a time.
type Name struct {
	Kind    string    // "algorithm", "user", …
	Project uuid.UUID // nil: unique in the whole tenant
	Value   string    // compared in NFC, case counts
}

// NameReserved says that a stream holds a name.
type NameReserved struct {
	Kind   string `json:"kind"`
	Holder string `json:"holder"` // the stream of the thing that has the name
}

// Changes implements Event.
func (NameReserved) Changes() []Change { return nil }

// NameReleased says that a name is free again.
type NameReleased struct {
	Kind   string `json:"kind"`
	Holder string `json:"holder"`
	// Orphan: the holder never came to be; the command that reserved it died.
	Orphan bool `json:"orphan,omitempty"`
}

// Changes implements Event.
func (NameReleased) Changes() []Change { return nil }

// NameCategory is the category of the names' streams.
const NameCategory = "name"

// OrphanAfter is how long a reservation without its thing is left alone. It is
// far longer than any command may run.
const OrphanAfter = 5 * time.Minute

// NameState is what a name's stream folds to.
type NameState struct {
	Holder string    `json:"holder,omitempty"` // empty: free
	Since  time.Time `json:"since,omitzero"`
}

var nameAggregate = Aggregate[NameState]{
	Category: NameCategory,
	Fold:     1,
	Evolve: func(s NameState, e Envelope) NameState {
		switch ev := e.Event.(type) {
		case NameReserved:
			return NameState{Holder: ev.Holder, Since: e.Meta.Time}
		case NameReleased:
			return NameState{}
		}
		return s
	},
}

// stream hides the name itself: with the key alone can anybody tell what is reserved.
func (rt *Runtime) nameStream(tenant uuid.UUID, n Name) StreamID {
	mac := hmac.New(sha256.New, rt.NameKey)
	mac.Write([]byte(n.Kind))
	mac.Write([]byte{0})
	mac.Write(n.Project[:])
	mac.Write([]byte(norm.NFC.String(n.Value)))
	return StreamID{Category: NameCategory, Tenant: tenant, Key: hex.EncodeToString(mac.Sum(nil)[:20])}
}

// Holder tells which stream has a name; false when it is free.
func (rt *Runtime) Holder(ctx context.Context, tenant uuid.UUID, n Name) (StreamID, bool, error) {
	l, err := load(ctx, rt, nameAggregate, rt.nameStream(tenant, n), uuid.Nil)
	if err != nil || l.State.Holder == "" {
		return StreamID{}, false, err
	}
	s, err := ParseStream(l.State.Holder)
	return s, err == nil, err
}

// Reserve takes a name for a stream; the same holder may ask again. A name
// whose holder never came to be is taken over once OrphanAfter has passed.
func (rt *Runtime) Reserve(ctx context.Context, cmd Command, n Name, holder StreamID) error {
	return rt.onName(ctx, cmd, n, func(s NameState) ([]Event, error) {
		switch {
		case s.Holder == holder.String():
			return nil, nil
		case s.Holder == "":
			return []Event{NameReserved{Kind: n.Kind, Holder: holder.String()}}, nil
		}
		orphan, err := rt.orphaned(ctx, s)
		if err != nil {
			return nil, err
		}
		if orphan {
			return []Event{
				NameReleased{Kind: n.Kind, Holder: s.Holder, Orphan: true},
				NameReserved{Kind: n.Kind, Holder: holder.String()},
			}, nil
		}
		return nil, fault.New(fault.Conflict, fault.CodeNameTaken, "This name is taken; choose another one.").At("name")
	})
}

// Release frees a name that the stream holds; it is the last step of a deletion.
func (rt *Runtime) Release(ctx context.Context, cmd Command, n Name, holder StreamID) error {
	return rt.onName(ctx, cmd, n, func(s NameState) ([]Event, error) {
		if s.Holder != holder.String() {
			return nil, nil
		}
		return []Event{NameReleased{Kind: n.Kind, Holder: s.Holder}}, nil
	})
}

// ReleaseOrphan frees the name of a stream when its holder never came to be. It
// tells whether it did.
func (rt *Runtime) ReleaseOrphan(ctx context.Context, cmd Command, stream StreamID) (bool, error) {
	released := false
	err := rt.appendTo(ctx, cmd, stream, func(s NameState) ([]Event, error) {
		if s.Holder == "" {
			return nil, nil
		}
		orphan, err := rt.orphaned(ctx, s)
		if err != nil || !orphan {
			return nil, err
		}
		released = true
		return []Event{NameReleased{Holder: s.Holder, Orphan: true}}, nil
	})
	return released, err
}

func (rt *Runtime) orphaned(ctx context.Context, s NameState) (bool, error) {
	if rt.Now().Sub(s.Since) < OrphanAfter {
		return false, nil
	}
	for _, err := range rt.Log.ReadStream(ctx, s.Holder, 0, Forward, 1) {
		if errors.Is(err, ErrStreamNotFound) {
			return true, nil
		}
		return false, err
	}
	return true, nil
}

func (rt *Runtime) onName(ctx context.Context, cmd Command, n Name, decide Decide[NameState]) error {
	return rt.appendTo(ctx, cmd, rt.nameStream(cmd.Tenant, n), decide)
}

// appendTo is Execute for a name's stream, which has no aggregate id and to
// which one command may append twice (reserve, and release on a refusal).
func (rt *Runtime) appendTo(ctx context.Context, cmd Command, stream StreamID, decide Decide[NameState]) error {
	for attempt := range maxAttempts {
		if attempt > 0 {
			if err := jitter(ctx, attempt); err != nil {
				return err
			}
		}
		l, err := load(ctx, rt, nameAggregate, stream, uuid.Nil)
		if err != nil {
			return err
		}
		events, err := decide(l.State)
		if err != nil || len(events) == 0 {
			return err
		}
		_, _, err = rt.append(ctx, cmd, stream, At(l.Revision), events)
		if !errors.Is(err, ErrWrongRevision) {
			return err
		}
	}
	return fault.New(fault.Conflict, fault.CodeConflict, "Others want the same name at the same moment; nothing was done, try again.").At("name")
}
