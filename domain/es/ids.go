package es

import (
	"errors"
	"time"

	"github.com/google/uuid"
)

func ignoreMissing(err error) error {
	if errors.Is(err, ErrStreamNotFound) {
		return nil
	}
	return err
}

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now implements Clock.
func (SystemClock) Now() time.Time { return time.Now() }

// RandomIDs makes UUIDv7s.
type RandomIDs struct{}

// New implements IDs. The random source of the machine does not fail on any
// platform the program runs on; if it did, going on would be wrong.
func (RandomIDs) New() uuid.UUID { return uuid.Must(uuid.NewV7()) }
