package guard

import (
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// Document reads a parsed document and refuses it when validating or running
// it could cost too much. Every fragment is measured once, so its own cost is
// linear in the document, whatever the document expands to.
func Document(doc *ast.QueryDocument, l Limits) *Refusal {
	if len(doc.Operations) > l.Operations {
		return over("operations", l.Operations)
	}
	if len(doc.Fragments) > l.Fragments {
		return over("fragments", l.Fragments)
	}
	m := measurer{limits: l, fragments: make(map[string]*fragment, len(doc.Fragments))}
	for _, f := range doc.Fragments {
		if _, again := m.fragments[f.Name]; !again { // validation reports the second one
			m.fragments[f.Name] = &fragment{def: f}
		}
	}
	for _, f := range doc.Fragments {
		if r := m.directives(f.Directives); r != nil {
			return r
		}
		if _, r := m.fragment(f.Name); r != nil {
			return r
		}
	}
	for _, op := range doc.Operations {
		if r := m.operation(op); r != nil {
			return r
		}
	}
	if r := m.walkCost(doc); r != nil {
		return r
	}
	return m.comparisons(doc)
}

// size is what a selection set comes to once its fragments are followed.
type size struct {
	level int // fields at its own level
	depth int // fields inside each other
	total int // selections altogether
}

type fragment struct {
	def      *ast.FragmentDefinition
	size     size
	measured bool
	open     bool // being measured: meeting it again is a cycle
}

type measurer struct {
	limits         Limits
	fragments      map[string]*fragment
	directiveCount int
	literalCount   int
}

func (m *measurer) operation(op *ast.OperationDefinition) *Refusal {
	if len(op.VariableDefinitions) > m.limits.Variables {
		return over("variables", m.limits.Variables)
	}
	for _, v := range op.VariableDefinitions {
		if r := m.directives(v.Directives); r != nil {
			return r
		}
		if v.DefaultValue != nil {
			if r := m.value(v.DefaultValue, 1); r != nil {
				return r
			}
		}
	}
	if r := m.directives(op.Directives); r != nil {
		return r
	}
	s, r := m.set(op.SelectionSet)
	switch {
	case r != nil:
		return r
	case s.level > m.limits.RootFields:
		return over("fields at the root", m.limits.RootFields)
	case s.depth > m.limits.Depth:
		return over("fields inside each other", m.limits.Depth)
	case s.total > m.limits.Fields:
		return over("selections, fragments followed", m.limits.Fields)
	}
	return nil
}

func (m *measurer) fragment(name string) (size, *Refusal) {
	f := m.fragments[name]
	switch {
	case f == nil || f.measured:
		if f == nil { // validation reports it
			return size{}, nil
		}
		return f.size, nil
	case f.open:
		return size{}, &Refusal{Message: "The document is refused: a fragment spreads itself, by itself or through others."}
	}
	f.open = true
	s, r := m.set(f.def.SelectionSet)
	f.open, f.measured, f.size = false, true, s
	return s, r
}

func (m *measurer) set(set ast.SelectionSet) (size, *Refusal) {
	if len(set) > m.limits.Selections {
		return size{}, over("selections in one set", m.limits.Selections)
	}
	var sum size
	for _, selection := range set {
		s, r := m.selection(selection)
		if r != nil {
			return size{}, r
		}
		// Bounded at every step, so that doubling can't overflow.
		sum.level = min(sum.level+s.level, 1<<30)
		sum.total = min(sum.total+s.total, 1<<30)
		sum.depth = max(sum.depth, s.depth)
	}
	switch {
	case sum.level > m.limits.Selections:
		return size{}, over("fields in one set, fragments followed", m.limits.Selections)
	case sum.depth > m.limits.Depth:
		return size{}, over("fields inside each other", m.limits.Depth)
	case sum.total > m.limits.Fields:
		return size{}, over("selections, fragments followed", m.limits.Fields)
	}
	return sum, nil
}

func (m *measurer) selection(selection ast.Selection) (size, *Refusal) {
	switch it := selection.(type) {
	case *ast.Field:
		if r := m.directives(it.Directives); r != nil {
			return size{}, r
		}
		if r := m.arguments(it.Arguments); r != nil {
			return size{}, r
		}
		inner, r := m.set(it.SelectionSet)
		return size{level: 1, depth: inner.depth + 1, total: inner.total + 1}, r
	case *ast.InlineFragment:
		if r := m.directives(it.Directives); r != nil {
			return size{}, r
		}
		s, r := m.set(it.SelectionSet)
		s.total++
		return s, r
	case *ast.FragmentSpread:
		if r := m.directives(it.Directives); r != nil {
			return size{}, r
		}
		s, r := m.fragment(it.Name)
		s.total++ // fragments of nothing but spreads double as well
		return s, r
	}
	return size{}, nil
}

func (m *measurer) directives(list ast.DirectiveList) *Refusal {
	if len(list) > m.limits.DirectivesAt {
		return over("directives at one place", m.limits.DirectivesAt)
	}
	m.directiveCount += len(list)
	if m.directiveCount > m.limits.Directives {
		return over("directives", m.limits.Directives)
	}
	for _, d := range list {
		// The answer would have to come in parts, which these transports don't do.
		if d.Name == "defer" || d.Name == "stream" {
			return &Refusal{Message: `Unknown directive "@` + d.Name + `".`, Malformed: true, Line: line(d.Position), Column: column(d.Position)}
		}
		if r := m.arguments(d.Arguments); r != nil {
			return r
		}
	}
	return nil
}

func (m *measurer) arguments(list ast.ArgumentList) *Refusal {
	if len(list) > m.limits.Arguments {
		return over("arguments at one place", m.limits.Arguments)
	}
	for _, a := range list {
		if r := m.value(a.Value, 1); r != nil {
			return r
		}
	}
	return nil
}

func (m *measurer) value(v *ast.Value, depth int) *Refusal {
	if v == nil {
		return nil
	}
	m.literalCount++
	switch {
	case m.literalCount > m.limits.Literals:
		return over("values", m.limits.Literals)
	case depth > m.limits.LiteralDepth:
		return over("levels in one value", m.limits.LiteralDepth)
	}
	switch v.Kind {
	case ast.IntValue:
		// Libraries convert to 64 bits and panic beyond.
		if _, err := strconv.ParseInt(v.Raw, 10, 64); err != nil {
			return &Refusal{Message: "An integer of the document has more than 64 bits.", Malformed: true, Line: line(v.Position), Column: column(v.Position)}
		}
	case ast.FloatValue:
		if _, err := strconv.ParseFloat(v.Raw, 64); err != nil {
			return &Refusal{Message: "A number of the document is out of range.", Malformed: true, Line: line(v.Position), Column: column(v.Position)}
		}
	case ast.StringValue, ast.BlockValue:
		if strings.IndexByte(v.Raw, 0) >= 0 {
			return &Refusal{Message: "A string of the document holds a NUL character.", Malformed: true, Line: line(v.Position), Column: column(v.Position)}
		}
	}
	for _, child := range v.Children {
		if r := m.value(child.Value, depth+1); r != nil {
			return r
		}
	}
	return nil
}

func line(p *ast.Position) int {
	if p == nil {
		return 0
	}
	return p.Line
}

func column(p *ast.Position) int {
	if p == nil {
		return 0
	}
	return p.Column
}
