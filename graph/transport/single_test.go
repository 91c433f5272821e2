package transport_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A subscription has one field, by what it comes to and not by what is written.
func TestASubscriptionHasOneField(t *testing.T) {
	s := open(t, nil)
	c := s.ready()
	for i, q := range []struct {
		query     string
		variables map[string]any
		refused   string
	}{
		{"subscription { a: count(to: 1) b: count(to: 1) }", nil, "one field only"},
		{"subscription { ...F b: count(to: 1) } fragment F on Subscription { a: count(to: 1) }", nil, "one field only"},
		{"subscription { ... { a: count(to: 1) } ... { b: count(to: 1) } }", nil, "one field only"},
		{"subscription($x: Boolean!) { count(to: 1) @include(if: $x) }", map[string]any{"x": false}, "leave none"},
		{"subscription($x: Boolean = true) { count(to: 1) @skip(if: $x) }", nil, "leave none"},
		{"subscription { ... @skip(if: true) { count(to: 1) } }", nil, "leave none"},
		{"subscription($x: Boolean!) { ...F @include(if: $x) } fragment F on Subscription { count(to: 1) }", map[string]any{"x": false}, "leave none"},
		{"subscription($x: Boolean!) { count(to: 1) @include(if: $x) }", map[string]any{"x": true}, ""},
		{"subscription($x: Boolean!) { a: count(to: 1) @include(if: $x) b: count(to: 1) @skip(if: $x) }", map[string]any{"x": true}, ""},
		{"subscription { count(to: 1) count(to: 1) }", nil, ""},
	} {
		id := fmt.Sprint(i)
		payload, err := json.Marshal(map[string]any{"query": q.query, "variables": q.variables})
		if err != nil {
			t.Fatal(err)
		}
		c.send(fmt.Sprintf(`{"id":%q,"type":"subscribe","payload":%s}`, id, payload))
		if q.refused == "" {
			c.expect("next", id)
			c.expect("complete", id)
			continue
		}
		m := c.expect("error", id)
		if text := string(m.Payload); !strings.Contains(text, q.refused) || !strings.Contains(text, `"BAD_REQUEST"`) {
			t.Errorf("%s: %s", q.query, text)
		}
	}
	if log := s.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}
