package transport

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tallyard/domain/fault"
)

// coerceVariables checks the variables of a request against what the operation
// declares, by the letter of the specification: a string is no number, a
// number is no string, Int has 32 bits, enum values are case-sensitive, an
// input object with @oneOf has exactly one field. All faults come at once, up
// to a limit, and none repeats a value.
func coerceVariables(schema *ast.Schema, op *ast.OperationDefinition, given map[string]any, limit int) (map[string]any, gqlerror.List) {
	c := coercer{schema: schema, limit: limit}
	out := make(map[string]any, len(op.VariableDefinitions))
	for _, def := range op.VariableDefinitions {
		c.def = def
		value, present := given[def.Variable]
		if !present {
			switch {
			case def.DefaultValue != nil:
				fallback, err := def.DefaultValue.Value(nil)
				if err != nil {
					c.fail(def.Variable, "has a default that is not valid")
					continue
				}
				out[def.Variable] = fallback
			case def.Type.NonNull:
				c.fail(def.Variable, "is required")
			}
			continue
		}
		if coerced, ok := c.value(def.Type, value, def.Variable); ok {
			out[def.Variable] = coerced
		}
	}
	return out, c.errs
}

type coercer struct {
	schema *ast.Schema
	def    *ast.VariableDefinition
	limit  int
	errs   gqlerror.List
}

// fail records a fault; what follows is the second half of its sentence.
func (c *coercer) fail(path, format string, args ...any) (any, bool) {
	if len(c.errs) < c.limit {
		e := coded(fault.CodeBadRequest, "Variable \"$"+path+"\" "+fmt.Sprintf(format, args...)+".")
		if p := c.def.Position; p != nil {
			e.Locations = []gqlerror.Location{{Line: p.Line, Column: p.Column}}
		}
		c.errs = append(c.errs, e)
	}
	return nil, false
}

func (c *coercer) value(t *ast.Type, v any, path string) (any, bool) {
	if v == nil {
		if t.NonNull {
			return c.fail(path, "must not be null")
		}
		return nil, true
	}
	if t.Elem != nil {
		return c.list(t.Elem, v, path)
	}
	def := c.schema.Types[t.NamedType]
	if def == nil {
		return c.fail(path, "has an unknown type")
	}
	switch def.Kind {
	case ast.Enum:
		name, ok := v.(string)
		if !ok || !slices.ContainsFunc(def.EnumValues, func(e *ast.EnumValueDefinition) bool { return e.Name == name }) {
			return c.fail(path, "must be a value of the enum %s", def.Name)
		}
		return name, true
	case ast.InputObject:
		return c.object(def, v, path)
	case ast.Scalar:
		return c.scalar(def.Name, v, path)
	default:
		return c.fail(path, "has a type that is no input type")
	}
}

func (c *coercer) list(elem *ast.Type, v any, path string) (any, bool) {
	items, isList := v.([]any)
	if !isList { // one item stands for a list of it
		item, ok := c.value(elem, v, path)
		return []any{item}, ok
	}
	out, all := make([]any, len(items)), true
	for i, item := range items {
		var ok bool
		out[i], ok = c.value(elem, item, path+"["+strconv.Itoa(i)+"]")
		all = all && ok
	}
	return out, all
}

func (c *coercer) object(def *ast.Definition, v any, path string) (any, bool) {
	members, ok := v.(map[string]any)
	if !ok {
		return c.fail(path, "must be an object, %s", def.Name)
	}
	if def.Directives.ForName("oneOf") != nil {
		if len(members) != 1 {
			return c.fail(path, "must have exactly one field of %s", def.Name)
		}
		for name, member := range members {
			if member == nil {
				return c.fail(path+"."+clip(name), "must not be null")
			}
		}
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names) // faults come in a stable order
	for _, name := range names {
		if def.Fields.ForName(name) == nil {
			c.fail(path, "has a field %q that %s does not have", clip(name), def.Name)
			ok = false
		}
	}
	out := make(map[string]any, len(members))
	for _, field := range def.Fields {
		member, present := members[field.Name]
		if !present {
			if field.Type.NonNull && field.DefaultValue == nil {
				c.fail(path+"."+field.Name, "is required")
				ok = false
			}
			continue // the generated code knows the defaults
		}
		coerced, good := c.value(field.Type, member, path+"."+field.Name)
		if good {
			out[field.Name] = coerced
		}
		ok = ok && good
	}
	return out, ok
}

func (c *coercer) scalar(name string, v any, path string) (any, bool) {
	switch name {
	case "Int":
		if n, ok := v.(json.Number); ok {
			if i, ok := whole(n); ok && i >= math.MinInt32 && i <= math.MaxInt32 {
				return i, true
			}
		}
		return c.fail(path, "must be an integer of 32 bits")
	case "Float":
		if n, ok := v.(json.Number); ok {
			if f, err := n.Float64(); err == nil {
				return f, true
			}
		}
		return c.fail(path, "must be a number")
	case "String":
		if s, ok := v.(string); ok {
			return s, true
		}
		return c.fail(path, "must be a string")
	case "Boolean":
		if b, ok := v.(bool); ok {
			return b, true
		}
		return c.fail(path, "must be true or false")
	case "ID":
		switch id := v.(type) {
		case string:
			return id, true
		case json.Number:
			if i, err := strconv.ParseInt(id.String(), 10, 64); err == nil {
				return strconv.FormatInt(i, 10), true
			}
		}
		return c.fail(path, "must be an ID, a string")
	}
	return v, true // the scalar itself checks
}

// whole reads a JSON number that has no fraction, however it is written.
func whole(n json.Number) (int64, bool) {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i, true
	}
	if !strings.ContainsAny(n.String(), ".eE") {
		return 0, false
	}
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// clip shortens a name that a client made up.
func clip(name string) string {
	return shorten(name, 40)
}
