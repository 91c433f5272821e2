package blackbox_test

import (
	"fmt"
	"slices"
	"testing"
)

func TestEdit(t *testing.T) {
	w := newWorld(t)
	algorithm, version := w.create(w.input(unique("edit")))
	t.Run("ALG-12_the_owner_edits_a_created_one", func(t *testing.T) {
		got := w.owner.do("updateAlgorithmVersion", vars{"id": version, "description": "new", "source": vars{"command": "make"}})
		if got.str("algorithmVersion.description") != "new" || got.str("algorithmVersion.source.command") != "make" {
			t.Errorf("%s", got)
		}
	})
	t.Run("ALG-02_name_and_label_have_no_field", func(t *testing.T) {
		for _, field := range []string{"name", "label"} {
			if r := w.owner.send(document("updateAlgorithmVersion"), vars{"input": vars{"id": version, field: "other"}}); r.code() != "BAD_REQUEST" {
				t.Errorf("%s: %s", field, r.body)
			}
		}
	})
	t.Run("ALG-02_a_label_is_given_once", func(t *testing.T) {
		w.owner.refuse("createAlgorithmVersion", vars{"algorithmId": algorithm, "label": "v1", "image": vars{"reference": "x"}, "source": vars{"command": "x"}}, "VERSION_TAKEN")
	})
	t.Run("ALG-02_only_the_owner_adds_versions", func(t *testing.T) {
		w.publish(version, "GROUP")
		w.peer.refuse("createAlgorithmVersion", vars{"algorithmId": algorithm, "label": "v2", "image": vars{"reference": "x"}, "source": vars{"command": "x"}}, "FORBIDDEN")
	})
	t.Run("ALG-12_of_a_published_one_the_description_alone", func(t *testing.T) {
		w.owner.do("updateAlgorithmVersion", vars{"id": version, "description": "after"})
		w.owner.refuse("updateAlgorithmVersion", vars{"id": version, "image": vars{"reference": "other"}}, "INVALID_STATE")
		w.peer.refuse("updateAlgorithmVersion", vars{"id": version, "description": "mine"}, "FORBIDDEN")
		w.admin.do("updateAlgorithmVersion", vars{"id": version, "description": "the admin's"})
	})
	t.Run("ALG-12_published_once", func(t *testing.T) {
		w.owner.refuse("publishAlgorithmVersion", vars{"id": version, "visibility": "GLOBAL"}, "INVALID_STATE")
	})
}

func TestVisibility(t *testing.T) {
	w := newWorld(t)
	other := newWorld(t)
	carol, _ := w.person("lead", "PROJECT_ADMIN")
	auditor, _ := w.person("audit", "AUDITOR")
	names := map[string]string{}
	for _, visibility := range []string{"PRIVATE", "GROUP", "GLOBAL"} {
		names[visibility] = unique("vis")
		_, version := w.create(w.command(names[visibility]))
		w.publish(version, visibility)
	}
	names["unpublished"] = unique("vis")
	w.create(w.command(names["unpublished"]))
	w.owner.settled()
	for _, c := range []struct {
		who  string
		c    client
		sees []string
	}{
		{"the_owner", w.owner, []string{"GLOBAL", "GROUP", "PRIVATE", "unpublished"}},
		{"a_member", w.peer, []string{"GLOBAL", "GROUP"}},
		{"the_project_admin", carol, []string{"GLOBAL", "GROUP"}},
		{"a_tenant_admin", w.admin, []string{"GLOBAL", "GROUP", "PRIVATE", "unpublished"}},
		{"an_auditor", auditor, []string{"GLOBAL", "GROUP", "PRIVATE", "unpublished"}},
		{"another_project", other.peer, []string{"GLOBAL"}},
		{"nobodys_member", w.outside, []string{"GLOBAL"}},
		{"another_tenant", as(t, "mallory"), nil},
	} {
		t.Run("ALG-05_"+c.who, func(t *testing.T) {
			c.c.t = t
			var sees []string
			for visibility, name := range names {
				if c.c.lists(nil, name) {
					sees = append(sees, visibility)
				}
			}
			slices.Sort(sees)
			if !slices.Equal(sees, c.sees) {
				t.Errorf("sees %v, want %v", sees, c.sees)
			}
		})
	}
	t.Run("ALG-05_a_right_taken_away_works_at_the_next_request", func(t *testing.T) {
		w.admin.do("revokeRole", vars{"userId": w.peerID, "role": "MEMBER", "projectId": w.project, "reason": "left"})
		if w.peer.lists(nil, names["GROUP"]) || !w.peer.lists(nil, names["GLOBAL"]) {
			t.Error("the member that left sees the wrong ones")
		}
	})
}

