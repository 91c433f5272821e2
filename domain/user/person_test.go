package user

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

func TestPerson(t *testing.T) {
	w := newWorld(t)
	alice := w.user("Alice", access.Member)
	person := w.state(alice).Person

	t.Run("AUD-06_personal_data_stands_sealed_in_the_persons_stream_only", func(t *testing.T) {
		sealed := 0
		for rec, err := range w.Runtime.Log.ReadAll(t.Context(), es.StartPosition, es.Forward, es.Everything) {
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"alice", "Example", "acme.example"} {
				if bytes.Contains(bytes.ToLower(append(rec.Data, rec.Metadata...)), bytes.ToLower([]byte(secret))) || strings.Contains(rec.Stream, secret) {
					t.Errorf("%s in %s shows %q", rec.Type, rec.Stream, secret)
				}
			}
			if strings.HasPrefix(rec.Stream, PersonCategory+"-") {
				sealed++
			}
		}
		if sealed != 2 {
			t.Fatalf("%d sealed events, want one per person", sealed)
		}
	})
	t.Run("TEN-06_the_login_name_is_unique_without_case", func(t *testing.T) {
		_, err := w.Create(t.Context(), w.by(w.admin, "createUser"), Person{LoginName: "aLICE", DisplayName: "Another"})
		faults, _ := fault.All(err)
		if len(faults) != 1 || faults[0].Code != fault.CodeNameTaken || faults[0].Field[0] != "loginName" {
			t.Fatalf("got %v", err)
		}
		id, ok, err := w.Find(t.Context(), w.tenant, "ALICE")
		if err != nil || !ok || id != alice {
			t.Fatalf("got %v %v %v", id, ok, err)
		}
	})
	t.Run("TEN-06_who_is_refused_for_one_name_leaves_the_other_free", func(t *testing.T) {
		outside := Outside{Issuer: "https://id.example", Subject: "7"}
		if _, err := w.Create(t.Context(), w.system("createUser"), Person{LoginName: "first", DisplayName: "First", Outside: outside}); err != nil {
			t.Fatal(err)
		}
		_, err := w.Create(t.Context(), w.system("createUser"), Person{LoginName: "second", DisplayName: "Second", Outside: outside})
		if !fault.Is(err, fault.CodeNameTaken) {
			t.Fatalf("got %v", err)
		}
		if _, err := w.Create(t.Context(), w.system("createUser"), Person{LoginName: "second", DisplayName: "Somebody else"}); err != nil {
			t.Errorf("the login name stays taken: %v", err)
		}
		if id, ok, err := w.FindOutside(t.Context(), w.tenant, outside); err != nil || !ok || id == uuid.Nil {
			t.Errorf("the first one is known as %v, %v", id, err)
		}
	})
	t.Run("TEN-01_another_tenant_has_its_own_names", func(t *testing.T) {
		cmd := w.system("createUser")
		cmd.Tenant = uuid.New()
		if _, err := w.Create(t.Context(), cmd, Person{LoginName: "alice", DisplayName: "Another"}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("TEN-02_who_creates_users", func(t *testing.T) {
		auditor := w.user("audra", access.TenantAdmin, access.Auditor)
		for _, by := range []uuid.UUID{alice, auditor} {
			if _, err := w.Create(t.Context(), w.by(by, "createUser"), Person{LoginName: "new", DisplayName: "New"}); !fault.Is(err, fault.CodeForbidden) {
				t.Fatalf("got %v", err)
			}
		}
	})
	t.Run("AUD-06_erased_is_gone_for_good", func(t *testing.T) {
		var described es.Envelope
		for env, err := range es.Events(t.Context(), w.Runtime, persons.Stream(w.tenant, person), 0) {
			if err != nil {
				t.Fatal(err)
			}
			described = env
		}
		p, err := Describe(t.Context(), w.keys, described)
		if err != nil || p != (Person{LoginName: "alice", DisplayName: "Alice Example", Email: "Alice@acme.example"}) {
			t.Fatalf("got %+v, %v", p, err)
		}
		for range 2 { // asked for again it does nothing more
			if _, err := w.ErasePersonalData(t.Context(), w.by(w.admin, "erasePersonalData"), alice); err != nil {
				t.Fatal(err)
			}
		}
		p, err = Describe(t.Context(), w.keys, described)
		if err != nil || !p.Erased || p.DisplayName != ErasedName || p.LoginName+p.Email != "" {
			t.Fatalf("got %+v, %v", p, err)
		}
		for _, err := range w.Runtime.Log.ReadStream(t.Context(), persons.Stream(w.tenant, person).String(), 0, es.Forward, 1) {
			if !errors.Is(err, es.ErrStreamNotFound) {
				t.Fatalf("the person's stream is there: %v", err)
			}
		}
		if s := w.state(alice); s.Status != Erased || w.rights(alice).Active {
			t.Fatalf("got %+v", s)
		}
		if _, ok, _ := w.Find(t.Context(), w.tenant, "alice"); ok {
			t.Fatal("the login name is still held")
		}
		if _, err := w.Reinstate(t.Context(), w.by(w.admin, "reinstateUser"), alice); !fault.Is(err, fault.CodeInvalidState) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("AUD-06_only_tenant_admins_erase", func(t *testing.T) {
		bob := w.user("bob", access.Member)
		if _, err := w.ErasePersonalData(t.Context(), w.by(bob, "erasePersonalData"), w.admin); !fault.Is(err, fault.CodeForbidden) {
			t.Fatalf("got %v", err)
		}
	})
}

func TestPersonRules(t *testing.T) {
	for _, c := range []struct {
		name, field string
		p           Person
		code        fault.Code
	}{
		{"GEN-01_any_script", "", Person{LoginName: "李雷", DisplayName: "李雷", Email: "li@例子.example"}, ""},
		{"GEN-01_login_name_required", "loginName", Person{DisplayName: "x"}, fault.CodeRequired},
		{"GEN-01_login_name_of_65_characters", "loginName", Person{LoginName: strings.Repeat("é", 65), DisplayName: "x"}, fault.CodeTooLong},
		{"GEN-01_login_name_with_blank", "loginName", Person{LoginName: "a b", DisplayName: "x"}, fault.CodeInvalidCharacters},
		{"GEN-01_display_name_required", "displayName", Person{LoginName: "a"}, fault.CodeRequired},
		{"GEN-01_NUL_in_display_name", "displayName", Person{LoginName: "a", DisplayName: "x\x00"}, fault.CodeInvalidCharacters},
		{"GEN-05_not_an_address", "email", Person{LoginName: "a", DisplayName: "x", Email: "nobody"}, fault.CodeInvalidValue},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.p.clean()
			if c.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			faults, _ := fault.All(err)
			if len(faults) != 1 || faults[0].Code != c.code || faults[0].Field[0] != c.field {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestSeal(t *testing.T) {
	key, other := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	stream, elsewhere := persons.Stream(uuid.New(), uuid.New()), persons.Stream(uuid.New(), uuid.New())
	d, err := seal(key, stream, anybody, Person{LoginName: "alice"}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := open(key, stream, d); err != nil || p.LoginName != "alice" {
		t.Fatalf("got %+v, %v", p, err)
	}
	for name, try := range map[string]func() (Person, error){
		"AUD-06_with_another_key":  func() (Person, error) { return open(other, stream, d) },
		"AUD-06_in_another_stream": func() (Person, error) { return open(key, elsewhere, d) },
		"AUD-06_changed": func() (Person, error) {
			d := d
			d.Sealed = append(bytes.Clone(d.Sealed), 0)
			return open(key, stream, d)
		},
		"AUD-06_cut_short":           func() (Person, error) { return open(key, stream, Described{Sealed: d.Sealed[:5]}) },
		"AUD-06_with_half_a_key":     func() (Person, error) { return open(key[:15], stream, d) },
		"AUD-06_an_event_of_another": func() (Person, error) { return Describe(t.Context(), nil, es.Envelope{Event: Suspended{}}) },
	} {
		if p, err := try(); err == nil || p != (Person{}) {
			t.Errorf("%s: got %+v, %v", name, p, err)
		}
	}
	t.Run("AUD-06_keys_that_can_not_be_read_are_not_erased", func(t *testing.T) {
		env := es.Envelope{Stream: stream, Event: d}
		if _, err := Describe(t.Context(), brokenKeys{}, env); err == nil || errors.Is(err, ErrErased) {
			t.Fatalf("got %v", err)
		}
	})
}

type brokenKeys struct{ PersonKeys }

func (brokenKeys) Get(context.Context, uuid.UUID, uuid.UUID) ([]byte, error) {
	return nil, errors.New("the table is away")
}
