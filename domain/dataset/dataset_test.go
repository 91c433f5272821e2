package dataset

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/internal/golden"
	"tallyard/domain/patch"
	"tallyard/infra/eventstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	acme   = uuid.MustParse("0198a000-0000-7000-8000-000000000001")
	vision = uuid.MustParse("0198a000-0000-7000-8000-000000000002")
	alice  = uuid.MustParse("0198a000-0000-7000-8000-00000000000a")
	bob    = uuid.MustParse("0198a000-0000-7000-8000-00000000000b")
	space  = uuid.MustParse("0198a000-0000-7000-8000-00000000000c")
	op     = uuid.MustParse("0198a000-0000-7000-8000-00000000000d")
)

func TestGolden(t *testing.T) {
	c := Content{Space: space, Directory: "data/训练", Files: 3, Bytes: 42}
	golden.Check(t, Types,
		Registered{Project: vision, Owner: alice, Name: "digits", Description: "Handwritten", Visibility: access.Group, Content: c},
		Updated{Name: &Moved{"digits", "numbers"}, Description: &Moved{"", "x"}, Visibility: &Moved{"GROUP", "GLOBAL"}, Content: &MovedContent{c, c}},
		Removed{Name: "digits", Project: vision, Cached: true, Operation: op},
		OwnershipTransferred{From: alice, To: bob},
		CacheBegun{Step: Refresh, Operation: op, After: 1},
		CacheEnded{Step: Fill, Operation: op, Outcome: Succeeded, Files: 3, Bytes: 42, Problem: "x"},
	)
}

func grants(user uuid.UUID, member bool, roles ...access.Role) access.Grants {
	g := access.Grants{Tenant: acme, User: user, Active: true, Roles: roles}
	if member {
		g.Projects = map[uuid.UUID]access.Role{vision: access.Member}
	}
	return g
}

func state(events ...es.Event) State {
	s := State{}
	all := append([]es.Event{Registered{Project: vision, Owner: alice, Name: "digits", Visibility: access.Group, Content: Content{Space: space, Directory: "d", Files: 1, Bytes: 2}}}, events...)
	for _, e := range all {
		s = evolve(s, es.Envelope{Event: e, Stream: Aggregate.Stream(acme, op), Meta: es.Metadata{Time: time.Unix(1, 0)}})
	}
	return s
}