func TestViews(t *testing.T) {
	w := newWorld(t)
	first, second := unique("view"), unique("view")
	algorithm, _ := w.create(with(w.command(first), vars{"description": "about Giraffes"}))
	for i := range 11 {
		w.version(algorithm, fmt.Sprintf("w%d", i), nil)
	}
	published := w.version(algorithm, "last", nil)
	w.publish(published, "GROUP")
	w.create(w.command(second))
	t.Run("ALG-06_one_row_per_name_with_the_latest_ten", func(t *testing.T) {
		got := w.owner.ask(`query($p: ID!) { algorithms(filter: {projectId: $p}) { totalCount nodes { name latestVersion { label } versions(first: 10) { totalCount nodes { label } } } } }`, vars{"p": w.project})
		if !slices.Equal(got.strs("algorithms.nodes", "name"), []string{second, first}) || got.str("algorithms.nodes.1.latestVersion.label") != "last" ||
			got.str("algorithms.nodes.1.versions.totalCount") != "13" || len(got.list("algorithms.nodes.1.versions.nodes")) != 10 {
			t.Errorf("%s", got)
		}
	})
	t.Run("ALG-06_a_search_gives_a_flat_list", func(t *testing.T) {
		find := func(f vars) []string {
			return w.owner.ask(`query($f: AlgorithmVersionFilter) { algorithmVersions(filter: $f, first: 100) { nodes { label } } }`, vars{"f": with(f, vars{"projectId": w.project})}).strs("algorithmVersions.nodes", "label")
		}
		if got := find(vars{"search": "gIRAFFE"}); !slices.Equal(got, []string{"v1"}) {
			t.Errorf("by description: %v", got)
		}
		if got := find(vars{"search": first[1:]}); len(got) != 13 {
			t.Errorf("by name: %v", got)
		}
		if got := find(vars{"states": []string{"PUBLISHED"}, "ownerId": w.ownerID}); !slices.Equal(got, []string{"last"}) {
			t.Errorf("by state: %v", got)
		}
		if got := find(vars{"updatedTo": "2001-01-01T00:00:00Z"}); got != nil {
			t.Errorf("by time: %v", got)
		}
		if got := find(vars{"search": "%"}); got != nil {
			t.Errorf("a percent sign is a percent sign: %v", got)
		}
	})
	t.Run("ALG-06_tabs", func(t *testing.T) {
		for scope, want := range map[string]bool{"ALL": true, "PERSONAL": false, "GROUP": true, "GLOBAL": false} {
			if got := w.peer.lists(vars{"scope": scope}, first); got != want {
				t.Errorf("a member's %s: %t", scope, got)
			}
		}
		if !w.owner.lists(vars{"scope": "PERSONAL"}, second) || w.owner.lists(vars{"scope": "GROUP"}, second) {
			t.Error("the owner's tabs are wrong")
		}
	})
	t.Run("ALG-07_all_versions_and_the_published_alone", func(t *testing.T) {
		got := w.owner.ask(`query($id: ID!) { algorithm(id: $id) { all: versions(first: 100) { nodes { label viewerCanEdit viewerCanPublish viewerCanDelete } } published: versions(first: 100, publishedOnly: true) { nodes { label } } } }`, vars{"id": algorithm})
		if len(got.list("algorithm.all.nodes")) != 13 || !slices.Equal(got.strs("algorithm.published.nodes", "label"), []string{"last"}) {
			t.Errorf("%s", got)
		}
		if got.str("algorithm.all.nodes.0.viewerCanPublish") != "false" || got.str("algorithm.all.nodes.1.viewerCanPublish") != "true" {
			t.Errorf("%s", got)
		}
	})
}
