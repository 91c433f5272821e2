// Package patch holds the three-way value of an update: absent keeps, null
// clears, a value sets.
package patch

import "encoding/json"

// Field is one field of an update. The zero value keeps what is there; with
// the JSON option omitzero it is left out when rendered.
type Field[T any] struct {
	Given bool
	Value *T // nil with Given: cleared
}

// Keep leaves the field as it is.
func Keep[T any]() Field[T] { return Field[T]{} }

// To sets the field to a value.
func To[T any](v T) Field[T] { return Field[T]{Given: true, Value: &v} }

// Clear empties the field.
func Clear[T any]() Field[T] { return Field[T]{Given: true} }

// IsZero tells that the field is absent.
func (f Field[T]) IsZero() bool { return !f.Given }

// Cleared tells that the field was given as null.
func (f Field[T]) Cleared() bool { return f.Given && f.Value == nil }

// Or is the value after the update: what is given, the zero value when
// cleared, old when absent.
func (f Field[T]) Or(old T) T {
	switch {
	case !f.Given:
		return old
	case f.Value == nil:
		var zero T
		return zero
	default:
		return *f.Value
	}
}

// MarshalJSON implements json.Marshaler.
func (f Field[T]) MarshalJSON() ([]byte, error) { return json.Marshal(f.Value) }

// UnmarshalJSON implements json.Unmarshaler; it is only called for fields that are present.
func (f *Field[T]) UnmarshalJSON(b []byte) error {
	f.Given, f.Value = true, nil
	return json.Unmarshal(b, &f.Value)
}
