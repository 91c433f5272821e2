package main

import (
	"context"
	"errors"
	"fmt"

	"tallyard/domain/es"
	"tallyard/domain/tenant"
	"tallyard/domain/user"
	"tallyard/infra/postgres"
)

// beginning is how much of a log is looked at for its first tenant and person,
// which stand at the very beginning of every one.
const beginning = 2_000

// firstOf finds the first tenant and the first person of a log.
func firstOf(ctx context.Context, rt *es.Runtime) (made *es.Envelope, person *es.Envelope, err error) {
	for rec, err := range rt.Log.ReadAll(ctx, es.StartPosition, es.Forward, beginning) {
		if err != nil {
			return nil, nil, fmt.Errorf("read the beginning of the event store: %w", err)
		}
		env, err := rt.Registry.Decode(rec)
		if err != nil {
			continue // a projection will stand still at it and say so
		}
		switch env.Event.(type) {
		case tenant.Created:
			if made == nil {
				made = &env
			}
		case user.Described:
			if person == nil {
				person = &env
			}
		}
		if made != nil && person != nil {
			break
		}
	}
	return made, person, nil
}

// belong makes sure that the key and the database are those that the event
// store was filled with. With another key nobody finds a name any more; without
// the keys of persons, which the database has, everybody is erased.
func (p *parts) belong(ctx context.Context, c config, held *postgres.PersonKeys) error {
	made, person, err := firstOf(ctx, p.domain.runtime)
	if err != nil || made == nil {
		return err
	}
	known, err := p.domain.tenants.EverNamed(ctx, made.Event.(tenant.Created).Name) //nolint:forcetypeassert // firstOf gives no other
	if err != nil {
		return err
	}
	if !known {
		return errors.New("the installation's key is not the one that this event store was filled with; put the right one back: " + keyPlace(c))
	}
	if person == nil || c.lostPeople {
		return nil
	}
	some, err := held.Any(ctx)
	if err != nil {
		return err
	}
	if !some {
		return errors.New("the database has no key of any person, but the event store has people: it is not the database that belongs to it. " +
			"Restore the database, or start with --accept-lost-people to go on without their names for ever")
	}
	return nil
}

// keyPlace is where the installation's key lies.
func keyPlace(c config) string {
	if c.masterKey != "" {
		return c.masterKey
	}
	return masterKeyPath(c.dataDir)
}
