package graph_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/vektah/gqlparser/v2"
	gql "github.com/vektah/gqlparser/v2/ast"
)

// load reads the schema from its files, as the generator does.
func load(t *testing.T) *gql.Schema {
	t.Helper()
	files, err := filepath.Glob("schema/*.graphqls")
	if err != nil || len(files) == 0 {
		t.Fatalf("no schema files: %v", err)
	}
	var sources []*gql.Source
	for _, f := range append([]string{"../schema.graphqls"}, files...) {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, &gql.Source{Name: f, Input: string(b)})
	}
	s, err := gqlparser.LoadSchema(sources...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// own are the types that are ours, by name.
func own(s *gql.Schema) []*gql.Definition {
	var list []*gql.Definition
	for _, d := range s.Types {
		if !d.BuiltIn && !strings.HasPrefix(d.Name, "__") {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b *gql.Definition) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// fields are a type's fields without the ones that introspection adds.
func fields(d *gql.Definition) []*gql.FieldDefinition {
	var list []*gql.FieldDefinition
	for _, f := range d.Fields {
		if !strings.HasPrefix(f.Name, "__") {
			list = append(list, f)
		}
	}
	return list
}

// TestEverythingIsDescribed: every type, field, argument and enum value says
// what it is, in sentences.
func TestEverythingIsDescribed(t *testing.T) {
	check := func(where, text string) {
		text = strings.TrimSpace(text)
		switch {
		case text == "":
			t.Errorf("%s has no description", where)
		case !strings.HasSuffix(text, "."):
			t.Errorf("%s: the description %q is no sentence", where, text)
		case unicode.IsLower([]rune(text)[0]):
			t.Errorf("%s: the description %q begins small", where, text)
		}
	}
	for _, d := range own(load(t)) {
		check(d.Name, d.Description)
		for _, f := range fields(d) {
			check(d.Name+"."+f.Name, f.Description)
			for _, a := range f.Arguments {
				check(d.Name+"."+f.Name+"("+a.Name+")", a.Description)
			}
		}
		for _, v := range d.EnumValues {
			check(d.Name+"."+v.Name, v.Description)
		}
	}
}

// TestErrorCodesAreTheFaults: the enum lists exactly the codes of domain/fault.
func TestErrorCodesAreTheFaults(t *testing.T) {
	var enum []string
	for _, v := range load(t).Types["ErrorCode"].EnumValues {
		enum = append(enum, v.Name)
	}
	tree, err := parser.ParseFile(token.NewFileSet(), "../domain/fault/codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	ast.Inspect(tree, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for _, v := range spec.Values {
			text, err := strconv.Unquote(v.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, text)
		}
		return true
	})
	slices.Sort(enum)
	slices.Sort(codes)
	if len(codes) == 0 || !slices.Equal(enum, codes) {
		t.Errorf("the enum ErrorCode is\n%v\nand the codes of domain/fault are\n%v", enum, codes)
	}
}

// TestMutationsFollowTheirShape: verbNoun(input: VerbNounInput!): VerbNounPayload!
// with userErrors and a receipt, and an idempotency key in every input.
func TestMutationsFollowTheirShape(t *testing.T) {
	s := load(t)
	for _, m := range fields(s.Mutation) {
		name := strings.ToUpper(m.Name[:1]) + m.Name[1:]
		if !strings.ContainsFunc(m.Name[1:], unicode.IsUpper) {
			t.Errorf("%s is not a verb and a noun", m.Name)
		}
		if len(m.Arguments) != 1 || m.Arguments[0].Name != "input" || m.Arguments[0].Type.String() != name+"Input!" {
			t.Errorf("%s does not take (input: %sInput!)", m.Name, name)
			continue
		}
		if m.Type.String() != name+"Payload!" {
			t.Errorf("%s gives %s, not %sPayload!", m.Name, m.Type, name)
			continue
		}
		in, out := s.Types[name+"Input"], s.Types[name+"Payload"]
		want(t, in, "idempotencyKey", "ID")
		want(t, out, "userErrors", "[UserError!]!")
		want(t, out, "receipt", "Receipt!")
		for _, f := range fields(out) {
			if f.Type.NonNull && !slices.Contains([]string{"userErrors", "receipt", "results"}, f.Name) {
				t.Errorf("%s.%s can't be null, but there is none when the command is refused", out.Name, f.Name)
			}
		}
		if r := out.Fields.ForName("results"); r != nil {
			want(t, s.Types[r.Type.Name()], "userErrors", "[UserError!]!")
		}
	}
}

func want(t *testing.T, d *gql.Definition, field, typ string) {
	t.Helper()
	if f := d.Fields.ForName(field); f == nil || f.Type.String() != typ {
		t.Errorf("%s has no %s: %s", d.Name, field, typ)
	}
}

// TestListsFollowTheirShape: connections have edges, nodes and pageInfo, lists
// are paged both ways or forwards, and every root query that reads read models
// takes atLeast.
func TestListsFollowTheirShape(t *testing.T) {
	s := load(t)
	for _, d := range own(s) {
		base, ok := strings.CutSuffix(d.Name, "Connection")
		if !ok {
			continue
		}
		want(t, d, "edges", "["+base+"Edge!]!")
		want(t, d, "pageInfo", "PageInfo!")
		edge := s.Types[base+"Edge"]
		if edge == nil {
			t.Errorf("%s has no %sEdge", d.Name, base)
			continue
		}
		want(t, edge, "cursor", "String!")
		want(t, d, "nodes", "["+edge.Fields.ForName("node").Type.String()+"]!")
	}
	for _, d := range own(s) {
		for _, f := range fields(d) {
			if !strings.HasSuffix(f.Type.Name(), "Connection") {
				continue
			}
			for _, a := range []string{"first", "after"} {
				if f.Arguments.ForName(a) == nil {
					t.Errorf("%s.%s is a list without %s", d.Name, f.Name, a)
				}
			}
			if (f.Arguments.ForName("last") == nil) != (f.Arguments.ForName("before") == nil) {
				t.Errorf("%s.%s has one of last and before", d.Name, f.Name)
			}
		}
	}
}

// TestSubscriptionsFollowTheirShape: a filter, a cursor to go on behind, and
// items with cursor and kind.
func TestSubscriptionsFollowTheirShape(t *testing.T) {
	s := load(t)
	for _, f := range fields(s.Subscription) {
		if a := f.Arguments.ForName("filter"); a == nil || !a.Type.NonNull {
			t.Errorf("%s takes no filter that must be given", f.Name)
		}
		if a := f.Arguments.ForName("after"); a == nil || a.Type.String() != "String" {
			t.Errorf("%s takes no after: String", f.Name)
		}
		if !strings.HasSuffix(f.Type.Name(), "Event") {
			t.Errorf("%s gives %s, which is no …Event", f.Name, f.Type)
		}
		want(t, s.Types[f.Type.Name()], "cursor", "String!")
		want(t, s.Types[f.Type.Name()], "kind", "EventKind!")
	}
}

// TestEverythingHasAPast: every entity has a history, and a query of one of them
// that goes back to a moment or a position. Entries of the audit are the past.
func TestEverythingHasAPast(t *testing.T) {
	s := load(t)
	entities := 0
	for _, d := range own(s) {
		if !slices.Contains(d.Interfaces, "Node") || d.Name == "AuditEntry" {
			continue
		}
		entities++
		want(t, d, "history", "HistoryConnection!")
		i := slices.IndexFunc(fields(s.Query), func(f *gql.FieldDefinition) bool {
			return f.Type.String() == d.Name && f.Arguments.ForName("id") != nil
		})
		if i < 0 {
			t.Errorf("there is no query of one %s", d.Name)
			continue
		}
		for arg, typ := range map[string]string{"asOf": "Time", "asOfPosition": "Position", "atLeast": "Position"} {
			if a := fields(s.Query)[i].Arguments.ForName(arg); a == nil || a.Type.String() != typ {
				t.Errorf("the query of one %s takes no %s: %s", d.Name, arg, typ)
			}
		}
	}
	if entities < 7 {
		t.Errorf("only %d entities were looked at", entities)
	}
}
