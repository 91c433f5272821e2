package user

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/es"
)

// Person gives somebody's personal data from the log, for who may have it; it
// is erased when the key or the stream is gone.
func (h *Handler) Person(ctx context.Context, tenant, person uuid.UUID) (Person, error) {
	l, err := es.Load(ctx, h.Runtime, persons, tenant, person)
	if err != nil {
		return Person{}, err
	}
	return h.told(ctx, tenant, person, l.State)
}

// PersonAt is [Handler.Person] as of a position of the log. Who was erased since
// is erased then, too: the past is told by what can still be read.
func (h *Handler) PersonAt(ctx context.Context, tenant, person uuid.UUID, at es.Position) (Person, error) {
	l, err := es.LoadUntil(ctx, h.Runtime, persons, tenant, person, at)
	if err != nil {
		return Person{}, err
	}
	return h.told(ctx, tenant, person, l.State)
}

func (h *Handler) told(ctx context.Context, tenant, person uuid.UUID, s personState) (Person, error) {
	if s.Last == nil {
		return Person{DisplayName: ErasedName, Erased: true}, nil
	}
	return describe(ctx, h.Keys, persons.Stream(tenant, person), *s.Last)
}

// PersonStream is where a person's data stands, sealed.
func PersonStream(tenant, person uuid.UUID) es.StreamID { return persons.Stream(tenant, person) }

// PersonChanges tells what an event of a person's stream changed, for who may
// have it; email tells whether the address is for them. Of an erased person
// there is nothing but that they are.
func (h *Handler) PersonChanges(ctx context.Context, env es.Envelope, email bool) ([]es.Change, error) {
	now, err := Describe(ctx, h.Keys, env)
	if err != nil {
		return nil, err
	}
	if now.Erased {
		return []es.Change{es.Set("displayName", ErasedName)}, nil
	}
	id, err := env.Stream.UUID()
	if err != nil {
		return nil, err
	}
	l, err := es.LoadRevision(ctx, h.Runtime, persons, env.Stream.Tenant, id, env.Revision-1)
	if err != nil {
		return nil, err
	}
	var old Person
	if l.State.Last != nil {
		if old, err = describe(ctx, h.Keys, env.Stream, *l.State.Last); err != nil {
			return nil, err
		}
	}
	changes := []es.Change{}
	add := func(field, from, to string) {
		if from != to {
			changes = append(changes, es.Change{Field: field, From: valueOf(from), To: valueOf(to)})
		}
	}
	add("loginName", old.LoginName, now.LoginName)
	add("displayName", old.DisplayName, now.DisplayName)
	if email {
		add("email", old.Email, now.Email)
	}
	return changes, nil
}

// valueOf is a text of a change; nil stands for none.
func valueOf(s string) []byte {
	if s == "" {
		return nil
	}
	return es.ValueOf(s)
}
