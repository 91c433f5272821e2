package guard_test

import (
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"tallyard/graph/transport/guard"
)

var fuzzSchema = gqlparser.MustLoadSchema(&ast.Source{Input: `
type Query { hello(name: String): String nested: Nested long(value: Long): Long search(filter: Filter): String }
type Nested { name: String nested: Nested list(first: Int): [Nested] }
input Filter { words: [String!] inner: Filter }
scalar Long`})

// FuzzDocument holds the guard to what it promises: it does not panic, and
// what it lets through can be parsed and validated without one either, its
// integers can be converted, and no two limits contradict each other.
func FuzzDocument(f *testing.F) {
	for _, c := range abusive() {
		if len(c[0]) < 4096 {
			f.Add(c[0])
		}
	}
	f.Add(introspection)
	f.Add(`query Q($a: Long = 1) { a: hello(name: "\u00e9") ...F } fragment F on Query { nested { ... on Nested { name } } }`)
	limits := guard.Defaults()
	f.Fuzz(func(t *testing.T, text string) {
		if r := guard.Scan(text, limits); r != nil {
			if r.Message == "" {
				t.Error("a refusal without words")
			}
			return
		}
		doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, limits.Tokens+1)
		if err != nil {
			return
		}
		if guard.Document(doc, limits) != nil || len(doc.Operations) == 0 {
			return
		}
		if errs := validator.ValidateWithRules(fuzzSchema, doc, rules.NewDefaultRules()); len(errs) > 0 {
			return
		}
		for _, op := range doc.Operations {
			_, _ = validator.VariableValues(fuzzSchema, op, nil)
		}
	})
}

// FuzzEscapes: looking at escapes never panics.
func FuzzEscapes(f *testing.F) {
	for _, s := range []string{`\u0000`, `\u{0}`, `\u{}`, `\ud800\udc00`, `\ud800`, `\\u0000`, `\u00`, `\`, `\u{ffffffffffff}`} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) { guard.EscapeFault(s) })
}
