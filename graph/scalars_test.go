package graph_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tallyard/graph"
	"tallyard/graph/algorithm"
	"tallyard/graph/generated"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/people"
	"tallyard/graph/problem"
	"tallyard/graph/transport"
)

// anybody lets everybody in as nobody: what gets past the values of its
// arguments is told to sign in.
type anybody struct{}

func (anybody) Authenticate(ctx context.Context, _ string) (context.Context, error) { return ctx, nil }

func openSchema(t *testing.T) http.Handler {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	h, err := transport.New(transport.Config{
		Schema: generated.NewExecutableSchema(generated.Config{Resolvers: &graph.Resolver{
			Algorithms: &algorithm.API{}, People: &people.API{}, Find: &graph.Finder{People: &people.API{}},
		}}),
		Authenticator: anybody{}, Logger: quiet, Introspection: true,
		Present: problem.Presenter(quiet, func(context.Context) string { return "" }),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return h
}

// ask gives the code of the first error, or "".
func ask(t *testing.T, h http.Handler, query, variables string) string {
	t.Helper()
	quoted, err := json.Marshal(query)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(`{"query":`+string(quoted)+`,"variables":`+variables+`}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer x")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var out struct {
		Errors []struct {
			Extensions struct{ Code string }
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatalf("%s: %v: %s", query, err, w.Body)
	}
	if len(out.Errors) == 0 {
		return ""
	}
	return out.Errors[0].Extensions.Code
}

// TestValuesAreWhatTheirTypesSay: a value of another type is refused as
// BAD_REQUEST, as a literal and as a variable, and never as our own failure.
func TestValuesAreWhatTheirTypesSay(t *testing.T) {
	h := openSchema(t)
	const (
		first   = `algorithms(first: %) { totalCount }`
		after   = `algorithms(after: %) { totalCount }`
		order   = `algorithms(orderBy: {field: %, direction: ASC}) { totalCount }`
		mine    = `algorithms(filter: {favorites: %}) { totalCount }`
		asOf    = `algorithm(id: "AQ", asOf: %) { id }`
		atLeast = `node(id: "AQ", atLeast: %) { id }`
		id      = `node(id: %) { id }`
		source  = `updateAlgorithmVersion(input: {id: "AQ", source: %}) { receipt { replayed } }`
		memory  = `updateAlgorithmVersion(input: {id: "AQ", resources: {memoryBytes: %}}) { receipt { replayed } }`
	)
	for _, c := range []struct {
		field, typ string
		good, bad  []string // as in JSON
	}{
		{first, "Int", []string{"5", "2147483647", "null"}, []string{"2147483648", "-2147483649", `"5"`, "1.5", "true"}},
		{after, "String", []string{`"x"`}, []string{"5", "true", `"a\u0000b"`}},
		{mine, "Boolean", []string{"true"}, []string{`"true"`, "1"}},
		{asOf, "Time", []string{`"2026-11-30T20:45:28.123456Z"`}, []string{`"yesterday"`, "5", `"2026-11-30"`, `"0001-01-01T00:00:00Z"`}},
		{atLeast, "Position", []string{`"x"`}, []string{"5", "1.5", "true"}},
		{memory, "Long", []string{`"9007199254740993"`, "9007199254740993", `"-1"`}, []string{`"1.5"`, "1.5", `"9223372036854775808"`, "9223372036854775808", `"0x10"`, "true", `""`}},
		{id, "ID!", []string{`"x"`}, []string{"1.5", "true", "null"}},
		{source, "AlgorithmSourceInput", []string{`{"command": "true"}`}, []string{`{}`, `{"command": null}`, `{"command": "x", "script": {"directory": "d", "script": "s"}}`, `{"nope": 1}`, `5`}},
	} {
		root := "query"
		if strings.Contains(c.field, "input:") {
			root = "mutation"
		}
		try := func(value string, refused bool) {
			t.Helper()
			literal := unquoted.Replace(value)
			as := map[string]string{
				"literal":  ask(t, h, root+" { "+strings.ReplaceAll(c.field, "%", literal)+" }", "{}"),
				"variable": ask(t, h, root+" ($v: "+c.typ+") { "+strings.ReplaceAll(c.field, "%", "$v")+" }", `{"v":`+value+`}`),
			}
			for how, code := range as {
				if (code == "BAD_REQUEST") != refused || !refused && code != "" && code != "UNAUTHENTICATED" {
					t.Errorf("%s as %s of %s: the code is %q", value, how, c.typ, code)
				}
			}
		}
		for _, v := range c.good {
			try(v, false)
		}
		for _, v := range c.bad {
			try(v, true)
		}
	}
	for value, refused := range map[string]bool{"NAME": false, "NOPE": true, `"NAME"`: true, "name": true, "5": true} {
		code := ask(t, h, "{ "+strings.ReplaceAll(order, "%", value)+" }", "{}")
		if (code == "BAD_REQUEST") != refused || !refused && code != "UNAUTHENTICATED" {
			t.Errorf("%s as literal of an enum: the code is %q", value, code)
		}
	}
	for value, refused := range map[string]bool{`"NAME"`: false, `"NOPE"`: true, `"name"`: true, "5": true} {
		code := ask(t, h, "query ($v: AlgorithmOrderField!) { "+strings.ReplaceAll(order, "%", "$v")+" }", `{"v":`+value+`}`)
		if (code == "BAD_REQUEST") != refused || !refused && code != "UNAUTHENTICATED" {
			t.Errorf("%s as variable of an enum: the code is %q", value, code)
		}
	}
	// A choice whose only member is a variable that is null, or left out.
	for _, variables := range []string{`{"c": null}`, `{}`} {
		code := ask(t, h, `mutation ($c: String) { updateAlgorithmVersion(input: {id: "AQ", source: {command: $c}}) { receipt { replayed } } }`, variables)
		if code != "BAD_REQUEST" {
			t.Errorf("a choice of a variable with %s: the code is %q", variables, code)
		}
	}
}

// unquoted turns JSON objects into literals.
var unquoted = strings.NewReplacer(`"command":`, `command:`, `"script":`, `script:`, `"directory":`, `directory:`, `"nope":`, `nope:`)

// TestLongsAreExact beyond what a float holds.
func TestLongsAreExact(t *testing.T) {
	const n = 1<<53 + 1
	for _, v := range []any{"9007199254740993", json.Number("9007199254740993"), int64(n)} {
		if got, err := gqlmodel.UnmarshalLong(v); err != nil || got != n {
			t.Errorf("%v reads as %d, %v", v, got, err)
		}
	}
	var b strings.Builder
	gqlmodel.MarshalLong(n).MarshalGQL(&b)
	if b.String() != `"9007199254740993"` {
		t.Errorf("it is written as %s", b.String())
	}
}
