package algorithm

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/algorithm"
	"tallyard/graph/live"
	"tallyard/graph/relay"
	proj "tallyard/projections/algorithm"
)

// TestTurn: what of an algorithm goes out of view when rights turn, and whether
// anything comes.
func TestTurn(t *testing.T) {
	tenant, project, me := uuid.New(), uuid.New(), uuid.New()
	rights := func(in bool, roles ...access.Role) access.Grants {
		g := access.Grants{Tenant: tenant, User: me, Active: true, Roles: roles, Projects: map[uuid.UUID]access.Role{}}
		if in {
			g.Projects[project] = access.Member
		}
		return g
	}
	versions := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
	state := func(owner uuid.UUID, list ...access.Visibility) algorithm.State {
		s := algorithm.State{ID: uuid.UUID{9}, Tenant: tenant, Project: project, Owner: owner}
		for i, v := range list {
			s.Versions = append(s.Versions, algorithm.Version{ID: versions[i], Visibility: v})
		}
		return s
	}
	other := uuid.New()
	whole := relay.Of(relay.Algorithm, uuid.UUID{9})
	version := func(i int) string { return VersionID(uuid.UUID{9}, versions[i]) }
	for name, c := range map[string]struct {
		w       watched
		was, is access.Grants
		s       algorithm.State
		lost    []string
		gained  bool
	}{
		"LIV-03_the_group_s_goes":                 {watched{}, rights(true), rights(false), state(other, access.Private, access.Group), []string{whole}, false},
		"LIV-03_its_version_goes":                 {watched{}, rights(true), rights(false), state(other, access.Private, access.Group, access.Global), []string{version(1)}, false},
		"LIV-03_the_tenant_s_stays":               {watched{}, rights(true), rights(false), state(other, access.Private, access.Global), nil, false},
		"LIV-03_one_s_own_stays":                  {watched{}, rights(true), rights(false), state(me, access.Private, access.Group), nil, false},
		"LIV-03_one_s_own_leaves_the_group_s_tab": {watched{scope: proj.ScopeGroup}, rights(true), rights(false), state(me, access.Group), []string{whole}, false},
		"LIV-03_what_was_never_seen_is_nothing":   {watched{}, rights(true), rights(false), state(other, access.Private), nil, false},
		"LIV-03_not_what_is_not_watched":          {watched{project: uuid.New()}, rights(true), rights(false), state(other, access.Group), nil, false},
		"LIV-03_an_auditor_loses_what_is_private": {watched{}, rights(true, access.Auditor), rights(true), state(other, access.Private, access.Group), []string{version(0)}, false},
		"LIV-03_an_admin_who_stays_an_auditor":    {watched{}, rights(false, access.Auditor, access.TenantAdmin), rights(false, access.Auditor), state(other, access.Private), nil, false},
		"LIV-03_the_group_s_comes":                {watched{}, rights(false), rights(true), state(other, access.Group), nil, true},
		"LIV-03_another_version_comes":            {watched{}, rights(false), rights(true), state(other, access.Group, access.Global), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			turn := live.Turn{Was: c.was, Is: c.is, Turned: c.was.Turned(c.is)}
			lost, gained := c.w.compare(turn, c.s)
			if !slices.Equal(lost, c.lost) || gained != c.gained {
				t.Errorf("lost %v, gained %v", lost, gained)
			}
			comes, goes := directions(turn)
			if (len(lost) > 0 && !goes) || (gained && !comes) || (comes && goes) {
				t.Errorf("comes %v, goes %v", comes, goes)
			}
		})
	}
}
