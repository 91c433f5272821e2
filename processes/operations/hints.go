package operations

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
)

// hinting are the events after which looking sooner is worth it.
var hinting = map[string]bool{
	"operation.queued.v1":           true,
	"operation.retried.v1":          true,
	"operation.cancel_requested.v1": true,
}

// Hint says that something about an operation changed; it never blocks.
func (w *Worker) Hint(tenant, id uuid.UUID) {
	select {
	case w.hints <- Ref{tenant, id}:
	default:
	}
}

// follow makes hints of the log from now on. It keeps no checkpoint: what is
// missed while it is away, the polls find.
func (w *Worker) follow(ctx context.Context) {
	for tries := 1; ctx.Err() == nil; tries++ {
		began := time.Now()
		err := w.followOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > time.Minute {
			tries = 1
		}
		w.logger.WarnContext(ctx, "not following the log; polling only", "error", err)
		if w.Pause.Wait(ctx, tries) != nil {
			return
		}
	}
}

func (w *Worker) followOnce(ctx context.Context) error {
	sub, err := w.rt.Log.Subscribe(ctx, es.FromEnd(), es.Filter{TypePrefixes: []string{"operation."}})
	if err != nil {
		return err
	}
	defer sub.Close()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m, open := <-sub.Messages():
			if !open {
				return sub.Err()
			}
			if m.Kind != es.MessageEvent || !hinting[m.Event.Type] {
				continue
			}
			if stream, err := es.ParseStream(m.Event.Stream); err == nil {
				if id, err := stream.UUID(); err == nil {
					w.Hint(stream.Tenant, id)
				}
			}
		}
	}
}
