package transport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tallyard/graph/transport"
	"tallyard/graph/transport/transporttest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// site is a server with the test schema.
type site struct {
	t         *testing.T
	url       string
	handler   *transport.Handler
	resolvers *transporttest.Resolvers
	tokens    *transporttest.Tokens
	log       *syncBuffer
	server    *httptest.Server
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// open starts a server; change may adjust its configuration.
func open(t *testing.T, change func(*transport.Config, *transporttest.Resolvers)) *site {
	t.Helper()
	s := &site{t: t, resolvers: &transporttest.Resolvers{}, tokens: &transporttest.Tokens{}, log: &syncBuffer{}}
	s.resolvers.End = func(ctx context.Context, code int) {
		transport.End(ctx, &transport.CloseError{Code: code, Reason: "cursor-17"})
	}
	cfg := transport.Config{
		Authenticator: s.tokens,
		Introspection: true,
		Logger:        slog.New(slog.NewTextHandler(s.log, nil)),
		Origins:       []string{"https://app.example.org"},
	}
	if change != nil {
		change(&cfg, s.resolvers)
	}
	cfg.Schema = s.resolvers.Schema()
	h, err := transport.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.handler = h
	s.server = httptest.NewServer(h)
	s.url = s.server.URL + "/graphql"
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			t.Errorf("closing the handler: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
		s.server.Close()
	})
	return s
}

// reply is an HTTP answer.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) decode(t *testing.T) (out struct {
	Data   json.RawMessage
	Errors []struct {
		Message    string
		Path       []any
		Extensions map[string]any
	}
},
) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), &out); err != nil {
		t.Fatalf("the answer is no JSON: %v: %.200s", err, r.body)
	}
	return out
}

func (s *site) do(r *http.Request) reply {
	s.t.Helper()
	if r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer good")
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(body)}
}

func (s *site) request(method, url, body string, headers ...string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/graphql-response+json")
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func (s *site) post(body string, headers ...string) reply {
	s.t.Helper()
	return s.do(s.request(http.MethodPost, s.url, body, headers...))
}

func (s *site) query(query string, variables any) reply {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.post(string(body))
}

// eventually waits for a condition that other goroutines bring about.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("it did not come about that %s", what)
}
