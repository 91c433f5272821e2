// Package driver runs processes ([es.Process]): it follows the log, hands each
// event that a process is about to it, in order, and keeps how far it came.
//
// An event that can't be dealt with is tried again for ever, with growing
// pauses; it is never skipped, and nothing behind it is handed out meanwhile.
// That is visible in [Driver.Status], which metrics and readiness are made of,
// and in the log.
//
// What a process follows goes by the features its events belong to: one that
// handles "algorithm.published.v1" gets everything whose name begins with
// "algorithm.". Among those, a name that this program knows and the process
// does not handle is passed over; a name that the program does not know was
// written by a newer one and halts the process, since it may be a new version
// of what it waits for. Events of other features, known or not, are never seen.
package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"strings"
	"sync"
	"time"

	"tallyard/domain/es"
	"tallyard/processes/lifecycle"
)

// Checkpoints are kept after so many events, or so long after the first one
// that is not kept, whichever is earlier, and when the driver stops.
const (
	checkpointEvery = 200
	checkpointAfter = 5 * time.Second
	// idleAfter is how often the checkpoint follows a log in which nothing
	// was for the process, so that a restart does not read all that again.
	idleAfter = time.Minute
	// handleFor bounds one try to deal with one event.
	handleFor = time.Minute
)

// Driver runs one process.
type Driver struct {
	rt      *es.Runtime
	process es.Process
	logger  *slog.Logger
	// Pause is between tries; it is changed before Run only.
	Pause lifecycle.Backoff

	mu     sync.Mutex
	status lifecycle.Status
}

// New makes the driver of a process.
func New(rt *es.Runtime, process es.Process) *Driver {
	return &Driver{
		rt: rt, process: process, logger: rt.Logger.With("process", process.Name),
		status: lifecycle.Status{Name: process.Name, Condition: lifecycle.Waiting},
	}
}

// Name implements lifecycle.Runner.
func (d *Driver) Name() string { return d.process.Name }

// Status implements lifecycle.Runner.
func (d *Driver) Status() lifecycle.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status
}

// Run implements lifecycle.Runner: it follows the log until ctx ends.
func (d *Driver) Run(ctx context.Context) error {
	defer d.is(lifecycle.Waiting, "")
	d.is(lifecycle.Starting, "")
	for tries := 1; ; tries++ {
		before := d.Status().Handled
		err := d.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if d.Status().Handled > before {
			tries = 1
		}
		d.failed("follow the log", err)
		if d.Pause.Wait(ctx, tries) != nil {
			return nil
		}
	}
}

// follow goes on from the checkpoint until the subscription or ctx ends.
func (d *Driver) follow(ctx context.Context) error {
	from, err := es.ProcessCheckpoint(ctx, d.rt, d.process.Name)
	if err != nil {
		return fmt.Errorf("read the checkpoint: %w", err)
	}
	sub, err := d.rt.Log.Subscribe(ctx, es.After(from), es.Filter{TypePrefixes: features(d.process)})
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	defer sub.Close()
	mark := newMark(d, from)
	// Whatever ends it: what is dealt with is not handed out again.
	defer mark.keepAtEnd(ctx)

	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if err := mark.tick(ctx); err != nil {
				return err
			}
		case m, open := <-sub.Messages():
			if !open {
				return errors.Join(errors.New("the subscription ended"), sub.Err())
			}
			if err := d.message(ctx, m, mark); err != nil {
				return err
			}
		}
	}
}

func (d *Driver) message(ctx context.Context, m es.Message, mark *mark) error {
	switch m.Kind {
	case es.MessageEvent:
		if err := d.deal(ctx, m.Event, mark); err != nil {
			return err
		}
		return mark.dealt(ctx, m.Event)
	case es.MessageCheckpoint:
		mark.passed(m.Position)
	case es.MessageCaughtUp:
		d.is(lifecycle.Ready, "")
		mark.idle = time.Time{} // what lies between is kept soon, so that a restart does not read it again
	}
	return nil
}

// deal hands one event to the process until that succeeds.
func (d *Driver) deal(ctx context.Context, rec es.Recorded, mark *mark) error {
	healthy := d.Status().Condition
	for tries := 1; ; tries++ {
		err := d.once(ctx, rec)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			d.mu.Lock()
			d.status.Handled++
			d.mu.Unlock()
			if tries > 1 {
				d.is(healthy, "")
				d.logger.InfoContext(ctx, "event dealt with at last", "event", rec.ID, "type", rec.Type, "tries", tries)
			}
			return nil
		}
		if waited, err := d.waitFor(ctx, err, mark); err != nil {
			return err
		} else if waited {
			tries = 0
			continue
		}
		d.failed(fmt.Sprintf("event %s (%s), try %d", rec.ID, rec.Type, tries), err)
		if err := d.Pause.Wait(ctx, tries); err != nil {
			return err
		}
	}
}

func (d *Driver) once(ctx context.Context, rec es.Recorded) (err error) {
	env, err := d.rt.Registry.Decode(rec)
	if err != nil {
		return err
	}
	handle, ours := d.process.On[env.Name]
	if !ours {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, handleFor)
	defer cancel()
	defer func() {
		// A mistake in one process is tried again like any other failure,
		// instead of ending the program that serves everybody else.
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return handle(ctx, env)
}

// is notes a new condition.
func (d *Driver) is(c lifecycle.Condition, detail string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.status.Condition != c {
		d.status.Since = d.rt.Now()
	}
	d.status.Condition, d.status.Detail = c, detail
}

func (d *Driver) failed(what string, err error) {
	d.is(lifecycle.Retrying, what+": "+err.Error())
	d.mu.Lock()
	d.status.Retries++
	d.mu.Unlock()
	d.logger.Error("process is stuck and tries again", "at", what, "error", err)
}

// features are the prefixes of the names of the events that a process handles.
func features(p es.Process) []string {
	seen := map[string]bool{}
	for name := range p.On {
		feature, _, _ := strings.Cut(name, ".")
		seen[feature+"."] = true
	}
	prefixes := make([]string, 0, len(seen))
	for f := range seen {
		prefixes = append(prefixes, f)
	}
	sort.Strings(prefixes)
	return prefixes
}
