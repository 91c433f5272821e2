package transport_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/graph/transport"
	"tallyard/graph/transport/transporttest"
)

func TestAPostIsAnsweredInTheTypeThatTheClientWants(t *testing.T) {
	s := open(t, nil)
	const plain, graphql = "application/json; charset=utf-8", "application/graphql-response+json; charset=utf-8"
	for _, c := range []struct {
		accept, want string
		status       int
	}{
		{"", plain, 200},
		{"*/*", plain, 200},
		{"application/*", plain, 200},
		{"application/json", plain, 200},
		{"application/graphql-response+json", graphql, 200},
		{"application/graphql-response+json; charset=utf-8", graphql, 200},
		{"application/graphql-response+json, application/json;q=0.9", graphql, 200},
		{"application/graphql-response+json, application/json", graphql, 200},
		{"application/graphql-response+json;q=0.1, application/json;q=0.9", plain, 200},
		{"application/json;q=0.5, application/graphql-response+json;q=0", plain, 200},
		{"application/json;q=0, */*", graphql, 200},
		{"text/html, application/xhtml+xml, */*;q=0.8", plain, 200},
		{"text/html", plain, 406},
		{"text/event-stream", plain, 406},
		{"application/json;q=0", plain, 406},
		{"*/*;q=0", plain, 406},
		{"application/json; charset=utf-16", plain, 406},
		{"nonsense", plain, 406},
	} {
		r := s.post(`{"query":"{ hello }"}`, "Accept", c.accept)
		if r.status != c.status || r.header.Get("Content-Type") != c.want {
			t.Errorf("Accept %q: %d %q, want %d %q", c.accept, r.status, r.header.Get("Content-Type"), c.status, c.want)
		}
	}
}

func TestEveryAnswerCarriesTheProtectiveHeaders(t *testing.T) {
	s := open(t, nil)
	for _, r := range []reply{
		s.post(`{"query":"{ hello }"}`), s.post(`{`), s.post(`{"query":"{ hello }"}`, "Authorization", "Bearer bad"),
	} {
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		} {
			if got := r.header.Get(name); got != want {
				t.Errorf("%d: %s is %q, want %q", r.status, name, got, want)
			}
		}
		if vary := r.header.Values("Vary"); !slices.Contains(vary, "Accept") || !slices.Contains(vary, "Origin") {
			t.Errorf("Vary is %q", vary)
		}
		if r.header.Get("X-Request-Id") == "" {
			t.Error("no request id")
		}
	}
}

