package patch

import (
	"encoding/json"
	"testing"
)

type update struct {
	A Field[string] `json:"a,omitzero"`
	B Field[[]int]  `json:"b,omitzero"`
}

func TestField(t *testing.T) {
	for name, c := range map[string]struct {
		json string
		a    string // after the update of "old"
		b    int    // length after the update of three
	}{
		"G12_absent_keeps": {`{}`, "old", 3},
		"G12_null_clears":  {`{"a":null,"b":null}`, "", 0},
		"G12_a_value_sets": {`{"a":"new","b":[1]}`, "new", 1},
		"G12_empty_values": {`{"a":"","b":[]}`, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			var u update
			if err := json.Unmarshal([]byte(c.json), &u); err != nil {
				t.Fatal(err)
			}
			if a, b := u.A.Or("old"), u.B.Or([]int{1, 2, 3}); a != c.a || len(b) != c.b {
				t.Errorf("gives %q, %v", a, b)
			}
			if back, err := json.Marshal(u); err != nil || string(back) != c.json {
				t.Errorf("is written as %s, %v", back, err)
			}
		})
	}
	if f := (Field[string]{}); f.Cleared() || !f.IsZero() || !Clear[int]().Cleared() || To(1).Cleared() || !Keep[int]().IsZero() {
		t.Error("absent, null and value are not told apart")
	}
}
