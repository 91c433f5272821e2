package blackbox_test

import (
	"os/exec"
	"slices"
	"testing"
)

// TestPlatformAudit: what belongs to no tenant is the operators', and a tenant's
// own entries are for who sees the tenant (AUD-02).
func TestPlatformAudit(t *testing.T) {
	tenants := as(t, "oscar").ask(`{ tenants { nodes { id name } } }`, nil)
	ids := map[string]string{}
	for _, n := range tenants.list("tenants.nodes") {
		ids[n.str("name")] = n.str("id")
	}
	ask := func(c client, f vars) reply {
		return c.send(`query($f: AuditFilter) { auditEntries(filter: $f, first: 100) { totalCount nodes { id action position address userAgent subject { kind id } } } }`, vars{"f": f})
	}
	t.Run("AUD-02_operators_read_the_platforms", func(t *testing.T) {
		oscar := as(t, "oscar")
		got := ask(oscar, vars{"platform": true})
		made := 0
		for _, n := range got.list("auditEntries.nodes") {
			if n.str("action") == "createTenant" {
				made++
			}
			if n.str("subject.kind") == "user" || n.str("subject.kind") == "algorithm" {
				t.Errorf("of a tenant: %s", n)
			}
		}
		if made < 2 {
			t.Fatalf("%s", got.body)
		}
		id := got.str("auditEntries.nodes.0.id")
		one := `query($id: ID!) { auditEntry(id: $id) { id } node(id: $id) { id } }`
		if line := oscar.ask(one, vars{"id": id}); line.str("auditEntry.id") != id || line.str("node.id") != id {
			t.Errorf("%s", line)
		}
		for _, n := range got.list("auditEntries.nodes") {
			line := as(t, "audra").ask(one, vars{"id": n.str("id")})
			if own := n.str("subject.id") == ids["acme"]; own != (line.at("auditEntry").v != nil) {
				t.Errorf("an auditor of acme reads %s of %s", line, n)
			}
		}
	})
	t.Run("AUD-02_operators_are_told_at_once", func(t *testing.T) {
		live := as(t, "oscar").subscribe(`subscription { auditTail(filter: {platform: true}) { kind auditEntry { action subject { id } } } }`, nil)
		live.next() // the snapshot: what is made from here on is told
		name := unique("zz")
		//nolint:gosec // G204: the program is the one built here
		out, err := exec.CommandContext(t.Context(), binary, "bootstrap", "--data-dir", shared.dir, "--tenant", name, "--login", "boss", "--name", "Boss").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		// Of all that makes a tenant the first thing is the platform's, the rest the tenant's.
		item := live.next()
		if item.str("kind") != "CREATED" || item.str("auditEntry.action") != "createTenant" {
			t.Errorf("%s", item)
		}
		got := as(t, "oscar").ask(`query($id: ID!) { tenant(id: $id) { name } }`, vars{"id": item.str("auditEntry.subject.id")})
		if got.str("tenant.name") != name {
			t.Errorf("%s", got)
		}
	})
	t.Run("AUD-02_nobody_else_reads_them", func(t *testing.T) {
		for _, login := range []string{"alice", "admin", "audra", "mallory"} {
			c := as(t, login)
			if r := ask(c, vars{"platform": true}); r.code() != "FORBIDDEN" {
				t.Errorf("%s: %s", login, r.body)
			}
			if me := c.ask(`{ me { canReadPlatformAudit } }`, nil); me.str("me.canReadPlatformAudit") != "false" {
				t.Errorf("%s: %s", login, me)
			}
			if end := c.subscribe(`subscription { auditTail(filter: {platform: true}) { kind } }`, nil).end(patience); end.errors.str("0.extensions.code") != "FORBIDDEN" {
				t.Errorf("%s: %+v", login, end)
			}
		}
		if me := as(t, "oscar").ask(`{ me { canReadPlatformAudit canReadAudit } }`, nil); me.str("me.canReadPlatformAudit") != "true" || me.str("me.canReadAudit") != "false" {
			t.Errorf("%s", me)
		}
	})
	t.Run("AUD-02_a_tenants_own_for_who_sees_it", func(t *testing.T) {
		for login, c := range map[string]struct {
			tenant string
			code   string
			sees   bool
		}{
			"alice": {"acme", "", true}, "audra": {"acme", "", true}, "mallory": {"globex", "", true}, "oscar": {"globex", "", true},
			"bob": {"globex", "NOT_FOUND", false}, "admin": {"globex", "", false}, // whole audit of acme, which has nothing of globex
		} {
			r := ask(as(t, login), vars{"subjectId": ids[c.tenant], "actions": []string{"createTenant"}})
			if r.code() != c.code || (len(r.list("auditEntries.nodes")) == 1) != c.sees {
				t.Errorf("%s: %s", login, r.body)
			}
			if c.sees && (r.str("auditEntries.nodes.0.position") == "" || r.str("auditEntries.nodes.0.address") != "") {
				t.Errorf("%s: %s", login, r.body)
			}
		}
	})
	t.Run("AUD-02_of_a_person_others_read_where_they_stand", func(t *testing.T) {
		w := newWorld(t)
		w.admin.settled()
		actions := func(c client) []string {
			return ask(c, vars{"subjectId": w.ownerID}).strs("auditEntries.nodes", "action")
		}
		if got := actions(w.peer); !slices.Equal(got, []string{"createUser"}) {
			t.Errorf("a peer reads %v", got)
		}
		if got := actions(w.owner); !slices.Equal(got, []string{"grantRole", "createUser"}) {
			t.Errorf("they themselves read %v", got)
		}
		lines := ask(w.admin, vars{"subjectId": w.ownerID, "actions": []string{"grantRole"}})
		one := w.peer.ask(`query($id: ID!) { auditEntry(id: $id) { id } }`, vars{"id": lines.str("auditEntries.nodes.0.id")})
		if lines.str("auditEntries.totalCount") != "1" || one.at("auditEntry").v != nil {
			t.Errorf("a peer reads %s of %s", one, lines.body)
		}
	})
	t.Run("AUD-02_refusals_are_on_record_in_the_project", func(t *testing.T) {
		w := newWorld(t)
		_, version := w.create(w.command(unique("proj")))
		w.publish(version, "GROUP")
		w.peer.refuse("updateAlgorithmVersion", vars{"id": version, "description": "mine"}, "FORBIDDEN")
		w.outside.refuse("updateAlgorithmVersion", vars{"id": version, "description": "mine"}, "NOT_FOUND")
		w.admin.settled()
		f := vars{"projectId": w.project, "outcomes": []string{"REFUSED"}}
		if r := ask(w.admin, f); r.str("auditEntries.totalCount") != "2" {
			t.Errorf("%s", r.body)
		}
		// Which things are in a project is not for who does not see the project.
		if r := ask(w.outside, with(f, vars{"actorId": w.outsideID})); r.code() != "NOT_FOUND" {
			t.Errorf("%s", r.body)
		}
		if r := ask(w.peer, with(f, vars{"actorId": w.peerID})); r.str("auditEntries.totalCount") != "1" {
			t.Errorf("%s", r.body)
		}
	})
}
