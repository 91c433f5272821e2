package es_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tallyard/domain/es"
)

type addedOld struct{}

func (addedOld) Changes() []es.Change { return nil }

func TestRegistry(t *testing.T) {
	stream := counters.Stream(acme, alice).String()
	recorded := func(name, data string) es.Recorded {
		return es.Recorded{Raw: es.Raw{Type: name, Data: []byte(data), Metadata: []byte(`{}`)}, Stream: stream, Position: 7}
	}
	double := func(data json.RawMessage) (json.RawMessage, error) {
		var v map[string]int
		if err := json.Unmarshal(data, &v); err != nil {
			return nil, err
		}
		return json.Marshal(map[string]int{"n": 2 * v["n"]})
	}
	t.Run("old_json_loads_through_every_upcaster", func(t *testing.T) {
		reg := must[*es.Registry](t)(es.NewRegistry([]es.TypeDef{
			es.Type[added]("counter.added.v3"), es.Upcast("counter.added.v1", "counter.added.v2", double), es.Upcast("counter.added.v2", "counter.added.v3", double),
		}))
		env := must[es.Envelope](t)(reg.Decode(recorded("counter.added.v1", `{"n":3}`)))
		if env.Event != (added{12}) || env.Name != "counter.added.v3" {
			t.Errorf("loads as %+v", env)
		}
		if got := strings.Join(reg.Names(), " "); got != "counter.added.v1 counter.added.v2 counter.added.v3" {
			t.Errorf("names %s", got)
		}
	})
	t.Run("an_unknown_name_is_an_error_never_skipped", func(t *testing.T) {
		if _, err := registry(t).Decode(recorded("counter.added.v9", `{}`)); !errors.Is(err, es.ErrUnknownEvent) {
			t.Errorf("told %v", err)
		}
	})
	t.Run("an_upcaster_that_fails_says_where", func(t *testing.T) {
		reg := must[*es.Registry](t)(es.NewRegistry([]es.TypeDef{es.Type[added]("a.b.v2"), es.Upcast("a.b.v1", "a.b.v2", double)}))
		if _, err := reg.Decode(recorded("a.b.v1", `[]`)); err == nil || !strings.Contains(err.Error(), "position 7") {
			t.Errorf("told %v", err)
		}
	})
	t.Run("broken_data_and_metadata_are_errors", func(t *testing.T) {
		rec := recorded("counter.added.v1", `{"n":"x"}`)
		if _, err := registry(t).Decode(rec); err == nil {
			t.Error("broken data loads")
		}
		rec = recorded("counter.added.v1", `{}`)
		rec.Metadata = []byte(`nonsense`)
		if _, err := registry(t).Decode(rec); err == nil {
			t.Error("broken metadata loads")
		}
	})
	for name, list := range map[string][]es.TypeDef{
		"name_twice": {es.Type[added]("a.b.v1"), es.Type[moved]("a.b.v1")},
		"type_twice": {es.Type[added]("a.b.v1"), es.Type[added]("a.c.v1")},
		"nowhere":    {es.Upcast("a.b.v1", "a.b.v2", double)},
		"itself":     {es.Upcast("a.b.v1", "a.b.v1", double)},
		"circle":     {es.Upcast("a.b.v1", "a.b.v2", double), es.Upcast("a.b.v2", "a.b.v1", double), es.Type[added]("a.c.v1")},
	} {
		t.Run("refused_"+name, func(t *testing.T) {
			if _, err := es.NewRegistry(list); err == nil {
				t.Error("accepted")
			}
		})
	}
	t.Run("what_is_not_registered_is_not_written", func(t *testing.T) {
		if _, err := registry(t).Encode(addedOld{}, es.Metadata{}); err == nil {
			t.Error("encoded")
		}
	})
}

// TestEventsComeBack: an event and its metadata read back as they were
// written, the time in microseconds.
func TestEventsComeBack(t *testing.T) {
	reg := registry(t)
	rapid.Check(t, func(rt *rapid.T) {
		id := rapid.Custom(func(t *rapid.T) uuid.UUID {
			return uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		})
		meta := es.Metadata{
			Tenant: id.Draw(rt, "tenant"), Project: id.Draw(rt, "project"), Command: id.Draw(rt, "command"),
			Actor:  es.Actor{Kind: es.ActorToken, User: id.Draw(rt, "user"), Token: id.Draw(rt, "token")},
			Action: rapid.String().Draw(rt, "action"), Reason: rapid.String().Draw(rt, "reason"),
			Time:  time.Unix(rapid.Int64Range(0, 4e9).Draw(rt, "s"), rapid.Int64Range(0, 999_999_999).Draw(rt, "ns")),
			Index: rapid.IntRange(0, 9).Draw(rt, "index"),
		}
		raw, err := reg.Encode(added{rapid.Int().Draw(rt, "n")}, meta)
		if err != nil {
			rt.Fatal(err)
		}
		env, err := reg.Decode(es.Recorded{Raw: raw, Stream: counters.Stream(meta.Tenant, meta.Command).String()})
		if err != nil {
			rt.Fatal(err)
		}
		meta.Time = meta.Time.UTC().Truncate(time.Microsecond)
		if env.Meta != meta {
			rt.Fatalf("metadata reads as %+v, want %+v", env.Meta, meta)
		}
	})
}
