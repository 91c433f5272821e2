package image

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/internal/golden"
	"tallyard/domain/workload"
	"tallyard/infra/eventstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	acme   = uuid.MustParse("0198a000-0000-7000-8000-000000000001")
	vision = uuid.MustParse("0198a000-0000-7000-8000-000000000002")
	alice  = uuid.MustParse("0198a000-0000-7000-8000-00000000000a")
	bob    = uuid.MustParse("0198a000-0000-7000-8000-00000000000b")
)

var private = Settings{
	Kind: Private, Name: "训练/v1|a.b-c", Framework: workload.PyTorch, FrameworkVersion: "2.6", Reference: "registry.example/x:1",
	Scenario: Training, Accelerators: []string{"A100", "H200"}, Scope: access.Group, Description: "ours",
}

func TestGolden(t *testing.T) {
	golden.Check(t, Types, Registered{Project: vision, Owner: alice, Settings: private}, Removed{Name: "x"}, OwnershipTransferred{From: alice, To: bob})
}

func TestRegister(t *testing.T) {
	with := func(change func(*Register)) Register {
		in := Register{Project: vision, Settings: private}
		change(&in)
		return in
	}
	for name, c := range map[string]struct {
		in    Register
		codes []fault.Code
	}{
		"STO-06_a_private_one":                    {with(func(*Register) {}), nil},
		"STO-06_a_name_of_32_chinese_characters":  {with(func(r *Register) { r.Name = strings.Repeat("训", 32) }), nil},
		"STO-06_a_name_of_33":                     {with(func(r *Register) { r.Name = strings.Repeat("训", 33) }), []fault.Code{fault.CodeTooLong}},
		"STO-06_no_name":                          {with(func(r *Register) { r.Name = "" }), []fault.Code{fault.CodeRequired}},
		"STO-06_an_underscore":                    {with(func(r *Register) { r.Name = "a_b" }), []fault.Code{fault.CodeInvalidCharacters}},
		"STO-06_a_letter_of_another_script":       {with(func(r *Register) { r.Name = "データ" }), []fault.Code{fault.CodeInvalidCharacters}},
		"STO-06_a_private_one_names_its_scenario": {with(func(r *Register) { r.Scenario = "" }), []fault.Code{fault.CodeRequired}},
		"STO-06_no_such_scenario":                 {with(func(r *Register) { r.Scenario = "PLAY" }), []fault.Code{fault.CodeInvalidValue}},
		"STO-06_a_type_twice":                     {with(func(r *Register) { r.Accelerators = []string{"a", "a"} }), []fault.Code{fault.CodeDuplicate}},
		"STO-06_too_many_types":                   {with(func(r *Register) { r.Accelerators = make([]string, 21) }), []fault.Code{fault.CodeTooMany}},
		"STO-06_of_the_project_without_one":       {with(func(r *Register) { r.Project = uuid.Nil }), []fault.Code{fault.CodeRequired}},
		"STO-06_external_without_framework": {with(func(r *Register) {
			r.Settings = Settings{Kind: External, Name: "x", Reference: "x", Scope: access.Private}
		}), nil},
		"STO-06_a_preset_names_its_version": {with(func(r *Register) { r.Kind, r.FrameworkVersion, r.Scope = Preset, "", access.Global }), []fault.Code{fault.CodeRequired}},
		"STO-06_a_preset_is_for_everybody":  {with(func(r *Register) { r.Kind = Preset }), []fault.Code{fault.CodeInvalidValue}},
		"GEN-05_all_faults_at_once": {
			Register{Settings: Settings{Kind: "X", Framework: "Y", Scope: "Z", Description: "\x00"}},
			[]fault.Code{fault.CodeRequired, fault.CodeInvalidValue, fault.CodeRequired, fault.CodeInvalidCharacters, fault.CodeInvalidValue, fault.CodeInvalidValue},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := c.in.clean()
			faults, _ := fault.All(err)
			if len(faults) != len(c.codes) {
				t.Fatalf("%v, want %v", err, c.codes)
			}
			for i, f := range faults {
				if f.Code != c.codes[i] {
					t.Errorf("%d: %v, want %s", i, f, c.codes[i])
				}
			}
			if err == nil && in.Framework == "" {
				t.Error("no framework")
			}
		})
	}
}

func grants(user uuid.UUID, member bool, roles ...access.Role) access.Grants {
	g := access.Grants{Tenant: acme, User: user, Active: true, Roles: roles}
	if member {
		g.Projects = map[uuid.UUID]access.Role{vision: access.Member}
	}
	return g
}