// G8, G9, G10: what is not exactly one JSON request in UTF-8 is a 4xx, runs
// nothing and is not repeated.
func TestMalformedRequestsAreRefusedAndRunNothing(t *testing.T) {
	s := open(t, nil)
	const secret = "s3cret-in-the-body"
	write := `{"query":"mutation { write(value: \"` + secret + `\") }"}`
	for name, c := range map[string]struct {
		body, contentType string
		status            int
	}{
		"a batch":                      {"[" + write + "," + write + "]", "application/json", 400},
		"bytes after the end":          {write + "x", "application/json", 400},
		"a second object":              {write + write, "application/json", 400},
		"a cut body":                   {write[:len(write)-1], "application/json", 400},
		"a cut string":                 {write[:len(write)-3], "application/json", 400},
		"an empty body":                {"", "application/json", 400},
		"null":                         {"null", "application/json", 400},
		"a string":                     {`"` + secret + `"`, "application/json", 400},
		"invalid UTF-8":                {strings.Replace(write, secret, secret+"\xff", 1), "application/json", 400},
		"a raw NUL":                    {strings.Replace(write, secret, secret+"\x00", 1), "application/json", 400},
		"an escaped NUL":               {strings.Replace(write, secret, secret+`\u0000`, 1), "application/json", 400},
		"a NUL escaped twice":          {strings.Replace(write, secret, secret+`\\u0000`, 1), "application/json", 400},
		"half a surrogate":             {strings.Replace(write, secret, secret+`\ud800`, 1), "application/json", 400},
		"half a surrogate twice":       {strings.Replace(write, secret, secret+`\\ud800`, 1), "application/json", 400},
		"a NUL in a variable":          {`{"query":"mutation($v: String!) { write(value: $v) }","variables":{"v":"` + secret + `\u0000"}}`, "application/json", 400},
		"UTF-16":                       {"\xfe\xff\x00{", "application/json", 400},
		"a byte order mark":            {"\ufeff" + write, "application/json", 400},
		"a member twice":               {`{"query":"{ hello }",` + write[1:], "application/json", 400},
		"a name in capitals":           {strings.Replace(write, "query", "QUERY", 1), "application/json", 400},
		"a number as query":            {`{"query":1}`, "application/json", 400},
		"an unknown operation":         {`{"query":"mutation A { write(value: \"` + secret + `\") }","operationName":"B"}`, "application/json", 400},
		"deep variables":               {`{"query":"{ hello }","variables":{"a":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}}`, "application/json", 400},
		"text/plain":                   {write, "text/plain", 415},
		"a form":                       {write, "application/x-www-form-urlencoded", 415},
		"multipart":                    {write, "multipart/form-data; boundary=x", 415},
		"no type":                      {write, "", 415},
		"JSON in UTF-16":               {write, "application/json; charset=utf-16", 415},
		"application/graphql":          {"mutation { write(value: 1) }", "application/graphql", 415},
		"a body over 1 MiB":            {`{"query":"` + secret + strings.Repeat(" ", 1<<20) + `"}`, "application/json", 413},
		"900,000 fields, 10 MB":        {`{"query":"{` + strings.Repeat(" __typename", 900_000) + `}"}`, "application/json", 413},
		"a document that is too long":  {`{"query":"{ hello ` + strings.Repeat(" ", 200<<10) + `}"}`, "application/json", 400},
		"more variables than accepted": {`{"query":"{ hello }","variables":{"a":[` + strings.Repeat("1,", 30_000) + `1]}}`, "application/json", 400},
	} {
		r := s.post(c.body, "Content-Type", c.contentType)
		if r.status != c.status {
			t.Errorf("%s: %d, want %d: %.300s", name, r.status, c.status, r.body)
		}
		if strings.Contains(r.body, secret) || len(r.body) > 2048 {
			t.Errorf("%s: the body is repeated: %.300s", name, r.body)
		}
		answer := r.decode(t)
		if len(answer.Errors) == 0 || answer.Errors[0].Extensions["requestId"] == nil || answer.Errors[0].Extensions["code"] == nil {
			t.Errorf("%s: no code or request id: %.300s", name, r.body)
		}
		if strings.Contains(r.body, `"data"`) {
			t.Errorf("%s: the refusal has data: %.300s", name, r.body)
		}
	}
	if n := s.resolvers.Written.Load(); n != 0 {
		t.Errorf("%d mutations ran", n)
	}
}

func TestABodyWithoutLengthIsCutOffAtTheLimit(t *testing.T) {
	s := open(t, nil)
	r := s.request(http.MethodPost, s.url, `{"query":"`+strings.Repeat(" ", 3<<20)+`"}`)
	r.ContentLength = -1
	if got := s.do(r); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", got.status)
	}
}

// G8: a body that does not come is not waited for.
func TestASlowBodyIsClosed(t *testing.T) {
	s := open(t, func(c *transport.Config, _ *transporttest.Resolvers) { c.Limits.BodyTimeout = 100 * time.Millisecond })
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"query\":")
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusRequestTimeout || !res.Close {
		t.Errorf("status %d, close %v", res.StatusCode, res.Close)
	}
}

func TestAConnectionIsUsedAgainAfterAnAnswer(t *testing.T) {
	s := open(t, func(c *transport.Config, _ *transporttest.Resolvers) {
		c.Limits.BodyTimeout, c.Limits.WriteTimeout = 50*time.Millisecond, 50*time.Millisecond
	})
	for range 3 {
		if r := s.post(`{"query":"{ hello }"}`); r.status != 200 {
			t.Fatalf("status %d", r.status)
		}
		time.Sleep(80 * time.Millisecond) // longer than the deadlines of the answer before
	}
}

