// Package signin signs people in at a real identity provider and lets them work
// with the built program.
package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"tallyard/infra/oidc/oidctest"
	"tallyard/infra/postgres/pgtest"
	"tallyard/test/program"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a program that trusts a provider.
type world struct {
	t        *testing.T
	p        *program.Program
	provider *oidctest.Provider
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	w := &world{t: t, provider: oidctest.New(t)}
	dir := pgtest.TempDir(t)
	file, secret := filepath.Join(dir, "providers.json"), filepath.Join(dir, "secret")
	text := fmt.Sprintf(`{"providers": [{"issuer": %q, "audience": %q, "clientSecretFile": %q, "name": "Example", "tenant": "acme", "roles": [
		{"group": "researchers", "role": "MEMBER", "project": "vision"}, {"group": "auditors", "role": "AUDITOR"}]}]}`, w.provider.Issuer, oidctest.Client, secret)
	if err := os.WriteFile(secret, []byte(oidctest.Secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.p = program.Run(t, program.Build(t), "dev", "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"), "--oidc-config", file)
	w.provider.Allow(w.p.Base + "/signin/back")
	return w
}

// me is the answer to who one is.
type me struct {
	ID, Login, Name, Email string
	Tenant                 string
	Projects               []string
	Auditor                bool
}

func (w *world) me(token string) (me, error) {
	w.t.Helper()
	var data struct {
		Me struct {
			User         struct{ ID, LoginName, DisplayName, Email string }
			Tenant       struct{ Name string }
			Projects     []struct{ Name string }
			CanReadAudit bool
		}
	}
	err := w.p.Client(token).Do(w.t.Context(), `{me {user {id loginName displayName email} tenant {name} projects {name} canReadAudit}}`, nil, &data)
	who := me{
		ID: data.Me.User.ID, Login: data.Me.User.LoginName, Name: data.Me.User.DisplayName, Email: data.Me.User.Email,
		Tenant: data.Me.Tenant.Name, Auditor: data.Me.CanReadAudit,
	}
	for _, p := range data.Me.Projects {
		who.Projects = append(who.Projects, p.Name)
	}
	return who, err
}

func (w *world) unauthenticated(token string) {
	w.t.Helper()
	who, err := w.me(token)
	var problems program.Problems
	if !errors.As(err, &problems) || problems[0].Extensions.Code != "UNAUTHENTICATED" {
		w.t.Errorf("%+v, %v", who, err)
	}
}

func TestSignIn(t *testing.T) {
	w := newWorld(t)
	w.provider.Put(oidctest.Person{Login: "erin", Name: "Erin Outside", Email: "erin@example.com", Groups: []string{"researchers"}})
	w.provider.Put(oidctest.Person{Login: "stranger", Groups: []string{"chess"}})
	var erin me
	t.Run("TEN-06_the_first_request_of_somebody_new_is_answered", func(t *testing.T) {
		var err error
		erin, err = w.me(w.provider.SignIn(t, oidctest.Client, "erin").Access)
		if err != nil || erin.Login != "erin" || erin.Name != "Erin Outside" || erin.Email != "erin@example.com" || erin.Tenant != "acme" ||
			!slices.Equal(erin.Projects, []string{"vision"}) || erin.Auditor {
			t.Fatalf("%+v, %v", erin, err)
		}
	})
	t.Run("TEN-06_ID_tokens_do_too_and_others_do_not", func(t *testing.T) {
		if who, err := w.me(w.provider.SignIn(t, oidctest.Client, "erin").ID); err != nil || who.ID != erin.ID {
			t.Errorf("%+v, %v", who, err)
		}
		w.unauthenticated(w.provider.SignIn(t, oidctest.Other, "erin").ID)
		w.unauthenticated(w.provider.SignIn(t, oidctest.Client, "stranger").Access)
		over := w.provider.Claims(oidctest.Subject("erin"), time.Now().Add(-2*time.Hour))
		w.unauthenticated(w.provider.Sign(t, over))
	})
	t.Run("TEN-02_groups_that_change_change_the_roles_at_the_next_sign_in", func(t *testing.T) {
		time.Sleep(1100 * time.Millisecond) // tokens tell whole seconds
		w.provider.Put(oidctest.Person{Login: "erin", Name: "Erin Outside", Groups: []string{"auditors"}})
		if who, err := w.me(w.provider.SignIn(t, oidctest.Client, "erin").Access); err != nil || len(who.Projects) != 0 || !who.Auditor {
			t.Errorf("%+v, %v", who, err)
		}
	})
	t.Run("AUD-01_the_audit_tells_who_gave_the_roles", func(t *testing.T) {
		var data struct {
			AuditEntries struct {
				Nodes []struct{ Action, Reason string }
			}
		}
		err := w.p.Client("dev-audra").Do(t.Context(), `query($f: AuditFilter) {auditEntries(first: 50, filter: $f) {nodes {action reason}}}`,
			map[string]any{"f": map[string]any{"subjectId": erin.ID}}, &data)
		if err != nil {
			t.Fatal(err)
		}
		actions := map[string]bool{}
		for _, e := range data.AuditEntries.Nodes {
			if !strings.Contains(e.Reason, w.provider.Issuer) {
				t.Errorf("%+v", e)
			}
			actions[e.Action] = true
		}
		if !actions["createUser"] || !actions["followGroups"] {
			t.Errorf("%+v", data)
		}
	})
	t.Run("TEN-06_a_provider_that_is_down_is_said_to_be", func(t *testing.T) {
		w.provider.Rotate()
		token := w.provider.SignIn(t, oidctest.Client, "erin").Access
		w.provider.Gone(true)
		_, err := w.me(token)
		var problems program.Problems
		if !errors.As(err, &problems) || problems[0].Extensions.Code != "UNAVAILABLE" {
			t.Errorf("%v", err)
		}
		w.provider.Gone(false)
		if _, err := w.me("dev-alice"); err != nil {
			t.Error(err)
		}
		end := time.Now().Add(10 * time.Second)
		for _, err := w.me(token); err != nil; _, err = w.me(token) {
			if time.Now().After(end) {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	t.Run("TEN-07_a_subscription_ends_with_its_token", func(t *testing.T) {
		claims := w.provider.Claims(oidctest.Subject("erin"), time.Now())
		claims["exp"] = time.Now().Add(-27 * time.Second).Unix() // with the skew of 30 s it has three left
		claims["groups"] = []string{"auditors"}
		code := w.watch(w.provider.Sign(t, claims))
		if code != 4403 {
			t.Errorf("closed with %d", code)
		}
	})
	t.Run("TEN-07_who_is_suspended_is_out_at_the_next_request", func(t *testing.T) {
		token := w.provider.SignIn(t, oidctest.Client, "erin").Access
		if _, err := w.me(token); err != nil {
			t.Fatal(err)
		}
		var data struct {
			SuspendUser struct{ UserErrors program.Problems }
		}
		err := w.p.Client("dev-admin").Do(t.Context(), `mutation($i: SuspendUserInput!) {suspendUser(input: $i) {userErrors {code message}}}`,
			map[string]any{"i": map[string]any{"userId": erin.ID, "reason": "test", "idempotencyKey": uuid.NewString()}}, &data)
		if err != nil || len(data.SuspendUser.UserErrors) > 0 {
			t.Fatal(err, data)
		}
		w.unauthenticated(token)
	})
	if out := w.p.Output(); strings.Contains(out, "erin@") || strings.Contains(out, "Erin") || strings.Contains(out, oidctest.Subject("erin")) || strings.Contains(out, "eyJ") {
		t.Errorf("the log tells personal data or tokens:\n%s", out)
	}
}

// watch opens a subscription and waits until the program closes it.
func (w *world) watch(token string) websocket.StatusCode {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, strings.Replace(w.p.Base, "http", "ws", 1)+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		w.t.Fatal(err)
	}
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // empty after an upgrade
	}
	defer conn.CloseNow() //nolint:errcheck // the server closes it
	for _, m := range []any{
		map[string]any{"type": "connection_init", "payload": map[string]any{"Authorization": "Bearer " + token}},
		map[string]any{"id": "1", "type": "subscribe", "payload": map[string]any{"query": `subscription {auditTail(filter: {}) {cursor}}`}},
	} {
		b, err := json.Marshal(m)
		if err != nil {
			w.t.Fatal(err)
		}
		if err := conn.Write(ctx, websocket.MessageText, b); err != nil {
			w.t.Fatal(err)
		}
	}
	acknowledged := false
	for {
		_, b, err := conn.Read(ctx)
		if err != nil {
			if !acknowledged {
				w.t.Errorf("it was never let in: %v", err)
			}
			return websocket.CloseStatus(err)
		}
		acknowledged = acknowledged || strings.Contains(string(b), "connection_ack")
	}
}
