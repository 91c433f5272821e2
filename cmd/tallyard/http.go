package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"

	"tallyard/graph/generated"
	"tallyard/graph/transport"
	"tallyard/graph/transport/browser"
	transportfiles "tallyard/graph/transport/files"
	"tallyard/web/explorer"
)

// routes is everything that is served over HTTP.
func (p *parts) routes() (http.Handler, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", p.readyz)
	mux.Handle("GET /metrics", p.metrics())
	if !p.config.has(roleAPI) {
		return p.front(mux), nil
	}
	var people []explorer.Person
	if p.config.dev {
		people = devPeople
	}
	page, err := explorer.Handler(explorer.Config{Endpoint: "/graphql", People: people, Example: example})
	if err != nil {
		return nil, err
	}
	mux.Handle("/graphql", p.signedIn(p.graphql))
	mux.Handle(transportfiles.Prefix, p.signedIn(p.files))
	if p.browser != nil {
		mux.Handle(browser.SignInPath, p.browser)
		mux.Handle(browser.SignInPath+"/", p.browser)
		mux.Handle(browser.SignOutPath, p.browser)
	}
	mux.Handle("/explorer/", page)
	mux.Handle("/{$}", page)
	if p.config.introspect {
		mux.HandleFunc("GET /schema.graphql", schemaText())
	}
	return p.front(mux), nil
}

// front is what every route is behind. A handler that knows better how long
// its answer may be kept says so itself.
func (p *parts) front(next http.Handler) http.Handler {
	h := next
	if p.config.dev {
		h = transport.OnLoopback(h)
	}
	return transport.Bounded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		h.ServeHTTP(w, r)
	}))
}

// signedIn lets a browser's session count as a sign-in, where there are any.
func (p *parts) signedIn(next http.Handler) http.Handler {
	if p.browser == nil {
		return next
	}
	return p.browser.Guard(next)
}

// publicSchema is the schema as clients see it.
func publicSchema() *ast.Schema {
	return transport.WithoutDefer(generated.NewExecutableSchema(generated.Config{}).Schema())
}

// schemaText serves the schema.
func schemaText() http.HandlerFunc {
	var b strings.Builder
	formatter.NewFormatter(&b).FormatSchema(publicSchema())
	text := b.String()
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/graphql; charset=utf-8")
		_, _ = io.WriteString(w, text) // a client that left needs no answer
	}
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // a client that left needs no answer
}

// readyz is 200 once the first catch-up is done and the stores answer.
func (p *parts) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	switch err := p.ready(ctx); {
	case err != nil:
		plain(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
	default:
		plain(w, http.StatusOK, readyText(p.events))
	}
}

// ready says what is missing, in words that tell nothing of the inside.
func (p *parts) ready(ctx context.Context) error {
	if p.config.has(roleProjector) {
		select {
		case <-p.runner.Ready():
		default:
			return fmt.Errorf("the read models are catching up")
		}
	} else if err := p.reader.WaitReady(ctx); err != nil {
		return fmt.Errorf("the read models are catching up")
	}
	if err := p.pool.Ping(ctx); err != nil {
		return fmt.Errorf("the database does not answer")
	}
	if _, err := p.domain.tenants.Load(ctx, p.store); err != nil {
		return fmt.Errorf("the event store does not answer")
	}
	return nil
}

// announce waits until the program is ready and prints what a person needs. A
// terminal that is gone is no reason to end.
func (p *parts) announce(ctx context.Context, out *os.File, addr net.Addr, eventStore string, started time.Time) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
	base := "http://" + addr.String()
	say("Tallyard %s\n  listening    %s\n", version, base)
	select {
	case <-ctx.Done():
		return
	case <-p.readyOnce(ctx):
	}
	say("  explorer     %s/\n  graphql      %s/graphql\n  files        %s/files/home/…\n  health       %s/readyz\n  data         %s\n",
		base, base, base, base, p.config.dataDir)
	if eventStore != "" {
		say("  event store  %s\n", eventStore)
	}
	if p.config.dev {
		say("  sign in as   Authorization: Bearer dev-alice (or dev-admin, dev-carol, dev-bob, dev-audra, dev-oscar, dev-mallory)\n")
	}
	say("Ready after %.1f s. Ctrl-C stops it.\n", time.Since(started).Seconds())
}

// readyOnce is closed when the program is ready for the first time.
func (p *parts) readyOnce(ctx context.Context) <-chan struct{} {
	if p.config.has(roleProjector) {
		return p.runner.Ready()
	}
	ch := make(chan struct{})
	go func() {
		defer close(ch)
		_ = p.reader.WaitReady(ctx) // it ends with ctx, as the caller's wait does
	}()
	return ch
}

// adminSocketPath is where the command line finds a running program.
func (c config) adminSocketPath(sockets string) string {
	if c.adminSocket != "" {
		return c.adminSocket
	}
	return filepath.Join(sockets, "admin.sock")
}
