package es_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tallyard/domain/es"
)

// TestStreamNamesReadBack: what names a stream reads back as the same thing.
func TestStreamNamesReadBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := es.StreamID{
			Category: rapid.StringMatching(`[a-z][a-z_]{0,20}`).Draw(rt, "category"),
			Tenant:   uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "tenant")),
			Key:      rapid.StringMatching(`[0-9a-f.-]{1,40}`).Draw(rt, "key"),
		}
		got, err := es.ParseStream(s.String())
		if err != nil || got != s {
			rt.Fatalf("%v reads as %v, %v", s, got, err)
		}
	})
}

func TestStreamNamesThatAreNone(t *testing.T) {
	id := acme.String()
	for _, name := range []string{
		"", "-", "counter", "counter-", "-" + id + ".x", "counter-" + id, "counter-" + id + ".", "counter-x.y", "$ce-counter", "$$counter-" + id,
		"counter-" + strings.ToUpper("0198a000-0000-7000-8000-00000000000a") + ".x", "counter-{" + id + "}.x", "counter-" + strings.ReplaceAll(id, "-", "") + ".x",
	} {
		if s, err := es.ParseStream(name); err == nil {
			t.Errorf("%q reads as %v", name, s)
		}
	}
}

// TestStreamsOfTenants: the same id in another tenant is
// another stream.
func TestStreamsOfTenants(t *testing.T) {
	t.Run("TEN-01_the_same_id_elsewhere_is_another_stream", func(t *testing.T) {
		rt := alone(t)
		if _, err := es.Execute(t.Context(), rt, command(""), counters, alice, add(1)); err != nil {
			t.Fatal(err)
		}
		other := must[es.Loaded[counter]](t)(es.Load(t.Context(), rt, counters, uuid.New(), alice))
		if other.Exists() || other.State.Sum != 0 {
			t.Errorf("another tenant reads %+v", other)
		}
	})
}

// FuzzParseStream: what reads as a stream is written the same way.
func FuzzParseStream(f *testing.F) {
	f.Add(counters.Stream(acme, alice).String())
	f.Add("name-00000000-0000-0000-0000-000000000000.ab")
	f.Add("a-A198A000-0000-7000-8000-000000000001.x")
	f.Add("$streams")
	f.Fuzz(func(t *testing.T, name string) {
		if s, err := es.ParseStream(name); err == nil && s.String() != name {
			t.Errorf("%q reads as %+v, which is %q", name, s, s.String())
		}
	})
}
