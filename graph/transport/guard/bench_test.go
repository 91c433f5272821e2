package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"tallyard/graph/transport/guard"
)

// BenchmarkAbusive measures how long each abusive document takes until it is refused.
func BenchmarkAbusive(b *testing.B) {
	limits := guard.Defaults()
	for name, c := range abusive() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				check(c[0], limits)
			}
		})
	}
}

// row is fragments that each have some fields and spread the next, a level deeper.
func row(n, fields int) string {
	var b strings.Builder
	for i := range n {
		next := fmt.Sprintf("...F%d", i+1)
		if i%4 == 0 {
			next = "nested { " + next + " }"
		}
		fmt.Fprintf(&b, " fragment F%d on Nested {%s %s }", i, repeat(fields, " a%d: name"), next)
	}
	return b.String()
}

// BenchmarkWorstAccepted measures parsing, the guard and validation together
// for documents that use their limits up.
func BenchmarkWorstAccepted(b *testing.B) {
	limits := guard.Defaults()
	for name, text := range map[string]string{
		"introspection":         introspection,
		"30 x 80 leaves":        "{" + repeat(30, " a%d: nested { "+repeat(80, " b%d:name")+" }") + " }",
		"pairs of one name":     "{ nested {" + repeat(140, " name") + " } }",
		"pairs of nested names": "{ nested {" + repeat(30, " nested { name name name name }") + " } }",
		"fragments in a row":    "{ nested { ...F0 } }" + row(40, 20) + " fragment F40 on Nested { name }",
		"unknown fields":        "{ nested {" + repeat(200, " helloo%d") + " } }",
		"nested inline":         "{ nested {" + repeat(10, " ... { ... { ... { ... { name name name } } } }") + " } }",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r := guard.Scan(text, limits); r != nil {
					b.Fatal(r.Message)
				}
				doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, limits.Tokens+1)
				if err != nil {
					b.Fatal(err)
				}
				if r := guard.Document(doc, limits); r != nil {
					b.Fatal(r.Message)
				}
				validator.ValidateWithRules(fuzzSchema, doc, rules.NewDefaultRules())
			}
		})
	}
}
