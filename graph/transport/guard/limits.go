// Package guard refuses GraphQL documents that would cost too much, before
// that cost arises.
//
// Validation rules of GraphQL compare fields with each other and follow
// fragments, so a document of a few kilobytes can cost minutes. The guard
// works in two steps, both linear in what they accept: [Scan] reads the text
// before it is parsed, [Document] reads the parsed document before it is
// validated. It knows no schema.
package guard

import "fmt"

// Limits bounds one document. A zero field takes its default, see [Defaults].
type Limits struct {
	Bytes         int // length of the text
	Tokens        int // tokens and comments of the text
	Nesting       int // brackets of any kind inside each other
	Name          int // length of one name; suggestions cost by it
	Operations    int // operations in the document
	Fragments     int // fragments in the document
	Depth         int // fields inside each other, fragments followed
	Selections    int // fields of one selection set, fragments followed
	RootFields    int // fields at the root of an operation, fragments followed
	Fields        int // all fields of an operation, fragments followed
	Comparisons   int // pairs of fields that share a response name, by weight
	Walk          int // nodes that validation visits, over all its starting points
	Variables     int // variables of one operation
	Arguments     int // arguments of one field or directive
	Directives    int // directives in the document
	DirectivesAt  int // directives at one place
	Literals      int // values in the document
	LiteralDepth  int // lists and objects inside each other in one value
	VariableNodes int // values in the variables of a request
	VariableDepth int // lists and objects inside each other in the variables
}

// Defaults are limits that an honest client does not meet.
func Defaults() Limits {
	return Limits{
		Bytes:         128 << 10,
		Tokens:        8000,
		Nesting:       48,
		Name:          128,
		Operations:    20,
		Fragments:     100,
		Depth:         20,
		Selections:    200,
		RootFields:    30,
		Fields:        4000,
		Comparisons:   20000,
		Walk:          40000,
		Variables:     100,
		Arguments:     64,
		Directives:    200,
		DirectivesAt:  8,
		Literals:      4000,
		LiteralDepth:  16,
		VariableNodes: 20000,
		VariableDepth: 32,
	}
}

// WithDefaults returns the limits with every zero field replaced by its default.
func (l Limits) WithDefaults() Limits {
	d := Defaults()
	for _, p := range []struct{ have, def *int }{
		{&l.Bytes, &d.Bytes},
		{&l.Tokens, &d.Tokens},
		{&l.Nesting, &d.Nesting},
		{&l.Name, &d.Name},
		{&l.Operations, &d.Operations},
		{&l.Fragments, &d.Fragments},
		{&l.Depth, &d.Depth},
		{&l.Selections, &d.Selections},
		{&l.RootFields, &d.RootFields},
		{&l.Fields, &d.Fields},
		{&l.Comparisons, &d.Comparisons},
		{&l.Walk, &d.Walk},
		{&l.Variables, &d.Variables},
		{&l.Arguments, &d.Arguments},
		{&l.Directives, &d.Directives},
		{&l.DirectivesAt, &d.DirectivesAt},
		{&l.Literals, &d.Literals},
		{&l.LiteralDepth, &d.LiteralDepth},
		{&l.VariableNodes, &d.VariableNodes},
		{&l.VariableDepth, &d.VariableDepth},
	} {
		if *p.have <= 0 {
			*p.have = *p.def
		}
	}
	return l
}

// Refusal says why a document is not looked at any further. Its message names
// the limit and never repeats the document.
type Refusal struct {
	Message      string
	Malformed    bool // the text itself is wrong, no limit was met
	Line, Column int  // where, both from 1; zero when it is about the whole
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// over makes the refusal of a limit.
func over(what string, limit int) *Refusal {
	return &Refusal{Message: fmt.Sprintf("The document is refused: more than %d %s.", limit, what)}
}
