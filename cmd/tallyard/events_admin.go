package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"tallyard/infra/eventstore/embedded"
)

// eventsAdmin serves, on the admin socket, what only the program that has the
// event store open can do with it.
type eventsAdmin struct {
	server *embedded.Server // nil where the store is elsewhere
}

func (a eventsAdmin) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /backup", a.backup)
	mux.HandleFunc("POST /verify", a.verify)
	mux.HandleFunc("POST /scavenge", a.scavenge)
	mux.HandleFunc("GET /stats", a.stats)
	return mux
}

// eventsLine is a line of an answer: progress any number of times, then the
// result or the error.
type eventsLine struct {
	Progress *howFar         `json:"progress,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    string          `json:"error,omitempty"`
}

// howFar tells how far a long operation is; total 0 is not known.
type howFar struct {
	Step  string `json:"step"`
	Done  uint64 `json:"done"`
	Total uint64 `json:"total"`
}

// tellEvery is how often progress is told at most.
const tellEvery = 200 * time.Millisecond

// answer does a long operation and tells its progress meanwhile. The operation
// ends with the connection of whoever asked.
func (a eventsAdmin) answer(w http.ResponseWriter, r *http.Request, do func(ctx context.Context, tell func(howFar)) (any, error)) {
	if a.server == nil {
		http.Error(w, "the program's event store is another one, given by --eventstore; ask its own tools", http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines, flush := json.NewEncoder(w), http.NewResponseController(w)
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	send := func(m eventsLine) {
		if err := errors.Join(lines.Encode(m), flush.Flush()); err != nil {
			cancel(err)
		}
	}
	var told time.Time
	result, err := do(ctx, func(p howFar) {
		if now := time.Now(); now.Sub(told) >= tellEvery {
			told = now
			send(eventsLine{Progress: &p})
		}
	})
	if err == nil {
		var text []byte
		if text, err = json.Marshal(result); err == nil {
			send(eventsLine{Result: text})
			return
		}
	}
	send(eventsLine{Error: err.Error()})
}

// backupInput is where a backup goes, seen from the program that makes it.
type backupInput struct {
	Dir  string `json:"dir"`
	Copy bool   `json:"copy"`
}

func (a eventsAdmin) backup(w http.ResponseWriter, r *http.Request) {
	var in backupInput
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&in); err != nil || in.Dir == "" {
		http.Error(w, "the request is not readable", http.StatusBadRequest)
		return
	}
	a.answer(w, r, func(ctx context.Context, tell func(howFar)) (any, error) {
		return a.server.Backup(ctx, in.Dir, embedded.BackupOptions{Copy: in.Copy, Report: bytesTold(tell)})
	})
}

func bytesTold(tell func(howFar)) func(embedded.BackupProgress) {
	return func(p embedded.BackupProgress) {
		tell(howFar{Step: p.Step, Done: uint64(max(p.Done, 0)), Total: uint64(max(p.Total, 0))})
	}
}

func (a eventsAdmin) stats(w http.ResponseWriter, r *http.Request) {
	limit, err := time.ParseDuration(r.FormValue("limit"))
	top, nerr := strconv.Atoi(r.FormValue("top"))
	if err := errors.Join(err, nerr); err != nil || limit < 0 || top < 0 {
		http.Error(w, "the request is not readable", http.StatusBadRequest)
		return
	}
	a.answer(w, r, func(ctx context.Context, _ func(howFar)) (any, error) {
		return a.server.Stats(ctx, limit, top)
	})
}

func (a eventsAdmin) verify(w http.ResponseWriter, r *http.Request) {
	a.answer(w, r, func(ctx context.Context, tell func(howFar)) (any, error) {
		return a.server.Verify(ctx, verifyTold(tell))
	})
}

func verifyTold(tell func(howFar)) func(embedded.VerifyProgress) {
	return func(p embedded.VerifyProgress) { tell(howFar{Step: p.Step, Done: p.Done, Total: p.Total}) }
}
