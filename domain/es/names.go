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
	// Orphan: nothing bears the name; the command that reserved or left it died.
	Orphan bool `json:"orphan,omitempty"`
}

// Changes implements Event.
func (NameReleased) Changes() []Change { return nil }

// NameCategory is the category of the names' streams.
const NameCategory = "name"

// OrphanAfter is how long a reservation that nothing bears is left alone. It is
// far longer than any command may run.
const OrphanAfter = 5 * time.Minute

// NameState is what a name's stream folds to.
type NameState struct {
	Holder  string    `json:"holder,omitempty"` // empty: free
	Since   time.Time `json:"since,omitzero"`   // when it was reserved last
	Command uuid.UUID `json:"command,omitzero"` // that reserved it last
}

var nameAggregate = Aggregate[NameState]{
	Category: NameCategory,
	Fold:     2,
	Evolve: func(s NameState, e Envelope) NameState {
		switch ev := e.Event.(type) {
		case NameReserved:
			return NameState{Holder: ev.Holder, Since: e.Meta.Time, Command: e.Meta.Command}
		case NameReleased:
			return NameState{}
		}
		return s
	},
}

// NameStream is the stream of a name. It hides the name itself: with the key
// alone can anybody tell what is reserved.
func (rt *Runtime) NameStream(tenant uuid.UUID, n Name) StreamID {
	mac := hmac.New(sha256.New, rt.NameKey)
	mac.Write([]byte(n.Kind))
	mac.Write([]byte{0})
	mac.Write(n.Project[:])
	mac.Write([]byte(norm.NFC.String(n.Value)))
	return StreamID{Category: NameCategory, Tenant: tenant, Key: hex.EncodeToString(mac.Sum(nil)[:20])}
}

// Holder tells which stream has a name; false when it is free.
func (rt *Runtime) Holder(ctx context.Context, tenant uuid.UUID, n Name) (StreamID, bool, error) {
	l, err := load(ctx, rt, nameAggregate, rt.NameStream(tenant, n), uuid.Nil)
	if err != nil || l.State.Holder == "" {
		return StreamID{}, false, err
	}
	s, err := ParseStream(l.State.Holder)
	return s, err == nil, err
}

// EverReserved tells whether anything ever had a name, or asked for it.
func (rt *Runtime) EverReserved(ctx context.Context, tenant uuid.UUID, n Name) (bool, error) {
	l, err := load(ctx, rt, nameAggregate, rt.NameStream(tenant, n), uuid.Nil)
	return l.Revision >= 0, err
}

// Reserve takes a name for a stream; the same holder may ask again. A name
// whose holder never came to be is taken over once OrphanAfter has passed.
//
// Another command of the same holder reserves it anew: the event tells whoever
// is about to free the name that it is wanted again.
func (rt *Runtime) Reserve(ctx context.Context, cmd Command, n Name, holder StreamID) error {
	return rt.onName(ctx, cmd, n, func(l Loaded[NameState]) ([]Event, error) {
		s := l.State
		switch {
		case s.Holder == holder.String() && s.Command == cmd.ID:
			return nil, nil
		case s.Holder == holder.String(), s.Holder == "":
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
	return rt.releaseIf(ctx, cmd, n, holder, func(Loaded[NameState]) bool { return true })
}

// ReleaseOwn frees a name that this very command reserved, because what it was
// reserved for was refused. A name that another command reserved for the same
// holder meanwhile stays that one's.
func (rt *Runtime) ReleaseOwn(ctx context.Context, cmd Command, n Name, holder StreamID) error {
	return rt.releaseIf(ctx, cmd, n, holder, func(l Loaded[NameState]) bool { return l.State.Command == cmd.ID })
}

// ReleaseLeft frees a name that its holder left by an event at a position. One
// that was reserved again after that stays: the holder is about to come back.
func (rt *Runtime) ReleaseLeft(ctx context.Context, cmd Command, n Name, holder StreamID, left Position) error {
	// A name that is held was reserved by the last event of its stream.
	return rt.releaseIf(ctx, cmd, n, holder, func(l Loaded[NameState]) bool { return l.Position < left })
}

func (rt *Runtime) releaseIf(ctx context.Context, cmd Command, n Name, holder StreamID, free func(Loaded[NameState]) bool) error {
	return rt.onName(ctx, cmd, n, func(l Loaded[NameState]) ([]Event, error) {
		if l.State.Holder != holder.String() || !free(l) {
			return nil, nil
		}
		return []Event{NameReleased{Kind: n.Kind, Holder: l.State.Holder}}, nil
	})
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

type decideName func(Loaded[NameState]) ([]Event, error)

func (rt *Runtime) onName(ctx context.Context, cmd Command, n Name, decide decideName) error {
	return rt.appendTo(ctx, cmd, rt.NameStream(cmd.Tenant, n), decide)
}

// appendTo is Execute for a name's stream, which has no aggregate id and to
// which one command may append twice (reserve, and release on a refusal).
func (rt *Runtime) appendTo(ctx context.Context, cmd Command, stream StreamID, decide decideName) error {
	unlock, err := rt.locks.lock(ctx, stream.String())
	if err != nil {
		return err
	}
	defer unlock()
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
		events, err := decide(l)
		if err != nil || len(events) == 0 {
			return err
		}
		if l.Exists() {
			// A command that comes again after its reservation was freed reserves
			// anew: that is another event, with an id of its own.
			cmd.run = rt.IDs.New()
		}
		_, _, err = rt.append(ctx, cmd, stream, At(l.Revision), events)
		if !errors.Is(err, ErrWrongRevision) {
			return err
		}
	}
	return fault.New(fault.Conflict, fault.CodeConflict, "Others want the same name at the same moment; nothing was done, try again.").At("name")
}
