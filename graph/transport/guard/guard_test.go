package guard_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"tallyard/graph/transport/guard"
)

// check does what the transports do before they validate.
func check(text string, l guard.Limits) *guard.Refusal {
	if r := guard.Scan(text, l); r != nil {
		return r
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, l.Tokens+1)
	if err != nil {
		return nil //nolint:nilerr // what is no GraphQL is the parser's to say
	}
	return guard.Document(doc, l)
}

// repeat writes a text n times, each with its number where it has a %d.
func repeat(n int, format string) string {
	var b strings.Builder
	for i := range n {
		if strings.Contains(format, "%d") {
			fmt.Fprintf(&b, format, i)
		} else {
			b.WriteString(format)
		}
	}
	return b.String()
}

// doubling is n fragments, each of which spreads the next one twice.
func doubling(n int, last string) string {
	var b strings.Builder
	b.WriteString("{ ...F0 }")
	for i := range n {
		fmt.Fprintf(&b, " fragment F%d on Query { ...F%d ...F%d }", i, i+1, i+1)
	}
	fmt.Fprintf(&b, " fragment F%d on Query { %s }", n, last)
	return b.String()
}

// abusive are documents that the guard must refuse, with a word of the reason.
func abusive() map[string][2]string {
	return map[string][2]string{
		// G4
		"20,000 times the same field":   {"{ hello" + repeat(20_000, " hello") + " }", "bytes|tokens"},
		"7,000 times the same field":    {"{" + repeat(7_000, " hello") + " }", "selections"},
		"50,000 aliases":                {"{" + repeat(50_000, " a%d:hello") + " }", "bytes"},
		"1,500 aliases":                 {"{" + repeat(1_500, " a%d:hello") + " }", "selections"},
		"31 fields at the root":         {"{" + repeat(31, " a%d:hello") + " }", "root"},
		"31 at the root by fragments":   {"{ ...A ...B } fragment A on Query {" + repeat(16, " a%d:hello") + "} fragment B on Query {" + repeat(15, " b%d:hello") + "}", "root"},
		"201 fields in a set":           {"{ nested {" + repeat(201, " a%d:name") + " } }", "selections"},
		"201 fields by inline fragment": {"{ nested {" + repeat(201, " ... { a%d:name }") + " } }", "selections"},
		"201 fields by fragments":       {"{ nested {" + repeat(101, " ...F") + " } } fragment F on Nested { a:name b:name }", "fields in one set"},
		"900,000 __typename":            {"{" + repeat(900_000, " __typename") + " }", "bytes"},
		// G5
		"doubling fragments 2^60":          {doubling(60, "hello"), "fragments followed"},
		"doubling fragments of no field":   {doubling(60, "...Missing"), "fragments followed"},
		"a fragment in itself":             {"{ ...A } fragment A on Query { hello ...A }", "itself"},
		"fragments in a ring":              {"{ ...A } fragment A on Query { ...B } fragment B on Query { ...C } fragment C on Query { nested { ...A } }", "itself"},
		"a ring nobody spreads":            {"{ hello } fragment A on Query { ...B } fragment B on Query { ...A }", "itself"},
		"101 fragments":                    {"{ hello }" + repeat(101, " fragment F%d on Query { hello }"), "fragments"},
		"fragments that all reach all":     {"{ hello }" + chain(100, 20), "nodes to validate"},
		"merged sets of the same name":     {"{ nested {" + repeat(60, " nested { name name name name }") + " } }", "comparisons"},
		"merged sets through a fragment":   {"{ nested {" + repeat(100, " ... { nested { ...F } }") + " } } fragment F on Nested {" + repeat(20, " name") + " }", "comparisons"},
		"the same field with long literal": {"{" + repeat(20, " search(filter: {words: ["+strings.Repeat("1,", 90)+"]})") + " }", "comparisons"},
		// G6
		"10,000 directives":           {"{ hello" + repeat(10_000, " @x") + " }", "tokens"},
		"9 directives at one place":   {"{ hello" + repeat(9, " @x") + " }", "directives"},
		"201 directives":              {"{ nested { " + repeat(26, " a%d:name @a @b @c @d @e @f @g @h") + " } }", "directives"},
		"101 variables":               {"query(" + repeat(101, " $v%d: Int") + ") { hello }", "variables"},
		"10,000 variables":            {"query(" + repeat(10_000, " $v%d: Int") + ") { hello }", "bytes|tokens"},
		"65 arguments":                {"{ hello(" + repeat(65, " a%d: 1") + ") }", "arguments"},
		"a name of 200 characters":    {"{ " + strings.Repeat("x", 200) + " }", "characters"},
		"a number of 200 digits":      {"{ long(value: " + strings.Repeat("9", 200) + ") }", "characters"},
		"21 operations":               {repeat(21, "query Q%d { hello } "), "operations"},
		"4,100 values":                {"{ search(filter: {words: [" + strings.Repeat("1,", 4_100) + "]}) }", "values"},
		"a value of 17 levels":        {"{ search(filter: " + strings.Repeat("[", 17) + strings.Repeat("]", 17) + ") }", "levels in one value"},
		"a default of 17 levels":      {"query($a: X = " + strings.Repeat("[", 17) + strings.Repeat("]", 17) + ") { hello }", "levels in one value"},
		"a directive of 17 levels":    {"{ hello @x(a: " + strings.Repeat("[", 17) + strings.Repeat("]", 17) + ") }", "levels in one value"},
		"8,001 comments":              {"{ hello }" + strings.Repeat("#\n", 8_001), "tokens"},
		"defer":                       {"{ ... @defer { hello } }", "Unknown directive"},
		"stream":                      {"{ nested { list(first: 1) @stream { name } } }", "Unknown directive"},
		"defer on an unused fragment": {"{ hello } fragment F on Query @defer { hello }", "Unknown directive"},
		// G7
		"depth 10,000":            {strings.Repeat("{ nested ", 10_000) + strings.Repeat("}", 10_000), "brackets|bytes|tokens"},
		"depth 21":                {strings.Repeat("{ nested ", 20) + "{ name }" + strings.Repeat("}", 20), "inside each other"},
		"depth 21 by fragments":   {"{ nested { ...A } } fragment A on Nested " + strings.Repeat("{ nested ", 19) + "{ ...B }" + strings.Repeat("}", 19) + " fragment B on Nested { name }", "inside each other"},
		"inline fragments, 50":    {"{" + strings.Repeat("... {", 50) + "hello" + strings.Repeat("}", 50) + "}", "brackets"},
		"a list of lists, 10,000": {"{ search(filter: " + strings.Repeat("[", 10_000), "brackets"},
		// G9 and numbers
		"NUL":                       {"{ hello(name: \"\x00\") }", "NUL"},
		"an escaped NUL":            {`{ hello(name: "\u0000") }`, "NUL"},
		"an escaped NUL in braces":  {`{ hello(name: "\u{0}") }`, "NUL"},
		"half a surrogate pair":     {`{ hello(name: "\ud800x") }`, "surrogate"},
		"the other half":            {`{ hello(name: "\udc00") }`, "surrogate"},
		"two first halves":          {`{ hello(name: "\ud800\ud800") }`, "surrogate"},
		"invalid UTF-8":             {"{ hello(name: \"\xff\") }", "UTF-8"},
		"an integer over 2^63":      {"{ long(value: 9223372036854775808) }", "64 bits"},
		"an integer under -2^63":    {"{ long(value: -9223372036854775809) }", "64 bits"},
		"a default over 2^63":       {"query($a: Long = 9223372036854775808) { hello }", "64 bits"},
		"a directive over 2^63":     {"{ hello @skip(if: 9223372036854775808) }", "64 bits"},
		"one in a fragment":         {"{ ...F } fragment F on Query { long(value: [9223372036854775808]) }", "64 bits"},
		"a float beyond all bounds": {"{ float(value: 1e999) }", "out of range"},
	}
}