func TestGetServesQueriesOnly(t *testing.T) {
	s := open(t, nil)
	get := func(values url.Values) reply {
		return s.do(s.request(http.MethodGet, s.url+"?"+values.Encode(), ""))
	}
	if r := get(url.Values{"query": {"query($n: String) { hello(name: $n) }"}, "variables": {`{"n":"you"}`}}); r.status != 200 || !strings.Contains(r.body, "Hello, you") {
		t.Errorf("a query: %d %s", r.status, r.body)
	}
	r := get(url.Values{"query": {`mutation { write(value: "x") }`}})
	if r.status != http.StatusMethodNotAllowed || r.header.Get("Allow") != "POST" {
		t.Errorf("a mutation: %d, Allow %q", r.status, r.header.Get("Allow"))
	}
	for name, values := range map[string]url.Values{
		"no query":             {},
		"two queries":          {"query": {"{ hello }", "{ hello }"}},
		"variables as a list":  {"query": {"{ hello }"}, "variables": {"[]"}},
		"variables as text":    {"query": {"{ hello }"}, "variables": {"x"}},
		"trailing bytes":       {"query": {"{ hello }"}, "variables": {"{}x"}},
		"invalid UTF-8":        {"query": {"{ hello(name: \"\xff\") }"}},
		"NUL":                  {"query": {"{ hello(name: \"\x00\") }"}},
		"a subscription":       {"query": {"subscription { forever }"}},
		"extensions as number": {"query": {"{ hello }"}, "extensions": {"1"}},
	} {
		if r := get(values); r.status != 400 {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if s.resolvers.Written.Load() != 0 {
		t.Error("a mutation ran")
	}
}

func TestOtherMethodsAreRefused(t *testing.T) {
	s := open(t, nil)
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodHead} {
		if r := s.do(s.request(method, s.url, "")); r.status != 405 || r.header.Get("Allow") != "GET, POST, OPTIONS" {
			t.Errorf("%s: %d, Allow %q", method, r.status, r.header.Get("Allow"))
		}
	}
}

func TestWhoIsNotSignedInGetsNothing(t *testing.T) {
	s := open(t, nil)
	for token, want := range map[string]struct {
		status int
		code   string
	}{
		"Bearer bad": {401, "UNAUTHENTICATED"}, "Basic x": {401, "UNAUTHENTICATED"}, "Bearer": {401, "UNAUTHENTICATED"},
		"Bearer down": {503, "UNAVAILABLE"}, "Bearer broken": {500, "INTERNAL"},
	} {
		r := s.post(`{"query":"{ hello }"}`, "Authorization", token)
		if r.status != want.status {
			t.Errorf("%s: %d %s", token, r.status, r.body)
		}
		if code := r.decode(t).Errors[0].Extensions["code"]; code != want.code {
			t.Errorf("%s: code %v", token, code)
		}
		if want.status == 401 && r.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no WWW-Authenticate", token)
		}
	}
	r := s.request(http.MethodPost, s.url, `{"query":"{ hello }"}`)
	res, err := http.DefaultClient.Do(r) // no header at all
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("anonymous: %d", res.StatusCode)
	}
}

// G10: a page of another site can make nothing happen.
func TestForeignOriginsAreRefusedUnlessListed(t *testing.T) {
	s := open(t, nil)
	write := `{"query":"mutation { write(value: \"x\") }"}`
	for _, origin := range []string{"https://evil.example", "null", "https://app.example.org.evil.example", "http://app.example.org"} {
		if r := s.post(write, "Origin", origin); r.status != 403 || r.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d, allowed %q", origin, r.status, r.header.Get("Access-Control-Allow-Origin"))
		}
	}
	if s.resolvers.Written.Load() != 0 {
		t.Fatal("a mutation ran")
	}
	r := s.post(write, "Origin", "https://app.example.org")
	if r.status != 200 || r.header.Get("Access-Control-Allow-Origin") != "https://app.example.org" || r.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("the listed origin: %d %v", r.status, r.header)
	}
	if r := s.post(write, "Origin", s.server.URL); r.status != 200 {
		t.Errorf("the own origin: %d", r.status)
	}
	pre := s.do(s.request(http.MethodOptions, s.url, "", "Origin", "https://app.example.org", "Access-Control-Request-Method", "POST"))
	if pre.status != 204 || !strings.Contains(pre.header.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("preflight: %d %v", pre.status, pre.header)
	}
	if pre := s.do(s.request(http.MethodOptions, s.url, "", "Origin", "https://evil.example")); pre.status != 403 {
		t.Errorf("foreign preflight: %d", pre.status)
	}
}

func TestAStarInTheOriginsIsIgnored(t *testing.T) {
	s := open(t, func(c *transport.Config, _ *transporttest.Resolvers) { c.Origins = []string{"*"} })
	if r := s.post(`{"query":"{ hello }"}`, "Origin", "https://evil.example"); r.status != 403 {
		t.Errorf("status %d", r.status)
	}
}

func TestDocumentFaultsAre400OrPlain200AndCarryNoData(t *testing.T) {
	s := open(t, nil)
	for name, body := range map[string]string{
		"parsing":    `{"query":"{"}`,
		"validation": `{"query":"{ nothing }"}`,
		"variables":  `{"query":"query($id: ID!) { id(value: $id) }"}`,
		"defer":      `{"query":"{ ... @defer { hello } }"}`,
	} {
		for accept, status := range map[string]int{"application/json": 200, "application/graphql-response+json": 400} {
			r := s.post(body, "Accept", accept)
			if r.status != status || strings.Contains(r.body, `"data"`) {
				t.Errorf("%s as %s: %d %s", name, accept, r.status, r.body)
			}
			if code := r.decode(t).Errors[0].Extensions["code"]; code != "BAD_REQUEST" {
				t.Errorf("%s: code %v", name, code)
			}
		}
	}
}

