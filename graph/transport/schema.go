package transport

import (
	"maps"

	"github.com/vektah/gqlparser/v2/ast"
)

// WithoutDefer returns the schema without the directives that these transports
// do not serve, so that introspection does not offer them. Hand the result to
// the generated configuration's Schema field; the schema itself is not changed.
func WithoutDefer(schema *ast.Schema) *ast.Schema {
	out := *schema
	out.Directives = maps.Clone(schema.Directives)
	delete(out.Directives, "defer")
	delete(out.Directives, "stream")
	return &out
}
