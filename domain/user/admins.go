package user

import (
	"context"
	"maps"
	"strconv"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// The last admin of a tenant stays (TEN-11). Two admins who lose the role at
// the same moment are two streams, so one stream per tenant counts them and its
// expected revision lets only one of the two go.
//
// The count never holds anybody who can't act as an admin: one is counted after
// the user's own stream says so, and discounted before it stops saying so. A
// command that dies in between leaves an admin who is not counted, which can
// refuse a change too many but never lets the last one go. Both events carry
// the version of the user that they rest on: a count that comes late, when the
// user was discounted on that version or a newer one, is dropped.

// AdminCounted counts a user as admin of the tenant.
type AdminCounted struct {
	User uuid.UUID `json:"user"`
	// Seen is the version of the user that this rests on.
	Seen int `json:"seen"`
}

// Changes implements es.Event. The user's own stream tells the change.
func (AdminCounted) Changes() []es.Change { return nil }

// Subject implements es.Subjected.
func (e AdminCounted) Subject(es.Ref) es.Ref { return es.Ref{Kind: Category, ID: e.User} }

// AdminDiscounted takes a user out of the count.
type AdminDiscounted struct {
	User uuid.UUID `json:"user"`
	Seen int       `json:"seen"`
}

// Changes implements es.Event.
func (AdminDiscounted) Changes() []es.Change { return nil }

// Subject implements es.Subjected.
func (e AdminDiscounted) Subject(es.Ref) es.Ref { return es.Ref{Kind: Category, ID: e.User} }

type counted struct {
	In   bool `json:"in"`
	Seen int  `json:"seen"`
}

// adminsState maps users to whether they are counted. It is never changed in place.
type adminsState map[uuid.UUID]counted

var admins = es.Aggregate[adminsState]{
	Category: AdminsCategory,
	Fold:     1,
	Evolve: func(s adminsState, env es.Envelope) adminsState {
		var user uuid.UUID
		var c counted
		switch ev := env.Event.(type) {
		case AdminCounted:
			user, c = ev.User, counted{true, ev.Seen}
		case AdminDiscounted:
			user, c = ev.User, counted{false, ev.Seen}
		default:
			return s
		}
		next := maps.Clone(s)
		if next == nil {
			next = adminsState{}
		}
		next[user] = c
		return next
	},
}

// besides counts the admins other than a user.
func (s adminsState) besides(user uuid.UUID) int {
	n := 0
	for id, c := range s {
		if c.In && id != user {
			n++
		}
	}
	return n
}

// OnlyAdmin tells whether a user is the one who can act as an admin of the
// tenant: nobody else can approve what they ask for (TEN-02).
func (h *Handler) OnlyAdmin(ctx context.Context, tenant, user uuid.UUID) (bool, error) {
	s, err := h.Load(ctx, tenant, user)
	if err != nil || !s.governs() {
		return false, err
	}
	l, err := es.Load(ctx, h.Runtime, admins, tenant, tenant)
	return err == nil && l.State.besides(user) == 0, err
}

func count(user uuid.UUID, seen int) es.Decide[adminsState] {
	return func(s adminsState) ([]es.Event, error) {
		if s[user].In || s[user].Seen >= seen {
			return nil, nil
		}
		return []es.Event{AdminCounted{User: user, Seen: seen}}, nil
	}
}

func discount(user uuid.UUID, seen int) es.Decide[adminsState] {
	return func(s adminsState) ([]es.Event, error) {
		if s.besides(user) == 0 {
			return nil, fault.New(fault.State, fault.CodeLastAdmin,
				"This is the last admin of the tenant, who stays; make somebody else a tenant admin first.")
		}
		// A user who is not counted is noted as well: a count may be on its way.
		if !s[user].In && s[user].Seen >= seen {
			return nil, nil
		}
		return []es.Event{AdminDiscounted{User: user, Seen: seen}}, nil
	}
}

// step is the command of the n-th attempt at a part of cmd. The first is the
// command itself; the others need ids of their own, or the first one's event
// would be taken for theirs.
func step(cmd es.Command, part string, n int) es.Command {
	if n > 0 {
		cmd.ID = uuid.NewSHA1(cmd.ID, []byte(part+"/"+strconv.Itoa(n)))
	}
	return cmd
}