var (
	filling = CacheBegun{Step: Fill, Operation: op}
	filled  = CacheEnded{Step: Fill, Operation: op, Outcome: Succeeded, Files: 5, Bytes: 6}
	running = []Use{{Kind: "training job", Name: "night", Cached: true}}
	direct  = []Use{{Kind: "training job", Name: "day"}}
)

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"数": true, "データ": true, "a": true, "a-b_c9": true, strings.Repeat("数", 64): true,
		"": false, "_a": false, "-a": false, "a b": false, "a/b": false, strings.Repeat("数", 65): false, "a\u202eb": false,
	} {
		t.Run("W12_"+name, func(t *testing.T) {
			_, err := Register{Name: name, Visibility: access.Private}.clean()
			if (err == nil) != ok {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("GEN-05_all_faults_at_once", func(t *testing.T) {
		_, err := Register{Name: "", Description: "\x00", Visibility: "ALL"}.clean()
		if faults, _ := fault.All(err); len(faults) != 3 {
			t.Errorf("%v", err)
		}
		_, err = Update{Name: patch.Clear[string](), Directory: patch.Clear[string](), Visibility: patch.Clear[access.Visibility]()}.clean()
		if faults, _ := fault.All(err); len(faults) != 3 || faults[0].Code != fault.CodeNotClearable {
			t.Errorf("%v", err)
		}
	})
}

func TestDecisions(t *testing.T) {
	two := 2
	moved := &Content{Space: space, Directory: "e", Files: 7, Bytes: 8}
	for _, c := range []struct {
		name   string
		s      State
		decide func(State) ([]es.Event, error)
		code   fault.Code
		events int
	}{
		{"STO-08_the_owner_edits", state(), update(grants(alice, true), Update{Name: patch.To("x")}, moved), "", 1},
		{"STO-08_the_same_changes_nothing", state(), update(grants(alice, true), Update{Name: patch.To("digits")}, nil), "", 0},
		{"STO-08_a_member_does_not_edit", state(), update(grants(bob, true), Update{Name: patch.To("x")}, nil), fault.CodeForbidden, 0},
		{"TEN-01_who_does_not_see_it_learns_nothing", state(), update(grants(bob, false), Update{Name: patch.To("x")}, nil), fault.CodeNotFound, 0},
		{"GEN-04_another_version_is_refused", state(), update(grants(alice, true), Update{ExpectedVersion: &two}, nil), fault.CodeVersionConflict, 0},
		{"STO-08_not_its_directory_while_it_is_cached", state(filling), update(grants(alice, true), Update{}, moved), fault.CodeInvalidState, 0},
		{"TEN-05_given_to_another_owner", state(), transfer(alice, bob), "", 1},
		{"TEN-05_not_what_is_anothers_already", state(), transfer(bob, alice), "", 0},
		{"TEN-05_not_what_is_gone", state(Removed{}), transfer(alice, bob), "", 0},
		{"STO-08_the_owner_removes", state(), remove(grants(alice, true), nil, nil, op), "", 1},
		{"STO-08_a_tenant_admin_removes", state(), remove(grants(bob, false, access.TenantAdmin), nil, nil, op), "", 1},
		{"STO-08_an_auditor_does_not", state(), remove(grants(bob, false, access.Auditor), nil, nil, op), fault.CodeForbidden, 0},
		{"W26_not_while_it_is_used", state(), remove(grants(alice, true), nil, direct, op), fault.CodeInUse, 0},
		{"STO-08_not_while_its_cache_is_worked_on", state(filling), remove(grants(alice, true), nil, nil, op), fault.CodeInvalidState, 0},
		{"TEN-01_removed_it_is_missing", state(Removed{}), remove(grants(alice, true), nil, nil, op), fault.CodeNotFound, 0},
		{"STO-04_a_member_caches", state(), begin(grants(bob, true), Fill, nil, op), "", 1},
		{"STO-04_an_auditor_does_not", state(), begin(grants(bob, true, access.Auditor), Fill, nil, op), fault.CodeForbidden, 0},
		{"STO-04_who_does_not_see_it_learns_nothing", state(), begin(grants(bob, false), Fill, nil, op), fault.CodeNotFound, 0},
		{"STO-04_cached_already_nothing_happens", state(filling, filled), begin(grants(bob, true), Fill, nil, op), "", 0},
		{"STO-04_one_step_at_a_time", state(filling), begin(grants(bob, true), Refresh, nil, op), fault.CodeInvalidState, 0},
		{"STO-04_no_refresh_under_what_runs_on_it", state(filling, filled), begin(grants(bob, true), Refresh, running, op), fault.CodeInUse, 0},
		{"STO-04_what_uses_it_directly_does_not_hinder", state(filling, filled), begin(grants(bob, true), Refresh, direct, op), "", 1},
		{"STO-05_unpacked_in_the_cache_only", state(), begin(grants(bob, true), Unzip, nil, op), fault.CodeInvalidState, 0},
		{"STO-05_cached_it_is_unpacked", state(filling, filled), begin(grants(bob, true), Unzip, nil, op), "", 1},
		{"OPS-02_a_retry_takes_the_step_up_again", state(filling, CacheEnded{Step: Fill, Operation: op, Outcome: Failed}), resume(Fill, op, 1, nil), "", 1},
		{"OPS-02_of_another_operation_it_is_refused", state(), resume(Fill, op, 1, nil), fault.CodeInvalidState, 0},
		{"OPS-02_an_end_counts_once", state(filling, filled), end(filled), "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			events, err := c.decide(c.s)
			if c.code == "" && err != nil || c.code != "" && !fault.Is(err, c.code) || len(events) != c.events {
				t.Fatalf("%+v, %v", events, err)
			}
		})
	}
	t.Run("W26_the_refusal_names_by_whom", func(t *testing.T) {
		_, err := remove(grants(alice, true), nil, direct, op)(state())
		if err == nil || !strings.Contains(err.Error(), `training job "day"`) {
			t.Errorf("%v", err)
		}
	})
	t.Run("STO-04_what_is_not_cached_is_fetched_whole", func(t *testing.T) {
		events, err := begin(grants(bob, true), Refresh, nil, op)(state())
		if err != nil || events[0] != (CacheBegun{Step: Fill, Operation: op}) {
			t.Errorf("%v, %v", events, err)
		}
	})
}

func TestCacheStates(t *testing.T) {
	unzipping := CacheBegun{Step: Unzip, Operation: op}
	if c := state(filling).Cache; c.Ready || c.Step != Fill {
		t.Errorf("%+v", c)
	}
	if c := state(filling, filled).Cache; !c.Ready || c.Step != "" || c.Files != 5 || c.Filled.IsZero() {
		t.Errorf("STO-04 filled: %+v", c)
	}
	if c := state(filling, filled, unzipping, CacheEnded{Step: Unzip, Operation: op, Outcome: Succeeded, Files: 2, Bytes: 4}).Cache; !c.Ready || c.Files != 7 || c.Bytes != 10 {
		t.Errorf("STO-05 unpacked: %+v", c)
	}
	if c := state(filling, filled, unzipping, CacheEnded{Step: Unzip, Operation: op, Outcome: Failed, Problem: "a bomb"}).Cache; !c.Ready || c.Files != 5 || c.Problem != "a bomb" {
		t.Errorf("STO-05 refused: %+v", c)
	}
	if c := state(filling, filled, CacheBegun{Step: Refresh, Operation: op}, CacheEnded{Step: Refresh, Operation: op, Outcome: Cancelled}).Cache; c.Ready || c.Files != 0 {
		t.Errorf("OPS-02 cancelled: %+v", c)
	}
}

type world struct{}

func (world) Grants(_ context.Context, tenant, user uuid.UUID) (access.Grants, error) {
	g := grants(user, true)
	g.Tenant = tenant
	return g, nil
}
func (world) Exists(context.Context, uuid.UUID, uuid.UUID) (bool, error) { return true, nil }
func (world) Look(context.Context, uuid.UUID, uuid.UUID, uuid.UUID, string) (Content, error) {
	return Content{Space: space, Directory: "d", Files: 1, Bytes: 2}, nil
}

func (world) Using(context.Context, uuid.UUID, uuid.UUID) ([]Use, error) { return nil, nil }

func (world) Queue(context.Context, es.Command, State, Step, uuid.UUID, uuid.UUID) error { return nil }

func (world) Clear(context.Context, es.Command, uuid.UUID, uuid.UUID, uuid.UUID, uuid.UUID) error {
	return nil
}

func TestHandler(t *testing.T) {
	registry, err := es.NewRegistry(es.Types, Types)
	if err != nil {
		t.Fatal(err)
	}
	rt := &es.Runtime{
		Log: storetest.Open(t), Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{}, NameKey: []byte("k"),
		Logger: slog.New(slog.DiscardHandler), Refusals: es.NewRefusals(),
	}
	w := world{}
	h := &Handler{Runtime: rt, Access: w, Projects: w, Directories: w, Users: w, Operations: w}
	by := func(key string) es.Command {
		return es.Command{ID: rt.IDs.New(), Action: "test", Tenant: acme, Key: key, Digest: []byte(key), Actor: es.Actor{Kind: es.ActorUser, User: alice}}
	}
	in := Register{Project: vision, Name: "digits", Visibility: access.Private, Directory: "d"}
	made, err := h.Register(t.Context(), by("one"), in)
	if err != nil {
		t.Fatal(err)
	}
	id := made.Refs.DataSet
	t.Run("GEN-03_the_same_key_makes_one", func(t *testing.T) {
		again, err := h.Register(t.Context(), by("one"), in)
		if err != nil || !again.Replayed || again.Refs.DataSet != id {
			t.Errorf("%+v, %v", again, err)
		}
	})
	t.Run("STO-08_a_name_is_unique_in_the_project", func(t *testing.T) {
		if _, err := h.Register(t.Context(), by(""), in); !fault.Is(err, fault.CodeNameTaken) {
			t.Errorf("%v", err)
		}
		if _, err := h.Update(t.Context(), by(""), id, Update{Name: patch.To("numbers")}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Register(t.Context(), by(""), in); err != nil {
			t.Errorf("the name that was left: %v", err)
		}
	})
	t.Run("STO-04_a_step_keeps_its_operation_when_the_key_comes_again", func(t *testing.T) {
		first, err := h.Begin(t.Context(), by("cache"), id, Fill)
		if err != nil || first.Refs.Operation == uuid.Nil {
			t.Fatalf("%+v, %v", first, err)
		}
		again, err := h.Begin(t.Context(), by("cache"), id, Fill)
		if err != nil || again.Refs != first.Refs {
			t.Errorf("%+v, %v", again, err)
		}
		e := CacheEnded{Step: Fill, Operation: first.Refs.Operation, Outcome: Succeeded, Files: 1}
		if err := h.Ended(t.Context(), es.System(rt.IDs.New(), "test", "test", acme), id, e); err != nil {
			t.Fatal(err)
		}
		if s, err := h.Load(t.Context(), acme, id); err != nil || !s.Cache.Ready {
			t.Errorf("%+v, %v", s, err)
		}
	})
	t.Run("STO-08_removed_the_name_is_free", func(t *testing.T) {
		if _, err := h.Remove(t.Context(), by(""), id, nil); err != nil {
			t.Fatal(err)
		}
		if err := h.ReleaseName(t.Context(), es.System(rt.IDs.New(), "test", "test", acme), id, vision, "numbers"); err != nil {
			t.Fatal(err)
		}
		in.Name = "numbers"
		if _, err := h.Register(t.Context(), by(""), in); err != nil {
			t.Error(err)
		}
	})
}