func TestErrorsOfResolversAreShownOrMasked(t *testing.T) {
	s := open(t, nil)
	r := s.query("{ brokenNullable }", nil)
	e := r.decode(t).Errors[0]
	if r.status != 200 || e.Extensions["code"] != "NOT_FOUND" || e.Message != "There is no such thing." || len(e.Path) != 1 {
		t.Errorf("a fault: %d %s", r.status, r.body)
	}
	r = s.query("{ broken }", nil)
	if strings.Contains(r.body, "secrets") || strings.Contains(r.body, "/srv") || r.decode(t).Errors[0].Extensions["code"] != "INTERNAL" {
		t.Errorf("an internal error: %s", r.body)
	}
}

func TestAPanicIsCountedLoggedOnceAndMasked(t *testing.T) {
	s := open(t, nil)
	r := s.post(`{"query":"{ panics }"}`, "X-Request-Id", "request-4711")
	answer := r.decode(t)
	if strings.Contains(r.body, "secret") || answer.Errors[0].Extensions["code"] != "INTERNAL" || answer.Errors[0].Extensions["requestId"] != r.header.Get("X-Request-Id") {
		t.Errorf("the answer: %s", r.body)
	}
	if n := s.handler.Metrics().Panics; n != 1 {
		t.Errorf("%d panics counted", n)
	}
	log := s.log.String()
	if strings.Count(log, "a secret in a panic") != 1 || !strings.Contains(log, "request-4711") {
		t.Errorf("the log: %.400s", log)
	}
}

// AUD-01: the audit finds by a request's id from where a command came, so a
// client can't choose it; its own id stands beside it in the log.
func TestARequestIDIsNeverTheClients(t *testing.T) {
	s := open(t, nil)
	for _, id := range []string{"0190b3c2-aaaa-7bbb-8ccc-123456789abc", "trace.42_x-Y", "short", "quote\"quote\""} {
		got := s.post(`{"query":"{ hello }"}`, "X-Request-Id", id).header.Get("X-Request-Id")
		if _, err := uuid.Parse(got); err != nil || got == id {
			t.Errorf("%q: %q", id, got)
		}
	}
}

