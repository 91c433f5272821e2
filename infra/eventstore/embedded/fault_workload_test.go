package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// workload writes to a store in every way there is: sixteen writers with
// appends of several events, streams that are truncated, deleted, revived and
// ended, and what Pebble does underneath: new write-ahead logs, flushes,
// compactions, opening and closing.
type workload struct {
	files vfs.FS
	seed  uint64
	known *ledgerOfPromises
}

const (
	workloadWriters = 16
	workloadAppends = 6
	workloadRounds  = 2
	// workloadLimit is how long anything in it may take before it counts as hanging.
	workloadLimit = 60 * time.Second
)

// run opens a store, writes and closes it, again and again. It ends early when
// the store doesn't open or has failed; the error is what ended it.
func (w *workload) run() error {
	for round := range workloadRounds {
		var s *store
		err := inTime("opening", func() (err error) {
			s, err = openStore(context.Background(), memOptions(w.files))
			return err
		})
		if err != nil {
			return err
		}
		werr := w.write(s, round)
		if err := inTime("closing", s.close); err != nil || s.failure() != nil {
			return errors.Join(err, werr, s.failure())
		}
		if werr != nil {
			return werr
		}
	}
	return nil
}

// inTime fails what takes too long.
func inTime(what string, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(workloadLimit):
		return fmt.Errorf("%s: %w", what, errHangs)
	}
}

var errHangs = errors.New("IT HANGS")

func (w *workload) write(s *store, round int) error {
	ctx, cancel := context.WithTimeout(context.Background(), workloadLimit)
	defer cancel()
	var all sync.WaitGroup
	errs := make(chan error, workloadWriters+3)
	for i := range workloadWriters {
		all.Go(func() { errs <- w.writer(ctx, s, round, i) })
	}
	for i := range 2 {
		all.Go(func() { errs <- w.owner(ctx, s, round, i) })
	}
	all.Go(func() { errs <- w.upkeep(ctx, s) })
	all.Wait()
	close(errs)
	var out error
	for err := range errs {
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return fmt.Errorf("an append: %w", errHangs)
		case err != nil && s.failure() != nil && !errors.Is(err, errFailed) && !errors.Is(err, errStopping):
			return fmt.Errorf("the store has failed, and an append says: %w", err)
		}
		out = errors.Join(out, err)
	}
	return out
}

// writer appends to a stream of its own, by revision, and to one that it
// shares, whatever is there. It gives up when its outcome is unknown.
func (w *workload) writer(ctx context.Context, s *store, round, n int) error {
	rng := rand.New(rand.NewPCG(w.seed, uint64(n)))
	own := fmt.Sprintf("own-%d-%d", round, n)
	at := noRevision
	for i := range workloadAppends {
		stream := own
		x := expectation{kind: expectRevision, revision: at}
		if at == noRevision {
			x = expectation{kind: expectNoStream}
		}
		if i%3 == 2 {
			stream, x = fmt.Sprintf("shared-%d", n%3), expectation{}
		}
		events := w.known.events(stream, 1+rng.IntN(4), 100+rng.IntN(1500))
		res, err := s.append(ctx, &appendRequest{stream: stream, expected: x, events: events})
		if err != nil {
			return err
		}
		if res.wrong {
			return fmt.Errorf("%s is at revision %d", stream, res.current)
		}
		w.known.promised(stream, events, res)
		if stream == own {
			at = res.current
		}
	}
	return nil
}

// owner does to streams of its own whatever makes events disappear.
func (w *workload) owner(ctx context.Context, s *store, round, n int) error {
	rng := rand.New(rand.NewPCG(w.seed, uint64(100+n)))
	for i := range 3 {
		stream := fmt.Sprintf("owned-%d-%d-%d", round, n, i)
		steps := []step{{}, {metadata: `{"$maxCount":2}`}, {}, {kind: requestDelete}, {}, {metadata: `{"$tb":3}`}, {}}
		if i == 2 {
			steps = append(steps, step{kind: requestTombstone})
		}
		for _, st := range steps {
			var events []proposed
			if st.kind == requestAppend && st.metadata == "" {
				events = w.known.events(stream, 1+rng.IntN(3), 200)
			}
			if err := w.known.do(ctx, s, stream, st, events); err != nil {
				return err
			}
		}
	}
	return nil
}

// upkeep makes Pebble do what it would do by itself in a longer run, and
// scavenges.
func (w *workload) upkeep(ctx context.Context, s *store) error {
	for range 2 {
		if err := s.trap.guard(ctx, s.db.Flush); err != nil {
			return unlessFailed(s, err)
		}
		if _, err := s.scavenge(ctx, nil); err != nil {
			return unlessFailed(s, err)
		}
	}
	return unlessFailed(s, s.trap.guard(ctx, func() error { return s.db.Compact(ctx, []byte{0}, []byte{0xff}, false) }))
}

// unlessFailed replaces the errors of Pebble's own calls, which a failed store gives.
func unlessFailed(s *store, err error) error {
	if s.failure() != nil {
		return errFailed
	}
	return err
}
