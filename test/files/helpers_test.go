// Package files_test holds the tests of file transfers over HTTP onto the real
// file system: the handler and the store together, as the program wires them.
package files_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
	web "tallyard/graph/transport/files"
	"tallyard/infra/files"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a running handler over a real store: ada owns the space "home" and
// may read the one named by shared, bob has neither.
type site struct {
	t              *testing.T
	url            string
	handler        *web.Handler
	store          *files.Store
	tenant, home   uuid.UUID
	shared         uuid.UUID
	root           string // of home, on disk
	mu             sync.Mutex
	events         []string
	recorderFails  error
	asked          []string // paths that were announced
	refuse         error    // what announcing answers
	connectionGone chan struct{}
}

type actorKey struct{}

func (s *site) authenticate(ctx context.Context, token string) (context.Context, error) {
	if token != "ada" && token != "bob" {
		return nil, fault.New(fault.Unauthenticated, fault.CodeUnauthenticated, "Sign in again.")
	}
	return context.WithValue(ctx, actorKey{}, token), nil
}

// Resolve implements web.Spaces.
func (s *site) Resolve(ctx context.Context, name string, write bool) (tenant, space uuid.UUID, err error) {
	if ctx.Value(actorKey{}) == "ada" {
		switch {
		case name == "home":
			return s.tenant, s.home, nil
		case name == s.shared.String() && write:
			return uuid.Nil, uuid.Nil, fault.New(fault.Forbidden, fault.CodeForbidden, "Ask a project admin for the right to write here.")
		case name == s.shared.String():
			return s.tenant, s.shared, nil
		}
	}
	return uuid.Nil, uuid.Nil, fault.New(fault.NotFound, fault.CodeNotFound, "There's no such space.")
}

func (s *site) note(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recorderFails == nil {
		s.events = append(s.events, what)
	}
	return s.recorderFails
}

func (s *site) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.events...)
}

// Announced implements web.Recorder.
func (s *site) Announced(_ context.Context, _, _ uuid.UUID, p storage.Path) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, p.String())
	return s.refuse
}

// Uploaded implements web.Recorder.
func (s *site) Uploaded(_ context.Context, _, _ uuid.UUID, p storage.Path, _ int64, _ []byte) error {
	return s.note("up " + p.String())
}

// Refused implements web.Recorder.
func (s *site) Refused(_ context.Context, _, _ uuid.UUID, why error) error {
	return errors.Join(why, s.note("no"))
}

func newSite(t *testing.T, change func(*web.Config)) *site {
	t.Helper()
	spaces := t.TempDir()
	store, err := files.Open(files.Config{SpacesDir: spaces, PublishedDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, store: store, tenant: uuid.New(), home: uuid.New(), shared: uuid.New(), connectionGone: make(chan struct{}, 16)}
	s.root = filepath.Join(spaces, s.tenant.String(), s.home.String())
	for _, id := range []uuid.UUID{s.home, s.shared} {
		if err := store.EnsureSpace(context.Background(), s.tenant, id); err != nil {
			t.Fatal(err)
		}
	}
	cfg := web.Config{Authenticate: s.authenticate, Spaces: s, Store: store, Recorder: s}
	if change != nil {
		change(&cfg)
	}
	mux := http.NewServeMux()
	s.handler = web.New(cfg)
	mux.Handle(web.Prefix, s.handler)
	server := httptest.NewUnstartedServer(mux)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			select {
			case s.connectionGone <- struct{}{}:
			default:
			}
		}
	}
	server.Start()
	s.url = server.URL
	t.Cleanup(func() {
		server.Close()
		http.DefaultClient.CloseIdleConnections()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// reply is an answer that was read whole.
type reply struct {
	*http.Response
	body string
}

// do sends a request as ada. Headers are pairs of name and value.
func (s *site) do(method, path, body string, headers ...string) reply {
	s.t.Helper()
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer ada")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return s.send(req)
}

func (s *site) send(req *http.Request) reply {
	s.t.Helper()
	res, err := http.DefaultTransport.RoundTrip(req) // no redirects followed
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{Response: res, body: string(b)}
}

// wantError checks status and code, and that nothing of this machine is told.
func (s *site) wantError(r reply, status int, code fault.Code) {
	s.t.Helper()
	var got struct {
		Error struct{ Code, Message, RequestID string }
	}
	if err := json.Unmarshal([]byte(r.body), &got); err != nil {
		s.t.Fatalf("%d %q: %v", r.StatusCode, r.body, err)
	}
	if r.StatusCode != status || got.Error.Code != string(code) || got.Error.Message == "" || got.Error.RequestID == "" {
		s.t.Fatalf("got %d %s; want %d %s", r.StatusCode, r.body, status, code)
	}
	if r.Header.Get("X-Request-Id") != got.Error.RequestID || strings.Contains(r.body, os.TempDir()) {
		s.t.Fatalf("%v %s", r.Header, r.body)
	}
}

func (s *site) want(r reply, status int) {
	s.t.Helper()
	if r.StatusCode != status {
		s.t.Fatalf("got %d %s; want %d", r.StatusCode, r.body, status)
	}
}

func (s *site) onDisk(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.root, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	return string(b)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal("never: " + what)
}
