package files

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestCopyRate(t *testing.T) {
	t.Run("OPS-01_no_more_than_its_bytes_a_second", func(t *testing.T) {
		r, begin := newRate(1000), time.Now()
		for i, c := range []struct {
			n     int
			after time.Duration // since the beginning
			owes  time.Duration
		}{
			{500, 0, 500 * time.Millisecond},
			{250, 0, 750 * time.Millisecond},                      // of another copy at the same moment
			{250, 500 * time.Millisecond, 500 * time.Millisecond}, // what is not paid for yet counts
			{1000, time.Hour, time.Second},                        // an idle hour is not saved up
		} {
			if got := r.owe(c.n, begin.Add(c.after)); got != c.owes {
				t.Errorf("step %d: waits %s, not %s", i, got, c.owes)
			}
		}
	})
	slow := func(t *testing.T) *world {
		w := newWorld(t)
		w.rate = newRate(MinCopyRate)
		w.put("alg/big", strings.Repeat("0123456789abcdef", 1<<16)) // 17 minutes of it
		return w
	}
	t.Run("OPS-01_a_slow_copy_tells_how_far_it_is_and_can_be_stopped", func(t *testing.T) {
		w := slow(t)
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		var told []int64
		_, err := w.CopyOut(ctx, w.tenant, w.space, path(t, "alg"), uuid.New(), func(p Progress) {
			if told = append(told, p.DoneBytes); len(told) == 3 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || len(told) != 3 || told[2] != 3*MinCopyRate/4 {
			t.Errorf("told %v, ended with %v", told, err)
		}
	})
	t.Run("OPS-01_a_rate_that_looks_like_standing_still_is_refused", func(t *testing.T) {
		if s, err := Open(Config{SpacesDir: t.TempDir(), PublishedDir: t.TempDir(), CopyRate: MinCopyRate - 1}); err == nil {
			t.Error("accepted", s.Close())
		}
	})
}
