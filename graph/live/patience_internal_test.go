package live

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tallyard/domain/es"
)

// readModel is one whose progress the test decides.
type readModel struct {
	mu    sync.Mutex
	at    es.Position
	moved chan struct{}
	full  int // waits that had more time than a look has
}

func (r *readModel) Await(ctx context.Context, p es.Position, _ ...string) error {
	end, _ := ctx.Deadline()
	r.mu.Lock()
	if time.Until(end) > probeTime && r.at < p {
		r.full++
	}
	for r.at < p {
		moved := r.moved
		r.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
		r.mu.Lock()
	}
	r.mu.Unlock()
	return nil
}

func (r *readModel) reach(p es.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = p
	close(r.moved)
	r.moved = make(chan struct{})
}

func (r *readModel) waits() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full
}

// said is a log that is read while it is written.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), text)
}

func TestPatience(t *testing.T) {
	const most = 300 * time.Millisecond
	w := newWorld(t, 0)
	rows, log := &readModel{at: 1 << 40, moved: make(chan struct{})}, &said{}
	w.Waiter, w.Logger, w.waits.most = rows, slog.New(slog.NewTextHandler(log, nil)), most
	var subscribers []<-chan *item
	for range 5 {
		ch, stop := w.subscribe(nil)
		defer stop()
		w.next(ch)
		subscribers = append(subscribers, ch)
	}
	read := func(n, from int) {
		t.Helper()
		for _, ch := range subscribers {
			if got, _ := w.events(ch, n); !slices.Equal(got, numbers(from, from+n)) {
				t.Errorf("came %v", got)
			}
		}
	}
	t.Run("LIV-04_a_read_model_that_stands_still_is_waited_for_once", func(t *testing.T) {
		rows.reach(w.Head())
		w.write(60)
		read(60, 0)
		// All that came at the same moment wait, and nobody after them.
		if n := rows.waits(); n == 0 || n > len(subscribers) {
			t.Errorf("%d waits for 60 events and %d subscribers", n, len(subscribers))
		}
		if n := log.count("is behind"); n != 1 {
			t.Errorf("said %d times", n)
		}
		behind, unconfirmed := w.Behind(t.Context())
		if len(behind) != 1 || unconfirmed != int64(60*len(subscribers)) {
			t.Errorf("behind %v, %d went out without it", behind, unconfirmed)
		}
	})
	t.Run("LIV-04_one_that_is_back_is_waited_for_again", func(t *testing.T) {
		rows.reach(w.Head())
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if behind, _ := w.Behind(t.Context()); len(behind) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("it is never found to be back")
			}
		}
		if n := log.count("has caught up"); n != 1 {
			t.Errorf("said %d times", n)
		}
		before := rows.waits()
		w.write(1)
		for rows.waits() == before { // somebody waits for its row
			time.Sleep(time.Millisecond)
		}
		rows.reach(w.Head())
		read(1, 60)
	})
	t.Run("LIV-04_who_reads_old_events_does_not_end_a_standstill", func(t *testing.T) {
		old := w.Head()
		w.write(1)
		read(1, 61)
		before := rows.waits()
		if err := w.ready(t.Context(), old, nil); err != nil {
			t.Error(err)
		}
		w.write(5)
		read(5, 62)
		if rows.waits() != before {
			t.Error("it is waited for anew")
		}
	})
}
