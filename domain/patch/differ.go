package patch

import (
	"encoding/json"
	"slices"
	"strings"

	"tallyard/domain/es"
)

// Differ notes a field in which two values differ, with the values after and
// before. They are compared by their stored form, which is what counts.
func Differ[T any](set, was *Field[T], before, after T) {
	if !same(before, after) {
		*set, *was = To(after), To(before)
	}
}

// DifferPointer is [Differ] for a value that may be absent.
func DifferPointer[T any](set, was *Field[T], before, after *T) {
	if !same(before, after) {
		*set, *was = Field[T]{Given: true, Value: after}, Field[T]{Given: true, Value: before}
	}
}

func same(a, b any) bool { return string(es.ValueOf(a)) == string(es.ValueOf(b)) }

// Changes renders an edit for the audit: two structs of fields, those that are
// given in the first with the values after, in the second those before.
func Changes(set, was any) []es.Change {
	var after, before map[string]json.RawMessage
	// Both were rendered from valid values a moment ago or read from the log.
	_ = json.Unmarshal(es.ValueOf(set), &after)
	_ = json.Unmarshal(es.ValueOf(was), &before)
	list := make([]es.Change, 0, len(after))
	for name, to := range after {
		list = append(list, es.Change{Field: name, From: notEmpty(before[name]), To: notEmpty(to)})
	}
	slices.SortFunc(list, func(a, b es.Change) int { return strings.Compare(a.Field, b.Field) })
	return list
}

func notEmpty(v json.RawMessage) json.RawMessage {
	if string(v) == "null" || string(v) == "[]" || string(v) == `""` {
		return nil
	}
	return v
}
