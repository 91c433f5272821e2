package transport

import (
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// validationRules are the rules of the GraphQL specification, and ours, in a
// fixed order. Without introspection they make no suggestions: those would
// tell the schema by and by.
func validationRules(introspection bool) []core.Rule {
	set := rules.NewDefaultRules()
	if !introspection {
		for old, quiet := range map[string]core.Rule{
			rules.FieldsOnCorrectTypeRule.Name: rules.FieldsOnCorrectTypeRuleWithoutSuggestions,
			rules.KnownArgumentNamesRule.Name:  rules.KnownArgumentNamesRuleWithoutSuggestions,
			rules.KnownTypeNamesRule.Name:      rules.KnownTypeNamesRuleWithoutSuggestions,
			rules.ScalarLeafsRule.Name:         rules.ScalarLeafsRuleWithoutSuggestions,
			rules.ValuesOfCorrectTypeRule.Name: rules.ValuesOfCorrectTypeRuleWithoutSuggestions,
		} {
			set.ReplaceRule(old, quiet.RuleFunc)
		}
		set.AddRule(noIntrospection.Name, noIntrospection.RuleFunc)
	}
	set.AddRule(intsHave32Bits.Name, intsHave32Bits.RuleFunc)
	var list []core.Rule
	for name, f := range set.GetInner() {
		list = append(list, core.Rule{Name: name, RuleFunc: f})
	}
	slices.SortFunc(list, func(a, b core.Rule) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// intsHave32Bits refuses literals that only fail later otherwise, in the
// middle of the answer.
var intsHave32Bits = core.Rule{Name: "IntsHave32Bits", RuleFunc: func(observers *core.Events, addError core.AddErrFunc) {
	observers.OnValue(func(_ *core.Walker, v *ast.Value) {
		if v.Kind != ast.IntValue || v.Definition == nil || v.Definition.Name != "Int" {
			return
		}
		if _, err := strconv.ParseInt(v.Raw, 10, 32); err != nil {
			addError(core.Message("Int cannot represent a value of more than 32 bits."), core.At(v.Position))
		}
	})
}}

// noIntrospection refuses the schema's own fields.
var noIntrospection = core.Rule{Name: "NoIntrospection", RuleFunc: func(observers *core.Events, addError core.AddErrFunc) {
	observers.OnField(func(_ *core.Walker, f *ast.Field) {
		if f.Name == "__schema" || f.Name == "__type" {
			addError(core.Message("Introspection is switched off here."), core.At(f.Position))
		}
	})
}}

// validate applies the rules and returns the first few errors.
func validate(schema *ast.Schema, doc *ast.QueryDocument, list []core.Rule, limit int) gqlerror.List {
	var errs gqlerror.List
	seen := map[string]bool{}
	observers := &core.Events{}
	for _, rule := range list {
		rule.RuleFunc(observers, func(options ...core.ErrorOption) {
			if len(errs) >= limit {
				return
			}
			e := &gqlerror.Error{Rule: rule.Name}
			for _, option := range options {
				option(e)
			}
			// Fragments are walked more than once.
			if key := e.Error(); !seen[key] {
				seen[key] = true
				errs = append(errs, e)
			}
		})
	}
	core.Walk(schema, doc, observers)
	return errs
}