func TestWhoMay(t *testing.T) {
	in := Register{Project: vision, Settings: private}
	preset := Register{Settings: Settings{Kind: Preset}}
	s := State{Tenant: acme, Project: vision, Owner: alice, Settings: private, Version: 1}
	two := 2
	for name, c := range map[string]struct {
		err  error
		code fault.Code
	}{
		"STO-06_a_member_registers":              {mayRegister(grants(alice, true), in), ""},
		"STO-06_not_in_anothers_project":         {mayRegister(grants(alice, false), in), fault.CodeNotFound},
		"STO-06_presets_are_tenant_admins":       {mayRegister(grants(alice, true), preset), fault.CodeForbidden},
		"STO-06_a_tenant_admin_offers_a_preset":  {mayRegister(grants(bob, false, access.TenantAdmin), preset), ""},
		"TEN-02_an_auditor_registers_nothing":    {mayRegister(grants(bob, false, access.Auditor), Register{}), fault.CodeForbidden},
		"TEN-07_who_is_suspended_is_nobody":      {mayRegister(access.Grants{}, Register{}), fault.CodeNotFound},
		"STO-06_the_owner_deletes":               {second(remove(grants(alice, true), nil, nil)(s)), ""},
		"STO-06_a_member_does_not":               {second(remove(grants(bob, true), nil, nil)(s)), fault.CodeForbidden},
		"TEN-01_who_does_not_see_it_learns_none": {second(remove(grants(bob, false), nil, nil)(s)), fault.CodeNotFound},
		"GEN-04_another_version_is_refused":      {second(remove(grants(alice, true), &two, nil)(s)), fault.CodeVersionConflict},
		"W26_not_while_it_is_used":               {second(remove(grants(alice, true), nil, []Use{{Kind: "training job", Name: "night"}})(s)), fault.CodeInUse},
	} {
		t.Run(name, func(t *testing.T) {
			if c.code == "" && c.err != nil || c.code != "" && !fault.Is(c.err, c.code) {
				t.Errorf("%v, want %q", c.err, c.code)
			}
			if c.code == fault.CodeInUse && !strings.Contains(c.err.Error(), `training job "night"`) {
				t.Errorf("it does not say by whom: %v", c.err)
			}
		})
	}
}

func second(_ []es.Event, err error) error { return err }

type world struct{}

func (world) Grants(_ context.Context, tenant, user uuid.UUID) (access.Grants, error) {
	g := grants(user, true)
	g.Tenant = tenant
	return g, nil
}
func (world) Exists(context.Context, uuid.UUID, uuid.UUID) (bool, error) { return true, nil }
func (world) Using(context.Context, uuid.UUID, State) ([]Use, error)     { return nil, nil }

func TestHandler(t *testing.T) {
	registry, err := es.NewRegistry(es.Types, Types)
	if err != nil {
		t.Fatal(err)
	}
	rt := &es.Runtime{
		Log: storetest.Open(t), Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{}, NameKey: []byte("k"),
		Logger: slog.New(slog.DiscardHandler), Refusals: es.NewRefusals(),
	}
	h := &Handler{Runtime: rt, Access: world{}, Projects: world{}, Users: world{}}
	by := func(tenant uuid.UUID) es.Command {
		return es.Command{ID: rt.IDs.New(), Action: "test", Tenant: tenant, Actor: es.Actor{Kind: es.ActorUser, User: alice}}
	}
	in := Register{Project: vision, Settings: private}
	made, err := h.Register(t.Context(), by(acme), in)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("STO-06_a_name_is_unique_in_the_tenant", func(t *testing.T) {
		if _, err := h.Register(t.Context(), by(acme), in); !fault.Is(err, fault.CodeNameTaken) {
			t.Errorf("%v", err)
		}
		if _, err := h.Register(t.Context(), by(vision), in); err != nil {
			t.Errorf("TEN-01: %v", err)
		}
	})
	t.Run("STO-06_deleted_the_name_is_free", func(t *testing.T) {
		if _, err := h.Remove(t.Context(), by(acme), made.Refs.Image, nil); err != nil {
			t.Fatal(err)
		}
		if s, err := h.Load(t.Context(), acme, made.Refs.Image); err != nil || s.Exists() {
			t.Errorf("%+v, %v", s, err)
		}
		if _, err := h.Register(t.Context(), by(acme), in); err != nil {
			t.Error(err)
		}
	})
}
