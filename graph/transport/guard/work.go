package guard

import "github.com/vektah/gqlparser/v2/ast"

// walkCost adds up what validation visits: it starts at every operation and at
// every fragment, and from each follows all fragments it can reach.
func (m *measurer) walkCost(doc *ast.QueryDocument) *Refusal {
	cost := 0
	for _, op := range doc.Operations {
		cost += m.reach(op.SelectionSet, map[string]bool{})
	}
	for _, f := range doc.Fragments {
		cost += m.reach(f.SelectionSet, map[string]bool{f.Name: true})
		if cost > m.limits.Walk {
			return over("nodes to validate", m.limits.Walk)
		}
	}
	if cost > m.limits.Walk {
		return over("nodes to validate", m.limits.Walk)
	}
	return nil
}

// reach counts the nodes that can be reached from a set, each fragment once.
func (m *measurer) reach(set ast.SelectionSet, seen map[string]bool) int {
	n := 0
	for _, selection := range set {
		n++
		switch it := selection.(type) {
		case *ast.Field:
			n += literals(it.Arguments) + m.reach(it.SelectionSet, seen)
		case *ast.InlineFragment:
			n += m.reach(it.SelectionSet, seen)
		case *ast.FragmentSpread:
			if f := m.fragments[it.Name]; f != nil && !seen[it.Name] {
				seen[it.Name] = true
				n += m.reach(f.def.SelectionSet, seen)
			}
		}
	}
	return n
}

func literals(list ast.ArgumentList) int {
	n := 0
	for _, a := range list {
		n += values(a.Value)
	}
	return n
}

func values(v *ast.Value) int {
	if v == nil {
		return 0
	}
	n := 1
	for _, c := range v.Children {
		n += values(c.Value)
	}
	return n
}

// occurrence is one place where a field is selected.
type occurrence struct {
	field  *ast.Field
	weight int
}

// merger follows what validation does when it merges selection sets.
type merger struct {
	*measurer
	pairs int // what is left for comparisons
	steps int // what is left for following fragments
}

// comparisons adds up the pairs of fields that validation has to compare
// because they share a response name, as it merges their sets.
func (m *measurer) comparisons(doc *ast.QueryDocument) *Refusal {
	g := merger{measurer: m, pairs: m.limits.Comparisons, steps: m.limits.Walk}
	for _, op := range doc.Operations {
		g.merge([]ast.SelectionSet{op.SelectionSet})
	}
	for _, f := range doc.Fragments {
		g.merge([]ast.SelectionSet{f.SelectionSet})
	}
	switch {
	case g.pairs < 0:
		return over("comparisons of fields with the same name", m.limits.Comparisons)
	case g.steps < 0:
		return over("nodes to validate", m.limits.Walk)
	}
	return nil
}

func (g *merger) merge(sets []ast.SelectionSet) {
	byName := map[string][]occurrence{}
	for _, set := range sets {
		g.collect(set, 1, byName)
	}
	for _, group := range byName {
		weight := 0
		var inner []ast.SelectionSet
		for _, o := range group {
			weight += o.weight
			if len(o.field.SelectionSet) > 0 {
				inner = append(inner, o.field.SelectionSet)
			}
		}
		g.pairs -= (len(group) - 1) * weight // each pair costs what both of them carry
		if g.pairs < 0 || g.steps < 0 {
			return
		}
		if len(inner) > 0 {
			g.merge(inner)
		}
	}
}

// collect gathers the fields of a set, fragments followed. An inline fragment
// is compared once more inside itself, hence the factor.
func (g *merger) collect(set ast.SelectionSet, factor int, into map[string][]occurrence) {
	for _, selection := range set {
		if g.steps--; g.steps < 0 {
			return
		}
		switch it := selection.(type) {
		case *ast.Field:
			name := it.Alias
			if name == "" {
				name = it.Name
			}
			carried := literals(it.Arguments)
			g.steps -= carried
			into[name] = append(into[name], occurrence{it, factor * (1 + carried)})
		case *ast.InlineFragment:
			g.collect(it.SelectionSet, factor+1, into)
		case *ast.FragmentSpread:
			if f := g.fragments[it.Name]; f != nil {
				g.collect(f.def.SelectionSet, factor, into)
			}
		}
	}
}
