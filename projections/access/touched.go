package access

import (
	"fmt"

	"github.com/google/uuid"

	"tallyard/domain/access"
)

// Touched is the condition for things that may come into a user's view, or go
// out of it, when their rights turn. The table is as for [Filter.Visible].
func Touched(tenant, user uuid.UUID, t access.Turned, alias string, args []any) (string, []any) {
	n := len(args)
	projects := t.Projects
	if projects == nil {
		projects = []uuid.UUID{}
	}
	args = append(args, tenant, projects)
	if t.Training {
		// All of it was in no list, or will be in none.
		return fmt.Sprintf("%s.tenant = $%d", alias, n+1), args[:n+1]
	}
	group := fmt.Sprintf("%[1]s.reach = 1 AND %[1]s.project = ANY($%[2]d)", alias, n+2)
	if !t.All {
		return fmt.Sprintf("%s.tenant = $%d AND %s", alias, n+1, group), args
	}
	args = append(args, user)
	return fmt.Sprintf("%[1]s.tenant = $%[2]d AND ((%[1]s.reach < 2 AND %[1]s.owner <> $%[3]d) OR (%[4]s))", alias, n+1, n+3, group), args
}