// G16
func TestWithoutIntrospectionTheSchemaIsNotTold(t *testing.T) {
	s := open(t, func(c *transport.Config, _ *transporttest.Resolvers) { c.Introspection = false })
	for _, query := range []string{
		"{ __schema { types { name } } }", `{ __type(name: "Query") { name } }`,
		"{ helo }", "{ hello(nam: 1) }", "{ hello(naem: \"x\") }", "{ search(filter: {wordz: []}) }", "{ colour(value: REDD) }",
		`{ colour(value: "RED") }`, "{ nested { nam } }", "{ nested }", "query($a: Strin) { hello(name: $a) }", "{ ... on Quer { hello } }",
		"{ choice(value: {nam: 1}) }", "{ hello { x } }",
	} {
		r := s.query(query, nil)
		if r.status != 400 || strings.Contains(r.body, "Did you mean") || strings.Contains(r.body, `"data"`) {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
	if r := s.query("{ __typename hello }", nil); r.status != 200 {
		t.Errorf("__typename: %d", r.status)
	}
}

// G14, second half: a query ends with its client.
func TestAQueryIsCancelledWhenItsClientLeaves(t *testing.T) {
	s := open(t, func(_ *transport.Config, r *transporttest.Resolvers) { r.Entered = make(chan struct{}) })
	leave(t, s, `{"query":"{ slow }"}`)
	eventually(t, "the query is cancelled", func() bool { return s.resolvers.Cancelled.Load() == 1 })
}

// G14, first half: a mutation does not.
func TestAnAcceptedMutationRunsToItsEndWithoutItsClient(t *testing.T) {
	s := open(t, func(_ *transport.Config, r *transporttest.Resolvers) {
		r.Entered, r.Release = make(chan struct{}), make(chan struct{})
	})
	leave(t, s, `{"query":"mutation { write(value: \"x\") }"}`)
	time.Sleep(50 * time.Millisecond) // the server has noticed by now
	close(s.resolvers.Release)
	eventually(t, "the mutation ran", func() bool { return s.resolvers.Written.Load() == 1 })
	if s.resolvers.Cancelled.Load() != 0 {
		t.Error("the mutation was cancelled")
	}
}

// leave sends a request and hangs up once it has begun.
func leave(t *testing.T, s *site, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	<-s.resolvers.Entered
	_ = conn.Close()
}

func TestAnOperationHasADeadline(t *testing.T) {
	s := open(t, func(c *transport.Config, r *transporttest.Resolvers) {
		c.Limits.OperationTimeout = 50 * time.Millisecond
		r.Release = make(chan struct{})
	})
	for _, query := range []string{"{ slow }", `mutation { write(value: "x") }`} {
		r := s.query(query, nil)
		if e := r.decode(t).Errors; len(e) == 0 || e[0].Extensions["code"] != "TIMEOUT" {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
}

// G11, and @oneOf for variables.
func TestVariablesAreCheckedByTheLetter(t *testing.T) {
	s := open(t, nil)
	type vars map[string]any
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	for _, c := range []struct {
		kind, field string
		value       any
		want        string // of the data; empty when it is refused
	}{
		{"Int!", "number", 2147483647, `{"f":2147483647}`},
		{"Int!", "number", raw("1e3"), `{"f":1000}`},
		{"Int!", "number", 2147483648, ""},
		{"Int!", "number", "5", ""},
		{"Int!", "number", raw("1.5"), ""},
		{"Int!", "number", true, ""},
		{"Int!", "number", nil, ""},
		{"Int!", "number", []int{1}, ""},
		{"Long!", "long", raw("9007199254740993"), `{"f":9007199254740993}`},
		{"Long!", "long", "9007199254740993", `{"f":9007199254740993}`},
		{"String!", "text", "5", `{"f":"5"}`},
		{"String!", "text", 5, ""},
		{"String!", "text", true, ""},
		{"Float!", "float", 5, `{"f":5}`},
		{"Float!", "float", raw("1e999"), ""},
		{"Float!", "float", "5", ""},
		{"ID!", "id", 5, `{"f":"5"}`},
		{"ID!", "id", "x", `{"f":"x"}`},
		{"ID!", "id", raw("1.5"), ""},
		{"ID!", "id", true, ""},
		{"Colour!", "colour", "RED", `{"f":"RED"}`},
		{"Colour!", "colour", "red", ""},
		{"Colour!", "colour", 1, ""},
		{"Choice!", "choice", vars{"name": "n"}, `{"f":"n"}`},
		{"Choice!", "choice", vars{"number": 1}, `{"f":"number"}`},
		{"Choice!", "choice", vars{}, ""},
		{"Choice!", "choice", vars{"name": "n", "number": 1}, ""},
		{"Choice!", "choice", vars{"name": nil}, ""},
		{"Choice!", "choice", vars{"name": "n", "number": nil}, ""},
		{"Choice!", "choice", "n", ""},
	} {
		r := s.query(fmt.Sprintf("query($v: %s) { f: %s(value: $v) }", c.kind, c.field), vars{"v": c.value})
		answer := r.decode(t)
		if c.want == "" {
			if r.status != 400 || answer.Data != nil {
				t.Errorf("%s %v: accepted: %d %s", c.kind, c.value, r.status, r.body)
			}
			continue
		}
		if string(answer.Data) != c.want {
			t.Errorf("%s %v: %s", c.kind, c.value, r.body)
		}
	}
	for value, accepted := range map[string]bool{
		`{"words":["a","b"]}`: true, `{"words":"a"}`: true, `{}`: true, `{"words":null}`: true, `{"inner":{"choice":{"name":"x"}}}`: true,
		`{"words":[null]}`: false, `{"words":[1]}`: false, `{"wordz":[]}`: false, `{"inner":{"choice":{}}}`: false, `{"limit":"1"}`: false, `[]`: false,
	} {
		r := s.query("query($f: Filter) { search(filter: $f) }", vars{"f": raw(value)})
		if (r.status == 200) != accepted {
			t.Errorf("Filter %s: %d %s", value, r.status, r.body)
		}
	}
}

func TestLiteralsAreCheckedByTheLetter(t *testing.T) {
	s := open(t, nil)
	for query, accepted := range map[string]bool{
		"{ number(value: 2147483647) }":            true,
		"{ number(value: 2147483648) }":            false,
		"{ number(value: 1.5) }":                   false,
		`{ number(value: "5") }`:                   false,
		"{ text(value: 5) }":                       false,
		"{ long(value: 9223372036854775807) }":     true,
		"{ long(value: 9223372036854775808) }":     false,
		"{ float(value: 1e999) }":                  false,
		"{ choice(value: {}) }":                    false,
		`{ choice(value: {name: "x"}) }`:           true,
		`{ choice(value: {name: "x", number: 1})}`: false,
		"{ choice(value: {name: null}) }":          false,
	} {
		if r := s.query(query, nil); (r.status == 200) != accepted {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
}
