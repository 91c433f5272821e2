package transport

import (
	"github.com/vektah/gqlparser/v2/ast"

	"tallyard/domain/fault"
)

// oneStream refuses a subscription that does not come to exactly one field.
// Validation counts fields by their names and before the variables are known;
// what runs counts them by the names in the answer, without what was skipped.
func oneStream(op *ast.OperationDefinition, variables map[string]any) *refusal {
	if op.Operation != ast.Subscription {
		return nil
	}
	keys := map[string]bool{}
	rootKeys(op.SelectionSet, variables, keys)
	switch len(keys) {
	case 1:
		return nil
	case 0:
		return refuse(reasonDocument, fault.CodeBadRequest,
			"A subscription needs one field: with these variables @skip and @include leave none.")
	default:
		return refuse(reasonDocument, fault.CodeBadRequest,
			"A subscription may have one field only: start a subscription for each.")
	}
}

// rootKeys collects the names that root fields have in the answer. Fragments
// form no cycles and are few: the document has been validated.
func rootKeys(set ast.SelectionSet, variables map[string]any, keys map[string]bool) {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			if selected(s.Directives, variables) {
				keys[s.Alias] = true
			}
		case *ast.InlineFragment:
			if selected(s.Directives, variables) {
				rootKeys(s.SelectionSet, variables, keys)
			}
		case *ast.FragmentSpread:
			if s.Definition != nil && selected(s.Directives, variables) {
				rootKeys(s.Definition.SelectionSet, variables, keys)
			}
		}
	}
}

// selected is what @skip and @include come to.
func selected(directives ast.DirectiveList, variables map[string]any) bool {
	for _, d := range directives {
		if d.Name != "skip" && d.Name != "include" {
			continue
		}
		condition := d.Arguments.ForName("if")
		if condition == nil {
			continue // not valid, so it does not come here
		}
		if on, err := condition.Value.Value(variables); err == nil && on == (d.Name == "skip") {
			return false
		}
	}
	return true
}
