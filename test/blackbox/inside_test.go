package blackbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// inside are questions beyond the fields of the root: what lies inside of
// things, and what they were. They have rows of their own in the table of rights.
var inside = map[string]func(s *stage) (document string, v vars, seen string){
	"algorithm.history": func(s *stage) (string, vars, string) {
		return happened("algorithm", s.algorithm, "algorithm.created.v1")
	},
	"algorithmVersion.history": func(s *stage) (string, vars, string) {
		return happened("algorithmVersion", s.version, "algorithm.published.v1")
	},
	"model.history": func(s *stage) (string, vars, string) { return happened("model", s.model, "model.created.v1") },
	"modelVersion.history": func(s *stage) (string, vars, string) {
		return happened("modelVersion", s.modelVersion, "model.version_imported.v1")
	},
	"model(asOf)":        func(s *stage) (string, vars, string) { return once("model", s.model) },
	"modelVersion(asOf)": func(s *stage) (string, vars, string) { return once("modelVersion", s.modelVersion) },
	"approval.history": func(s *stage) (string, vars, string) {
		return happened("approval", s.approval, "approval.requested.v1")
	},
	"approval(asOf)": func(s *stage) (string, vars, string) { return once("approval", s.approval) },
	"operation.history": func(s *stage) (string, vars, string) {
		return happened("operation", s.operation, "operation.queued.v1")
	},
	"project.history": func(s *stage) (string, vars, string) { return happened("project", s.project, "project.created.v1") },
	"dataSet.history": func(s *stage) (string, vars, string) {
		return happened("dataSet", s.dataSet, "dataset.registered.v1")
	},
	"registeredImage.history": func(s *stage) (string, vars, string) {
		return happened("image", s.image, "image.registered.v1")
	},
	"dataSet(asOf)": func(s *stage) (string, vars, string) { return once("dataSet", s.dataSet) },
	"image(asOf)":   func(s *stage) (string, vars, string) { return once("image", s.image) },
	"project.members": func(s *stage) (string, vars, string) {
		return `query($id: ID!) { project(id: $id) { members(first: 100) { nodes { user { id } } } } }`, vars{"id": s.project}, s.ownerID
	},
	"storageSpace.history": func(s *stage) (string, vars, string) {
		return happened("storageSpace", s.space, "space.created.v1")
	},
	"tenant.history": func(s *stage) (string, vars, string) { return happened("tenant", s.tenant, "tenant.created.v1") },
	"user.history":   func(s *stage) (string, vars, string) { return happened("user", s.ownerID, "user.created.v1") },
	"user.history, roles": func(s *stage) (string, vars, string) {
		return happened("user", s.ownerID, "user.role_granted.v1")
	},
	"user.permissions": func(s *stage) (string, vars, string) {
		return `query($id: ID!) { user(id: $id) { permissions } }`, vars{"id": s.ownerID}, "SUBMIT_URGENT_JOBS"
	},
	"user.businessScope": func(s *stage) (string, vars, string) {
		return `query($id: ID!) { user(id: $id) { businessScope } }`, vars{"id": s.ownerID}, "TRAINING"
	},
	"user.quota": func(s *stage) (string, vars, string) {
		return `query($id: ID!) { user(id: $id) { quota { accelerators { type } } } }`, vars{"id": s.ownerID}, "accelerators"
	},
	"user.roles": func(s *stage) (string, vars, string) {
		return `query($id: ID!) { user(id: $id) { roles { role } } }`, vars{"id": s.ownerID}, "MEMBER"
	},
	"algorithm(asOf)":        func(s *stage) (string, vars, string) { return once("algorithm", s.algorithm) },
	"algorithmVersion(asOf)": func(s *stage) (string, vars, string) { return once("algorithmVersion", s.version) },
	"operation(asOf)":        func(s *stage) (string, vars, string) { return once("operation", s.operation) },
	"project(asOf)":          func(s *stage) (string, vars, string) { return once("project", s.project) },
	"storageSpace(asOf)":     func(s *stage) (string, vars, string) { return once("storageSpace", s.space) },
	"tenant(asOf)":           func(s *stage) (string, vars, string) { return once("tenant", s.tenant) },
	"user(asOf)":             func(s *stage) (string, vars, string) { return once("user", s.ownerID) },
	"settings(asOf)": func(s *stage) (string, vars, string) {
		return `query($id: ID, $at: Time) { settings(id: $id, asOf: $at) { scope } }`, vars{"id": s.tenant, "at": soon()}, "TENANT"
	},
	"settings(project)": func(s *stage) (string, vars, string) {
		return `query($id: ID) { settings(id: $id) { scope } }`, vars{"id": s.project}, "PROJECT"
	},
	"settings(platform)": func(*stage) (string, vars, string) {
		return `{ settings(platform: true) { scope } }`, nil, "PLATFORM"
	},
	"settings.history": func(s *stage) (string, vars, string) {
		return `query($id: ID) { settings(id: $id) { history(first: 100) { nodes { event } } } }`, vars{"id": s.project}, "setting.changed.v1"
	},
	"auditEntries(platform)": func(*stage) (string, vars, string) {
		return many("auditEntries", "AuditFilter", vars{"platform": true}, `"id"`)
	},
	"auditEntries(user, roles)": func(s *stage) (string, vars, string) {
		// The action is asked for, since how many refusals lie above it depends on
		// where in a minute the rows before this one ran.
		return `query($f: AuditFilter) { auditEntries(first: 20, filter: $f) { nodes { action } } }`, vars{"f": vars{"subjectId": s.ownerID, "actions": []string{"grantRole"}}}, "grantRole"
	},
}

func happened(field, id, event string) (string, vars, string) {
	return fmt.Sprintf(`query($id: ID!) { %s(id: $id) { history(first: 100) { nodes { event } } } }`, field), vars{"id": id}, event
}

// once asks for something as of a moment at which all that was done is over.
func once(field, id string) (string, vars, string) {
	return fmt.Sprintf(`query($id: ID!, $at: Time) { %s(id: $id, asOf: $at) { id } }`, field), vars{"id": id, "at": soon()}, id
}

// insides are the rows, in order. A type with a history, or a query with a past,
// that has no row fails.
func insides(t *testing.T, s *stage) []string {
	t.Helper()
	schema := s.owner.ask(`{ __schema { queryType { fields { name args { name } } } types { name fields { name } } } }`, nil)
	for _, d := range schema.list("__schema.types") {
		name := d.str("name")
		if name != "" && slices.Contains(d.strs("fields", "name"), "history") {
			mustHave(t, strings.ToLower(name[:1])+name[1:]+".history")
		}
	}
	for _, f := range schema.list("__schema.queryType.fields") {
		if slices.Contains(f.strs("args", "name"), "asOf") {
			mustHave(t, f.str("name")+"(asOf)")
		}
	}
	var names []string
	for name := range inside {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func mustHave(t *testing.T, row string) {
	t.Helper()
	if inside[row] == nil {
		t.Errorf("%s has no row", row)
	}
}
