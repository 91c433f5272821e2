// Package gqlmodel holds the Go side of the GraphQL schema: its scalars, and
// the types that are generated from it.
package gqlmodel

import (
	"encoding/json"
	"io"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"tallyard/domain/fault"
)

// malformed is the fault of a value that is none of its type: the request is
// refused as it is, there is nothing that a user error could say about it.
func malformed(message string) error { return fault.New(fault.Limit, fault.CodeBadRequest, message) }

// timeLayout is RFC 3339 in UTC with the microseconds that events carry.
const timeLayout = "2006-01-02T15:04:05.999999Z07:00"

// MarshalTime writes a Time.
func MarshalTime(t time.Time) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		_, _ = io.WriteString(w, strconv.Quote(t.UTC().Format(timeLayout)))
	})
}

// UnmarshalTime reads a Time.
func UnmarshalTime(v any) (time.Time, error) {
	s, ok := v.(string)
	if !ok {
		return time.Time{}, malformed("A Time is a string in RFC 3339, such as \"2026-11-30T20:45:28Z\".")
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	t = t.UTC() // an offset can lead out of the years that can be written
	if err != nil || t.Year() < 1970 || t.Year() > 9999 {
		return time.Time{}, malformed("A Time is written in RFC 3339 and lies between 1970 and 9999, such as \"2026-11-30T20:45:28Z\".")
	}
	return t.Truncate(time.Microsecond), nil
}

// MarshalLong writes a Long.
func MarshalLong(n int64) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		_, _ = io.WriteString(w, strconv.Quote(strconv.FormatInt(n, 10)))
	})
}

// UnmarshalLong reads a Long: a decimal string, or a number that is a whole one.
func UnmarshalLong(v any) (int64, error) {
	text := ""
	switch v := v.(type) {
	case string:
		text = v
	case json.Number:
		text = v.String()
	case int64:
		return v, nil
	case int:
		return int64(v), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, malformed("A Long is a whole number of 64 bits as a string, such as \"9007199254740993\".")
	}
	return n, nil
}

// MarshalPosition writes a sealed Position.
func MarshalPosition(s string) graphql.Marshaler { return graphql.MarshalString(s) }

// UnmarshalPosition reads a sealed Position; it is opened where it is used.
func UnmarshalPosition(v any) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", malformed("A Position is a string from a receipt.")
	}
	return s, nil
}

// MarshalJSON writes a value as it was recorded.
func MarshalJSON(v json.RawMessage) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		if len(v) == 0 {
			v = json.RawMessage("null")
		}
		_, _ = w.Write(v)
	})
}

// UnmarshalJSON refuses: the scalar is only ever read by clients.
func UnmarshalJSON(any) (json.RawMessage, error) {
	return nil, malformed("JSON is not an input.")
}
