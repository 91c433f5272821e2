package transport

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"

	"tallyard/domain/fault"
)

// Handler serves one schema. It owns the sockets and the operations on them;
// [Handler.Close] ends them.
type Handler struct {
	cfg       Config
	schema    *ast.Schema
	rules     []core.Rule
	exec      *executor.Executor
	documents *documents
	origins   origins
	metrics   counters

	mu       sync.Mutex
	stopping bool
	sockets  map[*socket]struct{}
	work     sync.WaitGroup // sockets and what runs on them
}

// counters are what [Handler.Metrics] reads.
type counters struct {
	queries, mutations, subscriptions atomic.Int64 // started
	running, sockets                  atomic.Int64 // now
	refused, panics, slowClosed       atomic.Int64
}

// Metrics is a reading of the handler's counters.
type Metrics struct {
	Queries, Mutations, Subscriptions int64 // operations started
	Running                           int64 // operations running now
	Sockets                           int64 // sockets open now
	Refused                           int64 // requests refused before they ran
	Panics                            int64
	SlowClosed                        int64 // sockets given up because the client did not read
	CachedDocuments, CachedBytes      int64
}

// Metrics reads the handler's counters.
func (h *Handler) Metrics() Metrics {
	entries, bytes := h.documents.size()
	return Metrics{
		Queries: h.metrics.queries.Load(), Mutations: h.metrics.mutations.Load(), Subscriptions: h.metrics.subscriptions.Load(),
		Running: h.metrics.running.Load(), Sockets: h.metrics.sockets.Load(), Refused: h.metrics.refused.Load(),
		Panics: h.metrics.panics.Load(), SlowClosed: h.metrics.slowClosed.Load(),
		CachedDocuments: int64(entries), CachedBytes: int64(bytes),
	}
}

// New makes a handler for /graphql.
func New(cfg Config) (*Handler, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Present == nil {
		cfg.Present = presentDefault
	}
	cfg.Limits = cfg.Limits.withDefaults()
	h := &Handler{
		cfg:       cfg,
		schema:    cfg.Schema.Schema(),
		rules:     validationRules(cfg.Introspection),
		exec:      executor.New(cfg.Schema),
		documents: newDocuments(cfg.Limits.CacheBytes),
		origins:   newOrigins(cfg.Origins, cfg.Loopback),
		sockets:   map[*socket]struct{}{},
	}
	h.exec.SetQueryCache(contextCache{})
	h.exec.SetErrorPresenter(h.present)
	h.exec.SetRecoverFunc(h.panicked)
	for _, extension := range cfg.Extensions {
		h.exec.Use(extension)
	}
	return h, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info := h.requestInfo(r)
	ctx := WithRequestInfo(r.Context(), info)
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if v == http.ErrAbortHandler { //nolint:errorlint // the sentinel itself is thrown
			panic(v)
		}
		_ = h.panicked(ctx, v)
		h.writeRefusal(ctx, w, mediaJSON, refuse(reasonByCode, fault.CodeInternal, maskedMessage))
	}()
	commonHeaders(w.Header(), info)
	if !h.origins.allowed(r) {
		h.writeRefusal(ctx, w, mediaJSON, refuse(reasonOrigin, fault.CodeForbidden, "Requests from this origin are not accepted."))
		return
	}
	h.origins.cors(w.Header(), r)
	if isUpgrade(r) {
		h.serveSocket(ctx, w, r)
		return
	}
	h.serveHTTP(ctx, w, r)
}

// Close ends all sockets with 1001 and waits until what ran on them has ended,
// mutations included, or until ctx is done.
func (h *Handler) Close(ctx context.Context) error {
	h.mu.Lock()
	h.stopping = true
	open := make([]*socket, 0, len(h.sockets))
	for s := range h.sockets {
		open = append(open, s)
	}
	h.mu.Unlock()
	for _, s := range open {
		s.shut(&CloseError{CloseGoingAway, reasonGoingAway})
	}
	done := make(chan struct{})
	go func() { // ends with the last operation, which has a deadline
		defer close(done)
		h.work.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		for _, s := range open {
			s.cut()
		}
		return context.Cause(ctx)
	}
}
