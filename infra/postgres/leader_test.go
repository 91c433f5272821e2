package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"tallyard/infra/postgres"
	"tallyard/infra/postgres/pgtest"
)

func quickLeader(pool *pgxpool.Pool) *postgres.Leader {
	return &postgres.Leader{Pool: pool, Retry: 20 * time.Millisecond, Check: 20 * time.Millisecond, Deadline: 2 * time.Second}
}

func TestLead(t *testing.T) {
	t.Run("one at a time, and the next takes over", func(t *testing.T) {
		pool := pgtest.New(t)
		ctx, cancel := context.WithCancel(t.Context())
		var leading, terms, most atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				err := quickLeader(pool).Lead(ctx, "projector", func(context.Context) error {
					most.Store(max(most.Load(), leading.Add(1)))
					time.Sleep(30 * time.Millisecond)
					leading.Add(-1)
					terms.Add(1)
					return errors.New("give it up")
				})
				if !errors.Is(err, context.Canceled) {
					t.Errorf("error %v", err)
				}
			})
		}
		eventually(t, func(context.Context) error {
			if n := terms.Load(); n < 5 {
				return fmt.Errorf("%d terms", n)
			}
			return nil
		})
		cancel()
		wg.Wait()
		if most.Load() != 1 {
			t.Fatalf("%d led at once", most.Load())
		}
	})
	t.Run("different names don't wait for each other", func(t *testing.T) {
		pool := pgtest.New(t)
		err := quickLeader(pool).Lead(t.Context(), "a", func(ctx context.Context) error {
			return quickLeader(pool).Lead(ctx, "b", func(context.Context) error { return nil })
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a lost lock ends the leader's context and it leads again", func(t *testing.T) {
		pool := pgtest.New(t)
		var causes []error
		err := quickLeader(pool).Lead(t.Context(), "worker", func(ctx context.Context) error {
			if len(causes) == 1 {
				return nil
			}
			var ended bool
			err := pool.QueryRow(ctx, `SELECT pg_terminate_backend(pid) FROM pg_locks
				WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&ended)
			if err != nil {
				return err
			}
			<-ctx.Done()
			causes = append(causes, context.Cause(ctx))
			return ctx.Err()
		})
		if err != nil || len(causes) != 1 || !errors.Is(causes[0], postgres.ErrLeadershipLost) {
			t.Fatalf("causes %v, error %v", causes, err)
		}
	})
	t.Run("stopping waits for the leader's function", func(t *testing.T) {
		pool := pgtest.New(t)
		ctx, cancel := context.WithCancel(t.Context())
		var returned atomic.Bool
		err := quickLeader(pool).Lead(ctx, "worker", func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			time.Sleep(50 * time.Millisecond)
			returned.Store(true)
			return nil
		})
		if err == nil || !returned.Load() {
			t.Fatalf("returned %v, error %v", returned.Load(), err)
		}
		// and the lock is free
		if err := quickLeader(pool).Lead(t.Context(), "worker", func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
	})
}
