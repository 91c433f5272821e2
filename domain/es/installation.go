package es

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// InstallationCreated is the first event of a log; its id is the log's identity.
// Read models remember it, so that a wiped or exchanged store is noticed.
type InstallationCreated struct {
	ID uuid.UUID `json:"id"`
}

// Changes implements Event.
func (InstallationCreated) Changes() []Change { return nil }

var installationStream = StreamOf("installation", PlatformTenant, uuid.Nil)

// Identity gives the log's identity and makes it when the log has none yet.
func Identity(ctx context.Context, rt *Runtime) (uuid.UUID, error) {
	for range maxAttempts {
		for env, err := range Events(ctx, rt, installationStream, 0) {
			if err != nil {
				return uuid.Nil, err
			}
			if ev, ok := env.Event.(InstallationCreated); ok {
				return ev.ID, nil
			}
		}
		cmd := System(rt.IDs.New(), "start", "createInstallation", PlatformTenant)
		_, _, err := rt.append(ctx, cmd, installationStream, NoStream(), []Event{InstallationCreated{ID: rt.IDs.New()}})
		if err != nil && !errors.Is(err, ErrWrongRevision) {
			return uuid.Nil, err
		}
	}
	return uuid.Nil, fmt.Errorf("the identity of the event store could not be settled")
}
