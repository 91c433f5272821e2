package relay_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/graph/relay"
	"tallyard/projections/page"
)

func sealer(t testing.TB, key byte) *relay.Sealer {
	t.Helper()
	s, err := relay.NewSealer([]byte(strings.Repeat(string(rune(key)), 32)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func list(t testing.TB, s *relay.Sealer, tenant uuid.UUID, parts ...any) relay.List {
	t.Helper()
	l, err := relay.NewList(s, tenant, parts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var ids = rapid.Custom(func(t *rapid.T) uuid.UUID {
	return uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid"))
})

// open reads a cursor the way that every list does.
func open(l relay.List, cursor string) (*page.Key, error) {
	n := int32(1)
	p, err := l.Page(relay.Args{First: &n, After: &cursor})
	return p.After, err
}

// TestCursorsFitTheirListOnly: a cursor opens in the list that gave it out, and
// in no other: another filter, order, tenant or installation.
func TestCursorsFitTheirListOnly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tenant, key := ids.Draw(rt, "tenant"), page.Key{Value: rapid.String().Draw(rt, "value"), ID: ids.Draw(rt, "id")}
		filter := rapid.String().Draw(rt, "filter")
		s := sealer(t, 'a')
		l := list(t, s, tenant, "users", filter)
		cursor := l.Cursor(key)
		if got, err := open(l, cursor); err != nil || *got != key {
			rt.Fatalf("it reads as %v, %v", got, err)
		}
		if l.Cursor(key) != cursor {
			rt.Fatal("one place has two cursors")
		}
		for name, other := range map[string]relay.List{
			"list": list(t, s, tenant, "projects", filter), "filter": list(t, s, tenant, "users", filter+"x"),
			"order": list(t, s, tenant, "users", filter, "DESC"), "installation": list(t, sealer(t, 'b'), tenant, "users", filter),
			"tenant": list(t, s, uuid.NewSHA1(tenant, nil), "users", filter),
		} {
			if _, err := open(other, cursor); !fault.Is(err, fault.CodeCursorInvalid) {
				rt.Fatalf("another %s takes the cursor: %v", name, err)
			}
		}
	})
}

// TestBentCursorsAreRefused: whatever one bit, cut or addition makes of one.
func TestBentCursorsAreRefused(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := list(t, sealer(t, 'a'), ids.Draw(rt, "tenant"), "users")
		cursor := l.Cursor(page.Key{Value: rapid.String().Draw(rt, "value"), ID: ids.Draw(rt, "id")})
		at := rapid.IntRange(0, len(cursor)-1).Draw(rt, "at")
		with := rapid.SampledFrom([]byte("ABCDxyz019-_=+/ \x00")).Draw(rt, "with")
		for _, bent := range []string{
			cursor[:at], cursor[:at] + string(with) + cursor[at:], cursor[:at] + string(with) + cursor[at+1:], cursor + cursor,
		} {
			if bent == cursor {
				continue
			}
			if k, err := open(l, bent); !fault.Is(err, fault.CodeCursorInvalid) {
				rt.Fatalf("%q reads as %v, %v", bent, k, err)
			}
		}
	})
}

// TestPositionsBelongToTheirTenant, and the cursors of subscriptions to their
// store; neither opens as the other.
func TestPositionsBelongToTheirTenant(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, tenant, store := sealer(t, 'a'), ids.Draw(rt, "tenant"), ids.Draw(rt, "store")
		other := uuid.NewSHA1(tenant, nil)
		p := es.Position(rapid.Uint64().Draw(rt, "position"))
		sealed := s.Position(tenant, p)
		if got, bad := s.OpenPosition(tenant, sealed); bad != nil || got != p {
			rt.Fatalf("%d reads as %d, %v", p, got, bad)
		}
		if _, bad := s.OpenPosition(other, sealed); bad == nil {
			rt.Fatal("another tenant reads the position")
		}
		want := relay.Live{Position: p, Event: ids.Draw(rt, "event"), Store: store}
		if rapid.Bool().Draw(rt, "inside an event") {
			want.Part = ids.Draw(rt, "part")
		}
		cursor := s.LiveCursor(tenant, want)
		if got, same, bad := s.OpenLive(tenant, cursor, store); bad != nil || !same || got != want {
			rt.Fatalf("it reads as %v, %v, %v", got, same, bad)
		}
		strange := store
		strange[0]++
		if _, same, bad := s.OpenLive(tenant, cursor, strange); bad != nil || same {
			rt.Fatal("a cursor of another store is not told apart")
		}
		if _, _, bad := s.OpenLive(other, cursor, store); bad == nil {
			rt.Fatal("another tenant reads the cursor")
		}
		if _, bad := s.OpenPosition(tenant, cursor); bad == nil {
			rt.Fatal("a cursor passes for a position")
		}
	})
}

