package onboarding_test

import (
	"crypto/rand"
	"log/slog"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/flows/onboarding"
	"tallyard/domain/tenant"
	"tallyard/domain/user"
	"tallyard/infra/eventstore/storetest"
	"tallyard/infra/keys"
	"tallyard/infra/postgres"
	"tallyard/infra/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestCreateTenant(t *testing.T) {
	registry, err := es.NewRegistry(es.Types, tenant.Types, user.Types)
	if err != nil {
		t.Fatal(err)
	}
	master, err := keys.LoadOrCreate(t.TempDir() + "/master.key")
	if err != nil {
		t.Fatal(err)
	}
	persons, err := keys.NewPersons(master, postgres.NewPersonKeys(pgtest.New(t)), es.SystemClock{})
	if err != nil {
		t.Fatal(err)
	}
	rt := &es.Runtime{
		Log: storetest.Open(t), Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{},
		NameKey: []byte("names"), Logger: slog.New(slog.DiscardHandler), Refusals: es.NewRefusals(),
	}
	users := &user.Handler{Runtime: rt, Keys: persons, Random: rand.Reader}
	flow := &onboarding.Flow{Runtime: rt, Users: users, Tenants: &tenant.Handler{Runtime: rt, Access: users}}
	system := func(action string, in uuid.UUID) es.Command {
		cmd := es.System(uuid.New(), "test", action, in)
		cmd.Reason = "test"
		return cmd
	}
	home := uuid.New()
	made, err := users.Create(t.Context(), system("createUser", home), user.Person{LoginName: "oscar", DisplayName: "Oscar"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := users.GrantRole(t.Context(), system("grantRole", home), made.Refs.User, user.Grant{Role: access.Operator}); err != nil {
		t.Fatal(err)
	}
	ask := func(key, name string, admin user.Person) (es.Result[tenant.Refs], error) {
		cmd := es.Command{
			ID: uuid.New(), Action: "createTenant", Tenant: home, Key: key, Digest: []byte(name),
			Actor: es.Actor{Kind: es.ActorUser, User: made.Refs.User},
		}
		return flow.CreateTenant(t.Context(), cmd, name, admin)
	}
	first := user.Person{LoginName: "boss", DisplayName: "Boss"}
	initech, err := ask("key", "initech", first)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("TEN-11_a_tenant_comes_with_an_admin", func(t *testing.T) {
		id, ok, err := users.Find(t.Context(), initech.Refs.Tenant, "boss")
		if err != nil || !ok {
			t.Fatalf("%v %v", ok, err)
		}
		g, err := users.Grants(t.Context(), initech.Refs.Tenant, id)
		if err != nil || !g.Admin() || initech.Position == es.StartPosition {
			t.Fatalf("%+v %v", g, err)
		}
	})
	t.Run("GEN-03_the_same_key_makes_nothing_twice", func(t *testing.T) {
		again, err := ask("key", "initech", first)
		if err != nil || again.Refs != initech.Refs || !again.Replayed {
			t.Fatalf("%+v %v", again, err)
		}
	})
	t.Run("GEN-05_all_that_is_wrong_before_anything_is_made", func(t *testing.T) {
		_, err := ask("other", "a b", user.Person{LoginName: "", DisplayName: "Boss"})
		faults, _ := fault.All(err)
		if len(faults) != 2 || faults[0].Field[0] != "name" || len(faults[1].Field) != 2 || faults[1].Field[0] != "admin" || faults[1].Field[1] != "loginName" {
			t.Fatalf("%v", err)
		}
		if _, err := ask("third", "umbrella", user.Person{LoginName: "a b", DisplayName: "Boss"}); !fault.Is(err, fault.CodeInvalidCharacters) {
			t.Fatalf("%v", err)
		}
		if _, taken, err := flow.Tenants.Find(t.Context(), "umbrella"); taken || err != nil {
			t.Fatalf("%v %v", taken, err)
		}
	})
	t.Run("TEN-11_a_name_is_taken_once", func(t *testing.T) {
		if _, err := ask("fourth", "initech", first); !fault.Is(err, fault.CodeNameTaken) {
			t.Fatalf("%v", err)
		}
	})
}
