package conformance

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

// start serves an empty store that is gone with the test.
func start(t *testing.T, addresses ...string) *Members {
	t.Helper()
	m, err := StartMembers(context.Background(), slog.New(slog.DiscardHandler), addresses...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return m
}
