package driver

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// lookAtClock is how often the clock is asked whether an event is due: the
// clock is handed in and may jump, so no timer can tell.
const lookAtClock = 200 * time.Millisecond

type notBefore struct{ at time.Time }

// Error implements error.
func (n notBefore) Error() string { return fmt.Sprintf("not due before %s", n.at.Format(time.RFC3339)) }

// NotBefore is returned by a process for an event that is to be dealt with at a
// later time. The driver waits, which is no failure, and hands the event out again.
func NotBefore(at time.Time) error { return notBefore{at} }

// waitFor waits until an event is due; false when err is another kind of error.
// Checkpoints are kept meanwhile.
func (d *Driver) waitFor(ctx context.Context, err error, m *mark) (bool, error) {
	var later notBefore
	if !errors.As(err, &later) {
		return false, nil
	}
	tick := time.NewTicker(lookAtClock)
	defer tick.Stop()
	for d.rt.Now().Before(later.at) {
		select {
		case <-ctx.Done():
			return true, ctx.Err()
		case <-tick.C:
			if err := m.tick(ctx); err != nil {
				return true, err
			}
		}
	}
	return true, nil
}