// TestPagesHaveTheirSize: 1 to 100, one of first and last, by default 20 at the root.
func TestPagesHaveTheirSize(t *testing.T) {
	l := list(t, sealer(t, 'a'), uuid.New(), "users")
	n := func(i int32) *int32 { return &i }
	for _, c := range []struct {
		args relay.Args
		root bool
		code fault.Code
		size int
	}{
		{relay.Args{}, true, "", relay.DefaultPage},
		{relay.Args{}, false, fault.CodeBadRequest, 0},
		{relay.Args{First: n(1)}, false, "", 1},
		{relay.Args{Last: n(100)}, true, "", 100},
		{relay.Args{First: n(0)}, true, fault.CodeLimitExceeded, 0},
		{relay.Args{First: n(-1)}, true, fault.CodeLimitExceeded, 0},
		{relay.Args{Last: n(101)}, true, fault.CodeLimitExceeded, 0},
		{relay.Args{First: n(1), Last: n(1)}, true, fault.CodeBadRequest, 0},
	} {
		read := l.Nested
		if c.root {
			read = l.Page
		}
		p, err := read(c.args)
		if (c.code == "") != (err == nil) || (err != nil && !fault.Is(err, c.code)) || (err == nil && p.Limit() != c.size) {
			t.Errorf("%+v: %+v, %v", c.args, p, err)
		}
	}
}

// TestIDsAreTheirOwn: an id reads back as what it was made of, and as nothing else.
func TestIDsAreTheirOwn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		id := relay.ID{Kind: relay.Kind(rapid.IntRange(1, 12).Draw(rt, "kind")), UUID: ids.Draw(rt, "uuid")}
		if id.Kind == relay.AlgorithmVersion {
			id.Parent = ids.Draw(rt, "parent")
		}
		text := id.String()
		if got, ok := relay.Parse(text); !ok || got != id {
			rt.Fatalf("%v reads as %v, %v", id, got, ok)
		}
		at := rapid.IntRange(0, len(text)-1).Draw(rt, "at")
		if got, ok := relay.Parse(text[:at]); ok {
			rt.Fatalf("the beginning of an id reads as %v", got)
		}
	})
	if _, bad := relay.Expect(relay.User, relay.Of(relay.Project, uuid.New()), "userId"); bad == nil || bad.Code != fault.CodeNotFound {
		t.Errorf("a project passes for a user: %v", bad)
	}
}

// FuzzStrings: what clients hand back never panics, and what opens is exactly
// what was given out.
func FuzzStrings(f *testing.F) {
	s, tenant, store := sealer(f, 'a'), uuid.UUID{1}, uuid.UUID{2}
	l := list(f, s, tenant, "users")
	f.Add(l.Cursor(page.Key{Value: "x", ID: uuid.UUID{3}}))
	f.Add(s.Position(tenant, 7))
	f.Add(s.LiveCursor(tenant, relay.Live{Position: 7, Store: store}))
	f.Add(relay.Of(relay.User, uuid.UUID{4}))
	f.Add(relay.ID{Kind: relay.AlgorithmVersion, UUID: uuid.UUID{5}, Parent: uuid.UUID{6}}.String())
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if id, ok := relay.Parse(text); ok && id.String() != text {
			t.Errorf("%q reads as %v, which is %q", text, id, id.String())
		}
		if k, err := open(l, text); err == nil && l.Cursor(*k) != text {
			t.Errorf("%q opens as a cursor that was not given out", text)
		}
		if p, bad := s.OpenPosition(tenant, text); bad == nil && s.Position(tenant, p) != text {
			t.Errorf("%q opens as a position that was not given out", text)
		}
		_, _, _ = s.OpenLive(tenant, text, store)
	})
}
