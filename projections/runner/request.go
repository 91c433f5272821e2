package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Kinds of requests.
const (
	KindRebuild = "rebuild"
	KindVerify  = "verify"
	KindReplay  = "replay"
)

// States of a request.
const (
	requestOpen   = "open"
	requestDone   = "done"
	requestFailed = "failed"
)

// Request is something that a person asked of the projector.
type Request struct {
	ID          uuid.UUID       `json:"id"`
	Kind        string          `json:"kind"`
	Argument    json.RawMessage `json:"argument,omitempty"`
	State       string          `json:"state"` // open, done, failed
	Result      json.RawMessage `json:"result,omitempty"`
	Error       string          `json:"error,omitempty"`
	RequestedAt time.Time       `json:"requestedAt"`
	FinishedAt  *time.Time      `json:"finishedAt,omitempty"`
	generation  *int32
}

// ask writes a request down; the leader takes it up at its next look.
func (c *core) ask(ctx context.Context, kind string, argument any) (uuid.UUID, error) {
	arg, err := json.Marshal(argument)
	if err != nil {
		return uuid.Nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.Nil, err
	}
	_, err = c.db.Exec(ctx, `INSERT INTO tallyard.projection_requests (id, kind, argument, state, result, requested_at)
		VALUES ($1, $2, $3, 'open', '', now())`, id, kind, string(arg))
	if err != nil {
		return uuid.Nil, fmt.Errorf("ask for %s: %w", kind, err)
	}
	return id, nil
}

const requestColumns = `id, kind, argument, state, result, requested_at, finished_at, generation`

func scanRequest(row pgx.CollectableRow) (r Request, err error) {
	var argument, result string
	if err := row.Scan(&r.ID, &r.Kind, &argument, &r.State, &result, &r.RequestedAt, &r.FinishedAt, &r.generation); err != nil {
		return r, err
	}
	r.Argument = json.RawMessage(argument)
	switch {
	case r.State == requestFailed:
		r.Error = result
	case result != "":
		r.Result = json.RawMessage(result)
	}
	return r, nil
}

// request reads one request.
func (c *core) request(ctx context.Context, id uuid.UUID) (Request, error) {
	rows, err := c.db.Query(ctx, `SELECT `+requestColumns+` FROM tallyard.projection_requests WHERE id = $1`, id)
	if err != nil {
		return Request{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanRequest)
}

// openRequests lists what is still to be done, the oldest first.
func (c *core) openRequests(ctx context.Context) ([]Request, error) {
	rows, err := c.db.Query(ctx, `SELECT `+requestColumns+` FROM tallyard.projection_requests
		WHERE finished_at IS NULL ORDER BY requested_at, id`)
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	return pgx.CollectRows(rows, scanRequest)
}

// finish closes a request with its result, or with what went wrong.
func (c *core) finish(ctx context.Context, id uuid.UUID, result any, failed error) error {
	state, text := requestDone, ""
	if failed != nil {
		state, text = requestFailed, failed.Error()
	} else {
		b, err := json.Marshal(result)
		if err != nil {
			return err
		}
		text = string(b)
	}
	_, err := c.db.Exec(ctx, `UPDATE tallyard.projection_requests SET state = $2, result = $3, finished_at = now() WHERE id = $1`,
		id, state, text)
	return err
}

// forget removes old requests that are closed.
func (c *core) forget(ctx context.Context) error {
	_, err := c.db.Exec(ctx, `DELETE FROM tallyard.projection_requests WHERE finished_at < now() - interval '90 days'`)
	return err
}

// await waits until a request is closed.
func (c *core) await(ctx context.Context, id uuid.UUID) (Request, error) {
	for {
		r, err := c.request(ctx, id)
		if err != nil || r.FinishedAt != nil {
			return r, err
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return r, err
		}
	}
}

// serve carries out the open requests, in order. A request survives the death
// of the leader: the next one takes it up.
func (t *term) serve(ctx context.Context) error {
	requests, err := t.openRequests(ctx)
	if err != nil {
		// Postgres is away: the flows wait for it too.
		if ctx.Err() == nil {
			t.logger.WarnContext(ctx, "requests not readable", "error", err)
			return nil
		}
		return err
	}
	for _, r := range requests {
		result, err := t.carryOut(ctx, r)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			t.logger.ErrorContext(ctx, "request failed", "request", r.ID, "kind", r.Kind, "error", err)
			if t.tries[r.ID]++; !errors.As(err, new(final)) && t.tries[r.ID] < maxTries {
				return nil // at the next look
			}
			t.abandon(ctx, r)
		}
		if err := t.finish(ctx, r.ID, result, err); err != nil && ctx.Err() == nil {
			t.logger.WarnContext(ctx, "result of a request not stored", "request", r.ID, "error", err)
			return nil
		}
	}
	return nil
}

func (t *term) carryOut(ctx context.Context, r Request) (any, error) {
	t.logger.InfoContext(ctx, "request taken up", "request", r.ID, "kind", r.Kind)
	switch r.Kind {
	case KindRebuild:
		return t.rebuild(ctx, r)
	case KindVerify:
		return t.verify(ctx)
	case KindReplay:
		var which ReplayArgument
		if err := json.Unmarshal(r.Argument, &which); err != nil {
			return nil, err
		}
		return t.replay(ctx, which)
	default:
		return nil, final{errors.New("this program does not know such a request; a newer one does")}
	}
}

// abandon drops what a request that failed for good had begun.
func (t *term) abandon(ctx context.Context, r Request) {
	r, err := t.request(ctx, r.ID)
	if err != nil || r.generation == nil {
		return
	}
	_, err = t.db.Exec(ctx, `UPDATE tallyard.generations SET state = 'retired', retired_at = 'epoch'
		WHERE id = $1 AND state = 'building'`, *r.generation)
	if err != nil {
		t.logger.WarnContext(ctx, "unfinished generation not given up", "generation", *r.generation, "error", err)
	}
}

// maxTries is how often a request is tried when its failure may pass.
const maxTries = 5

// final is a failure that trying again can't mend.
type final struct{ error }

func (f final) Unwrap() error { return f.error }
