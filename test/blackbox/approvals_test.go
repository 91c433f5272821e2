package blackbox_test

import (
	"slices"
	"sync"
	"testing"
	"time"
)

const seeApproval = `query($id: ID!) { approval(id: $id) { id state action subjectKind reason answer viewerCanDecide viewerCanWithdraw requester { id } decidedBy { id }
	subject { id } project { id } requestedAt expiresAt endedAt history(first: 100) { nodes { event reason } } } }`

// asked makes a version of somebody and gives it with the request that its
// publication to the tenant waits for.
func (w *world) asked(who client) (version, approval string) {
	w.t.Helper()
	return w.askedFor(who, w.command(unique("ask")))
}

func (w *world) askedFor(who client, in vars) (version, approval string) {
	w.t.Helper()
	w.admin.do("updateSettings", vars{"id": w.project, "globalAlgorithmApprovalRequired": true, "reason": "test"})
	version = who.do("createAlgorithm", in).str("algorithmVersion.id")
	return version, w.askAgain(who, version)
}

// askAgain publishes a version to the tenant and waits for the request.
func (w *world) askAgain(who client, version string) string {
	w.t.Helper()
	got := who.do("publishAlgorithmVersion", vars{"id": version, "visibility": "GLOBAL", "reason": "all need it"})
	if got.str("algorithmVersion.state") != "APPROVAL_PENDING" {
		w.t.Fatalf("%s", got)
	}
	for deadline := time.Now().Add(patience); ; {
		a := who.ask(`query($id: ID!) { algorithmVersion(id: $id) { approval { id state } } }`, vars{"id": version}).at("algorithmVersion.approval")
		if a.v != nil && a.str("state") == "PENDING" {
			return a.str("id")
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("no request was made: %s", a)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestApprovals asks, decides, withdraws, and looks at what becomes of it.
func TestApprovals(t *testing.T) {
	w := newWorld(t)
	lead, _ := w.person("lead", "PROJECT_ADMIN")
	auditor, _ := w.person("audit", "AUDITOR")
	other, otherID := w.person("second", "TENANT_ADMIN")
	see := func(c client, id string) value { return c.ask(seeApproval, vars{"id": id}).at("approval") }
	state := func(version string) value {
		return w.owner.ask(`query($id: ID!) { algorithmVersion(id: $id) { state problem visibility } }`, vars{"id": version}).at("algorithmVersion")
	}
	t.Run("ALG-05_publishing_to_the_tenant_waits", func(t *testing.T) {
		version, id := w.asked(w.owner)
		got := see(w.owner, id)
		if got.str("state") != "PENDING" || got.str("requester.id") != w.ownerID || got.str("reason") != "all need it" || got.str("subject.id") != version ||
			got.str("project.id") != w.project || got.str("viewerCanWithdraw") != "true" || got.str("viewerCanDecide") != "false" {
			t.Errorf("%s", got)
		}
		if v := state(version); v.str("state") != "APPROVAL_PENDING" || v.at("visibility").v != nil {
			t.Errorf("%s", v)
		}
	})
	t.Run("APR-01_requester_admins_and_auditors_see_it", func(t *testing.T) {
		_, id := w.asked(w.owner)
		for name, c := range map[string]struct {
			who  client
			sees bool
		}{
			"requester": {w.owner, true}, "admin": {w.admin, true}, "auditor": {auditor, true},
			"peer": {w.peer, false}, "lead": {lead, false}, "outside": {w.outside, false}, "another tenant": {as(t, "mallory"), false},
		} {
			list := c.who.ask(`{ approvals(first: 100) { nodes { id } } }`, nil).strs("approvals.nodes", "id")
			if got := see(c.who, id); (got.v != nil) != c.sees || slices.Contains(list, id) != c.sees {
				t.Errorf("%s sees %s, lists %v", name, got, list)
			}
		}
		for name, c := range map[string]struct {
			who  client
			sees bool
		}{"admin": {w.admin, true}, "requester": {w.owner, false}, "auditor": {auditor, false}} {
			list := c.who.ask(`{ approvals(first: 100, filter: {waitingForMe: true}) { nodes { id } } }`, nil).strs("approvals.nodes", "id")
			if slices.Contains(list, id) != c.sees {
				t.Errorf("waiting for the %s: %v", name, list)
			}
		}
	})
	t.Run("APR-02_refused_asked_again_approved_by_another_person", func(t *testing.T) {
		version, id := w.asked(w.owner)
		w.owner.refuse("approveRequest", vars{"id": id}, "FORBIDDEN")
		lead.refuse("approveRequest", vars{"id": id}, "NOT_FOUND")
		auditor.refuse("approveRequest", vars{"id": id}, "FORBIDDEN")
		w.admin.refuse("rejectRequest", vars{"id": id, "reason": ""}, "REQUIRED")
		w.admin.do("rejectRequest", vars{"id": id, "reason": "say what it is for"})
		back := w.owner.reaches(version, "CREATED")
		if back.str("problem") != "Publishing was rejected: say what it is for" {
			t.Errorf("%s", back)
		}
		if got := see(w.owner, id); got.str("state") != "REJECTED" || got.str("answer") != "say what it is for" {
			t.Errorf("%s", got)
		}
		again := w.askAgain(w.owner, version)
		other.do("approveRequest", vars{"id": again})
		w.owner.reaches(version, "PUBLISHED")
		if got := see(w.owner, again); got.str("state") != "APPROVED" || got.str("decidedBy.id") != otherID || len(got.list("history.nodes")) != 2 {
			t.Errorf("%s", got)
		}
	})
	t.Run("APR-02_nobody_decides_their_own_request", func(t *testing.T) {
		w.grant(otherID, "MEMBER")
		_, id := w.asked(other)
		other.refuse("approveRequest", vars{"id": id}, "FORBIDDEN")
		other.refuse("rejectRequest", vars{"id": id, "reason": "test"}, "FORBIDDEN")
		w.admin.do("approveRequest", vars{"id": id})
	})
	t.Run("APR-03_of_many_decisions_one_counts", func(t *testing.T) {
		_, id := w.asked(w.owner)
		codes := make([]string, 20)
		var all sync.WaitGroup
		for i := range codes {
			all.Go(func() {
				who, mutation, in := w.admin, "approveRequest", vars{"id": id}
				if i%2 == 1 {
					who, mutation, in = other, "rejectRequest", vars{"id": id, "reason": "test"}
				}
				codes[i] = who.attempt(mutation, in).str("userErrors.0.code")
			})
		}
		all.Wait()
		done := 0
		for _, c := range codes {
			if c == "" {
				done++
			} else if c != "INVALID_STATE" {
				t.Errorf("the other is told %s", c)
			}
		}
		if done != 1 {
			t.Errorf("%d decisions count: %v", done, codes)
		}
	})
	t.Run("APR-01_withdrawn_by_the_requester", func(t *testing.T) {
		version, id := w.asked(w.owner)
		w.admin.refuse("withdrawRequest", vars{"id": id}, "FORBIDDEN")
		w.owner.do("withdrawRequest", vars{"id": id})
		if back := w.owner.reaches(version, "CREATED"); back.at("problem").v != nil {
			t.Errorf("%s", back)
		}
		w.admin.refuse("approveRequest", vars{"id": id}, "INVALID_STATE")
	})
	t.Run("APR-04_a_failed_step_leaves_it_approved_and_is_retried", func(t *testing.T) {
		w.owner.upload("late/train.py", script)
		in := w.input(unique("ask"))
		in["source"] = vars{"script": vars{"directory": "late", "script": "train.py"}}
		version, id := w.askedFor(w.owner, in)
		w.owner.remove("late")
		w.admin.do("approveRequest", vars{"id": id})
		w.owner.reaches(version, "PUBLISH_FAILED")
		if got := see(w.owner, id); got.str("state") != "APPROVED" {
			t.Errorf("%s", got)
		}
		w.owner.upload("late/train.py", script)
		w.owner.do("retryOperation", vars{"id": w.owner.operationOf(version).str("id")})
		w.owner.reaches(version, "PUBLISHED")
	})
	t.Run("APR-05_what_is_gone_is_not_approved", func(t *testing.T) {
		version, id := w.asked(w.owner)
		w.owner.refuse("updateAlgorithmVersion", vars{"id": version, "description": "other"}, "INVALID_STATE")
		w.owner.do("deleteAlgorithmVersion", vars{"id": version})
		code := w.admin.attempt("approveRequest", vars{"id": id}).str("userErrors.0.code")
		if code != "CONFLICT" && code != "INVALID_STATE" {
			t.Errorf("approved though it is gone: %q", code)
		}
	})
	t.Run("LIV-01_approvals_waiting_for_me", func(t *testing.T) {
		const document = `subscription($after: String) { approvalEvents(filter: {waitingForMe: true}, after: $after) { cursor kind removedIds approval { id state } } }`
		live := other.subscribe(document, nil)
		cursor := live.next().str("cursor")
		_, id := w.asked(w.owner)
		come := func(v value) bool { return v.str("kind") == "CREATED" && v.str("approval.id") == id }
		gone := func(v value) bool { return v.str("kind") == "REMOVED" && v.str("removedIds.0") == id }
		live.until("it waits", come)
		w.owner.do("withdrawRequest", vars{"id": id})
		live.until("it waits no more", gone)
		again := other.subscribe(document, vars{"after": cursor})
		again.until("it waits, after a resume", come)
		again.until("it waits no more, after a resume", gone)
	})
}
