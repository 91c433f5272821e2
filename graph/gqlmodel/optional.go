package gqlmodel

// Deref is what a pointer leads to, the zero value where it is nil.
func Deref[T any](p *T) T {
	var zero T
	return Or(p, zero)
}

// Or is what a pointer leads to, or absent where it is nil.
func Or[T any](p *T, absent T) T {
	if p == nil {
		return absent
	}
	return *p
}

// NotEmpty is a text for a field that is null where there is none.
func NotEmpty[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return &s
}
