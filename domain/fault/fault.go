// Package fault holds the one error type that reaches people.
//
// A [Fault] has a kind (which decides how the API shows it), a stable code
// (which programs test), a sentence that says what to do, and the path of the
// input field it is about. Everything that is not a Fault is a programming or
// infrastructure error: it is logged with the request id and shown masked.
package fault

import (
	"errors"
	"strings"
)

// Kind decides how a fault is shown; one table in graph/problem maps kinds to GraphQL.
type Kind int

// Kinds of faults.
const (
	// Internal is what nobody should see the inside of.
	Internal Kind = iota
	// Invalid input; the caller can mend it.
	Invalid
	// Forbidden: the thing is visible, the act is not permitted.
	Forbidden
	// NotFound: it does not exist, or the caller may not know that it does.
	NotFound
	// Conflict with what is there or with somebody else's change.
	Conflict
	// State: the thing's state does not allow it.
	State
	// Quota or another limit is used up.
	Quota
	// Unauthenticated: no or bad credentials.
	Unauthenticated
	// Limit: the request itself is too large, deep or frequent.
	Limit
	// Timeout: the deadline passed before the answer.
	Timeout
	// Stale: the read model is behind the position asked for.
	Stale
	// Unavailable: a part that is needed can't be reached.
	Unavailable
)

// Fault is an error meant for people. Values are always pointers, so that
// errors.As has one target type.
type Fault struct {
	Kind    Kind
	Code    Code
	Message string            // one sentence, says what to do
	Field   []string          // path of the input field, camelCase; empty when it is about the whole
	Details map[string]string // stable, machine-readable facts, such as "currentVersion"
}

// Error implements error.
func (f *Fault) Error() string { return string(f.Code) + ": " + f.Message }

// At returns a copy of the fault about a field.
func (f *Fault) At(path ...string) *Fault {
	c := *f
	c.Field = path
	return &c
}

// With returns a copy of the fault with one more detail.
func (f *Fault) With(key, value string) *Fault {
	c := *f
	c.Details = make(map[string]string, len(f.Details)+1)
	for k, v := range f.Details {
		c.Details[k] = v
	}
	c.Details[key] = value
	return &c
}

// New makes a fault.
func New(kind Kind, code Code, message string) *Fault {
	return &Fault{Kind: kind, Code: code, Message: message}
}

// List is several faults of one input, all found at once.
type List []*Fault

// Error implements error.
func (l List) Error() string {
	parts := make([]string, len(l))
	for i, f := range l {
		parts[i] = f.Error()
	}
	return strings.Join(parts, "; ")
}

// Add appends err's faults, if it has any; other errors are a mistake of the caller.
func (l *List) Add(faults ...*Fault) {
	for _, f := range faults {
		if f != nil {
			*l = append(*l, f)
		}
	}
}

// Err returns the list as an error, or nil when it is empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

// All returns the faults inside err, and false when err is none.
func All(err error) ([]*Fault, bool) {
	var list List
	if errors.As(err, &list) && len(list) > 0 {
		return list, true
	}
	var one *Fault
	if errors.As(err, &one) {
		return []*Fault{one}, true
	}
	return nil, false
}

// Is tells whether err holds a fault with the code.
func Is(err error, code Code) bool {
	faults, _ := All(err)
	for _, f := range faults {
		if f.Code == code {
			return true
		}
	}
	return false
}
