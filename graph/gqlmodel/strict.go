package gqlmodel

import (
	"encoding/json"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
)

// The scalars of this file take exactly what the GraphQL specification says
// and nothing that could be turned into it: a number is no String, "5" is no Int.

// MarshalString writes a String.
func MarshalString(s string) graphql.Marshaler { return graphql.MarshalString(s) }

// UnmarshalString reads a String; NUL and what is not UTF-8 is refused.
func UnmarshalString(v any) (string, error) {
	s, ok := v.(string)
	switch {
	case !ok:
		return "", malformed("A String is expected.")
	case !utf8.ValidString(s):
		return "", malformed("The String is not valid UTF-8.")
	case strings.ContainsRune(s, 0):
		return "", malformed("The String holds a NUL character.")
	}
	return s, nil
}

// MarshalID writes an ID.
func MarshalID(s string) graphql.Marshaler { return graphql.MarshalString(s) }

// UnmarshalID reads an ID. The specification allows numbers for ids; ours are never numbers.
func UnmarshalID(v any) (string, error) {
	s, err := UnmarshalString(v)
	if err != nil {
		return "", malformed("An ID is expected, as a string.")
	}
	return s, nil
}

// MarshalInt writes an Int.
func MarshalInt(n int32) graphql.Marshaler { return graphql.MarshalInt32(n) }

// UnmarshalInt reads an Int: a whole number of 32 bits.
func UnmarshalInt(v any) (int32, error) {
	var n int64
	switch v := v.(type) {
	case int64:
		n = v
	case int:
		n = int64(v)
	case int32:
		return v, nil
	case json.Number:
		i, err := v.Int64()
		if err != nil {
			return 0, malformed("An Int is a whole number of 32 bits.")
		}
		n = i
	case float64:
		if v != math.Trunc(v) {
			return 0, malformed("An Int is a whole number.")
		}
		n = int64(v)
	default:
		return 0, malformed("An Int is expected.")
	}
	if n < math.MinInt32 || n > math.MaxInt32 {
		return 0, malformed("An Int lies between -2147483648 and 2147483647.")
	}
	return int32(n), nil
}

// MarshalBoolean writes a Boolean.
func MarshalBoolean(b bool) graphql.Marshaler { return graphql.MarshalBoolean(b) }

// UnmarshalBoolean reads a Boolean.
func UnmarshalBoolean(v any) (bool, error) {
	b, ok := v.(bool)
	if !ok {
		return false, malformed("A Boolean is expected.")
	}
	return b, nil
}
