package runner

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// Rebuild asks for a new generation and waits until it is live. The request
// outlives the waiting: when ctx ends it is still carried out.
func (r *Runner) Rebuild(ctx context.Context) (RebuildReport, error) {
	return askFor[RebuildReport](ctx, r.core, KindRebuild, struct{}{})
}

// Verify asks for a comparison of the live tables with ones built anew, and
// waits for its outcome.
func (r *Runner) Verify(ctx context.Context) (VerifyReport, error) {
	return askFor[VerifyReport](ctx, r.core, KindVerify, struct{}{})
}

// ReplayParked asks for parked streams to be tried again, and waits for it.
func (r *Runner) ReplayParked(ctx context.Context, which ReplayArgument) (ReplayReport, error) {
	return askFor[ReplayReport](ctx, r.core, KindReplay, which)
}

// Request tells how far a request is.
func (r *Runner) Request(ctx context.Context, id uuid.UUID) (Request, error) {
	return r.request(ctx, id)
}

// askFor makes a request and waits for its result.
func askFor[R any](ctx context.Context, c *core, kind string, argument any) (R, error) {
	var report R
	id, err := c.ask(ctx, kind, argument)
	if err != nil {
		return report, err
	}
	r, err := c.await(ctx, id)
	if err != nil {
		return report, err
	}
	if r.Error != "" {
		return report, errors.New(r.Error)
	}
	return report, json.Unmarshal(r.Result, &report)
}

// Texter is a result that a person can read.
type Texter interface{ Text() string }

// Admin serves the command line, on a socket that only the operator reaches:
//
//	GET  /status
//	POST /rebuild, /verify
//	POST /replay-parked?projection=…&stream=…
//
// The answer is JSON, or a table when "Accept: text/plain" is sent.
func (r *Runner) Admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, q *http.Request) {
		s, err := r.Status(q.Context())
		answer(w, q, s, err)
	})
	mux.HandleFunc("POST /rebuild", func(w http.ResponseWriter, q *http.Request) {
		report, err := r.Rebuild(q.Context())
		answer(w, q, report, err)
	})
	mux.HandleFunc("POST /verify", func(w http.ResponseWriter, q *http.Request) {
		report, err := r.Verify(q.Context())
		answer(w, q, report, err)
	})
	mux.HandleFunc("POST /replay-parked", func(w http.ResponseWriter, q *http.Request) {
		which := ReplayArgument{Projection: q.FormValue("projection"), Stream: q.FormValue("stream")}
		report, err := r.ReplayParked(q.Context(), which)
		answer(w, q, report, err)
	})
	return mux
}

// answer writes a result. The operator sees errors as they are.
func answer(w http.ResponseWriter, q *http.Request, result Texter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if strings.Contains(q.Header.Get("Accept"), "text/plain") {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(result.Text())) // a client that left needs no answer
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(result) // a client that left needs no answer
}