// chain is fragments that each have some fields and spread the next.
func chain(n, fields int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " fragment F%d on Query {%s ...F%d }", i, repeat(fields/2, " ...M"), i+1)
	}
	return b.String()
}

func TestAbusiveDocumentsAreRefused(t *testing.T) {
	limits := guard.Defaults()
	for name, c := range abusive() {
		r := check(c[0], limits)
		if r == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		reasons, found := strings.Split(c[1], "|"), false
		for _, reason := range reasons {
			found = found || strings.Contains(r.Message, reason)
		}
		if !found {
			t.Errorf("%s: refused for another reason: %s", name, r.Message)
		}
		if len(r.Message) > 200 {
			t.Errorf("%s: a long message: %s", name, r.Message)
		}
	}
}

// G4, G5: a refusal is cheap. Bytes are counted, for clocks of busy machines lie.
func TestARefusalAllocatesLittle(t *testing.T) {
	limits := guard.Defaults()
	for name, c := range abusive() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		check(c[0], limits)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
			t.Errorf("%s: %d bytes allocated", name, used)
		}
	}
}

func TestScanningDoesNotAllocate(t *testing.T) {
	limits := guard.Defaults()
	text := introspection
	if n := testing.AllocsPerRun(20, func() { guard.Scan(text, limits) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestHonestDocumentsPass(t *testing.T) {
	limits := guard.Defaults()
	for name, text := range map[string]string{
		"a field":               "{ hello }",
		"introspection":         introspection,
		"20 levels":             strings.Repeat("{ nested ", 19) + "{ name }" + strings.Repeat("}", 19),
		"30 at the root":        "{" + repeat(30, " a%d:hello") + " }",
		"200 in a set":          "{ nested {" + repeat(200, " a%d:name") + " } }",
		"a shared one":          "{ a: nested { ...F } b: nested { ...F } c: nested { ...F } } fragment F on Nested { name nested { name } }",
		"strings":               `{ hello(name: "a \"quoted\" \\ \u00e9 \ud83c\udfc3 # no comment") t: text(value: """block "with" \""" quotes { [ (""") }`,
		"comments, commas":      "# first\n{ hello, # second\n}\n",
		"a mark at the front":   "\uFEFF{ hello }",
		"numbers":               "{ long(value: -9223372036854775808) float(value: -1.5e+10) }",
		"20 types in one":       "{ nested { " + repeat(20, " ... on T%d { id name kind createdAt }") + " } }",
		"50 fragments in a row": "{ ...F0 }" + repeat(49, " fragment F%d on Query { nested { name } }") + "",
	} {
		if r := check(text, limits); r != nil {
			t.Errorf("%s: %s", name, r.Message)
		}
	}
}

func TestARefusalSaysWhere(t *testing.T) {
	r := check("{\n  long(value: 9223372036854775808)\n}", guard.Defaults())
	if r == nil || r.Line != 2 || r.Column != 15 || !r.Malformed {
		t.Errorf("%+v", r)
	}
	r = check("{\n  hello(name: \"é\\u0000\")\n}", guard.Defaults())
	if r == nil || r.Line != 2 || r.Column != 15 {
		t.Errorf("%+v", r)
	}
}

// The question that GraphiQL asks when it opens.
const introspection = `query IntrospectionQuery { __schema { description queryType { name } mutationType { name } subscriptionType { name }
  types { ...FullType } directives { name description isRepeatable locations args(includeDeprecated: true) { ...InputValue } } } }
fragment FullType on __Type { kind name description specifiedByURL isOneOf
  fields(includeDeprecated: true) { name description args(includeDeprecated: true) { ...InputValue } type { ...TypeRef } isDeprecated deprecationReason }
  inputFields(includeDeprecated: true) { ...InputValue } interfaces { ...TypeRef }
  enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason } possibleTypes { ...TypeRef } }
fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue isDeprecated deprecationReason }
fragment TypeRef on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name
  ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } } }`
