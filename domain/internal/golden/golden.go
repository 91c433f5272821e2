// Package golden holds every stored event name against one file of JSON that
// is never edited once it was released: what the log holds must load for ever.
package golden

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"tallyard/domain/es"
)

// Update is the environment variable that has the files written that are
// missing. A file that exists is never written.
const Update = "TALLYARD_WRITE_GOLDEN"

// Check encodes one sample of each registered event, compares it with
// testdata/<name>.json, and reads the file back into an equal event.
func Check(t *testing.T, types []es.TypeDef, samples ...es.Event) {
	t.Helper()
	reg, err := es.NewRegistry(types)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, sample := range samples {
		raw, err := reg.Encode(sample, es.Metadata{})
		if err != nil {
			t.Fatal(err)
		}
		seen[raw.Type] = true
		t.Run(raw.Type, func(t *testing.T) { check(t, reg, raw, sample) })
	}
	for _, name := range reg.Names() {
		if !seen[name] {
			t.Errorf("event %s has no sample", name)
		}
	}
}

func check(t *testing.T, reg *es.Registry, raw es.Raw, sample es.Event) {
	t.Helper()
	file := filepath.Join("testdata", raw.Type+".json")
	want, err := os.ReadFile(file) //nolint:gosec // a name from the test itself
	if os.IsNotExist(err) && os.Getenv(Update) != "" {
		want = append(indent(t, raw.Data), '\n')
		err = os.WriteFile(file, want, 0o644) //nolint:gosec // a source file
	}
	if err != nil {
		t.Fatalf("%v; set %s=1 to write it", err, Update)
	}
	if got, stored := string(indent(t, raw.Data)), string(indent(t, want)); got != stored {
		t.Errorf("encodes as\n%s\nthe stored form is\n%s", got, stored)
	}
	raw.Data = want
	env, err := reg.Decode(es.Recorded{Raw: raw, Stream: es.StreamOf("golden", es.PlatformTenant, es.PlatformTenant).String()})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(env.Event, sample) {
		t.Errorf("loads as %#v, want %#v", env.Event, sample)
	}
}

func indent(t *testing.T, data []byte) []byte {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return out
}
