package transport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tallyard/domain/fault"
	"tallyard/graph/transport"
	"tallyard/graph/transport/transporttest"
)

// direct makes a handler that is called without a network, so that what it
// allocates is its own.
func direct(t testing.TB, change func(*transport.Config)) *transport.Handler {
	t.Helper()
	cfg := transport.Config{
		Schema: (&transporttest.Resolvers{}).Schema(), Authenticator: &transporttest.Tokens{}, Introspection: true,
	}
	if change != nil {
		change(&cfg)
	}
	h, err := transport.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func call(h http.Handler, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/graphql", body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/graphql-response+json")
	r.Header.Set("Authorization", "Bearer good")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func queryBody(query string) string {
	body, _ := json.Marshal(map[string]string{"query": query})
	return string(body)
}

func times(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// G4-G8: whatever comes, a refusal costs less than 20 MB, has at most 10
// errors and at most 16 KB.
func TestRefusalsAreCheapAndSmall(t *testing.T) {
	h := direct(t, nil)
	long := strings.Repeat("n", 100)
	for name, body := range map[string]string{
		"10 MB":                      `{"query":"` + strings.Repeat("x", 10<<20) + `"}`,
		"1 MB of a document":         queryBody("{" + strings.Repeat(" hello", 160_000) + "}"),
		"1 MB of JSON":               `{"query":"{ hello }","x":[` + strings.Repeat("[],", 300_000) + `0]}`,
		"1 MB of escapes":            `{"query":"` + strings.Repeat(`\n`, 500_000) + `"}`,
		"20,000 repeated fields":     queryBody("{ hello" + strings.Repeat(" hello", 20_000) + "}"),
		"50,000 aliases":             queryBody("{" + times(50_000, " a%d:hello") + "}"),
		"10,000 unknown directives":  queryBody("{ hello" + times(10_000, " @d%d") + "}"),
		"10,000 unknown fields":      queryBody("{" + times(10_000, " f%d") + "}"),
		"10,000 unknown variables":   queryBody("query(" + times(10_000, " $v%d: X") + ") { hello }"),
		"200 unknown fields":         queryBody("{ nested {" + times(200, " "+long+"%d") + " } }"),
		"30 unknown arguments":       queryBody("{ nested { list(first: 1" + times(30, " "+long+"%d: 1") + ") { name } } }"),
		"90 unknown variable types":  queryBody("query(" + times(90, " $v%d: "+long+"%[1]d") + ") { hello }"),
		"90 undefined variables":     queryBody("{ search(filter: {words: [" + times(90, " $"+long+"%d") + "]}) }"),
		"190 unknown directives":     queryBody("{ nested {" + times(190, " a%[1]d: name @"+long+"%[1]d") + " } }"),
		"a long literal in a fault":  queryBody(`{ number(value: "` + strings.Repeat("x", 100<<10) + `") }`),
		"a long text as a token":     queryBody(`{ hello "` + strings.Repeat("x", 100<<10) + `" }`),
		"many values in a fault":     queryBody(`{ number(value: [` + strings.Repeat(`"xxxxxxxxxxxxxxxx",`, 3000) + `]) }`),
		"variables with long names":  `{"query":"query($f: Filter) { search(filter: $f) }","variables":{"f":{` + times(2000, `"`+long+`%d":1,`) + `"x":1}}}`,
		"many bad items of variable": `{"query":"query($f: Filter) { search(filter: $f) }","variables":{"f":{"words":[` + strings.Repeat("1,", 10_000) + `1]}}}`,
		"doubling fragments":         queryBody("{ ...F0 }" + times(60, " fragment F%[1]d on Query { ...G%[1]d ...G%[1]d } fragment G%[1]d on Query { ...F%[1]d }")),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := call(h, strings.NewReader(body))
		runtime.ReadMemStats(&after)
		if w.Code < 400 || w.Code > 499 {
			t.Errorf("%s: %d %.200s", name, w.Code, w.Body)
			continue
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 20<<20 {
			t.Errorf("%s: %d MB allocated", name, used>>20)
		}
		var answer struct{ Errors []json.RawMessage }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Errors) == 0 || len(answer.Errors) > 10 || w.Body.Len() > 16<<10 {
			t.Errorf("%s: %v, %d errors, %d bytes", name, err, len(answer.Errors), w.Body.Len())
		}
	}
}

// The cache is bounded by bytes: however many documents come, the heap stays.
func TestTheDocumentCacheIsBoundedByBytes(t *testing.T) {
	const limit = 4 << 20
	h := direct(t, func(c *transport.Config) { c.Limits.CacheBytes = limit })
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	call(h, strings.NewReader(queryBody("{ hello }")))
	before := heap()
	for i := range 800 {
		fields := 1 + i%30
		w := call(h, strings.NewReader(queryBody(fmt.Sprintf("query Q%d {", i)+times(fields, " a%[1]d: nested { nested { nested { name b: name c: name } } }")+"}")))
		if w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	grown, m := heap()-before, h.Metrics()
	t.Logf("%d documents, counted as %d KB, the heap grew by %d KB", m.CachedDocuments, m.CachedBytes>>10, grown>>10)
	if m.CachedBytes > limit || m.CachedDocuments < 10 {
		t.Errorf("%+v", m)
	}
	if grown > limit*3/2 {
		t.Errorf("the heap grew by %d bytes, the limit is %d", grown, limit)
	}
}

func TestACachedDocumentAnswersLikeAFreshOne(t *testing.T) {
	h := direct(t, nil)
	var first string
	for i := range 3 {
		w := call(h, strings.NewReader(queryBody(`query($n: String) { a: hello(name: $n) ...F } fragment F on Query { nested { name } }`)))
		if i == 0 {
			first = w.Body.String()
		}
		if w.Code != 200 || w.Body.String() != first {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if m := h.Metrics(); m.CachedDocuments != 1 {
		t.Errorf("%d documents", m.CachedDocuments)
	}
}

// refuser is an extension as the price of operations will be one.
type refuser struct{}

func (refuser) ExtensionName() string                   { return "Refuser" }
func (refuser) Validate(graphql.ExecutableSchema) error { return nil }
func (refuser) MutateOperationContext(ctx context.Context, _ *graphql.OperationContext) *graphqlError {
	if transport.RequestInfoFrom(ctx).UserAgent == "panics" {
		panic("a secret in a panic")
	}
	return &graphqlError{Message: "Too much.", Extensions: map[string]any{"code": string(fault.CodeLimitExceeded)}}
}

func TestAnExtensionCanRefuseBeforeTheOperationRuns(t *testing.T) {
	s := open(t, func(c *transport.Config, _ *transporttest.Resolvers) {
		c.Extensions = []graphql.HandlerExtension{refuser{}}
	})
	if r := s.query(`mutation { write(value: "x") }`, nil); r.status != http.StatusTooManyRequests || strings.Contains(r.body, `"data"`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	r := s.post(`{"query":"mutation { write(value: \"x\") }"}`, "User-Agent", "panics")
	if r.status != 500 || strings.Contains(r.body, "secret") {
		t.Errorf("a panic: %d %s", r.status, r.body)
	}
	c := s.ready()
	c.subscribe("1", "subscription { forever }")
	if m := c.expect("error", "1"); !strings.Contains(string(m.Payload), "LIMIT_EXCEEDED") {
		t.Errorf("over a socket: %s", m.Payload)
	}
	if s.resolvers.Written.Load() != 0 {
		t.Error("a mutation ran")
	}
}

// faulty panics where a foreign part may.
type faulty struct{}

func (faulty) Authenticate(context.Context, string) (context.Context, error) {
	panic("a secret in a panic")
}

func TestAPanicOfTheAuthenticatorIsMasked(t *testing.T) {
	s := open(t, func(c *transport.Config, _ *transporttest.Resolvers) { c.Authenticator = faulty{} })
	if r := s.query("{ hello }", nil); r.status != 500 || strings.Contains(r.body, "secret") {
		t.Errorf("%d %s", r.status, r.body)
	}
	c := s.dial()
	c.send(initGood)
	if code, reason := c.closed(); code != 4500 || reason != "Internal error" {
		t.Errorf("%d %q", code, reason)
	}
	if n := s.handler.Metrics().Panics; n != 2 {
		t.Errorf("%d panics", n)
	}
}

func TestResolversKnowWhereARequestCameFrom(t *testing.T) {
	var got transport.RequestInfo
	s := open(t, func(c *transport.Config, _ *transporttest.Resolvers) {
		c.Extensions = []graphql.HandlerExtension{watcher{&got}}
	})
	s.post(`{"query":"{ hello }"}`, "User-Agent", "tester\t/1", "X-Request-Id", "request-1234", "X-Forwarded-For", "203.0.113.9")
	if got.RemoteAddr != "127.0.0.1" || got.UserAgent != "tester/1" || got.RequestID == "request-1234" || got.Trace != "request-1234" || got.WebSocket {
		t.Errorf("%+v", got)
	}
	c := s.ready()
	c.subscribe("1", "{ hello }")
	c.expect("next", "1")
	if first := got.RequestID; !got.WebSocket || first == "request-1234" {
		t.Errorf("%+v", got)
	}
}

type watcher struct{ got *transport.RequestInfo }

func (watcher) ExtensionName() string                   { return "Watcher" }
func (watcher) Validate(graphql.ExecutableSchema) error { return nil }
func (w watcher) MutateOperationContext(ctx context.Context, _ *graphql.OperationContext) *graphqlError {
	*w.got = transport.RequestInfoFrom(ctx)
	return nil
}

func TestIntrospectionDoesNotOfferDefer(t *testing.T) {
	schema := (&transporttest.Resolvers{}).Schema().Schema()
	if schema.Directives["defer"] == nil {
		t.Skip("the parser's prelude has no defer any more")
	}
	public := transport.WithoutDefer(schema)
	if public.Directives["defer"] != nil || public.Directives["skip"] == nil || schema.Directives["defer"] == nil {
		t.Error("the copy has defer, or the schema was changed")
	}
}

type graphqlError = gqlerror.Error
