package access

import (
	"fmt"

	"tallyard/domain/access"
)

// SawAt is an SQL expression that lists, as rows of (user_id), who could see a
// thing at a time: its owner, the admins and auditors of the tenant, and by its
// reach the members of the project or everybody of the tenant. The arguments
// are SQL expressions.
func SawAt(tenant, project, owner, reach, at string) string {
	return fmt.Sprintf(`(SELECT p.user_id FROM {g}.access_periods p
		WHERE p.tenant = %[1]s AND p.valid_from <= %[5]s AND (p.valid_to IS NULL OR p.valid_to > %[5]s)
		AND (p.user_id = %[3]s OR %[4]s = %[6]d OR EXISTS (SELECT 1 FROM {g}.access_grants g
			WHERE g.user_id = p.user_id AND g.valid_from <= %[5]s AND (g.valid_to IS NULL OR g.valid_to > %[5]s)
			AND (g.role IN ('%[8]s', '%[9]s') OR (%[4]s = %[7]d AND g.project = %[2]s)))))`,
		tenant, project, owner, reach, at, ReachGlobal, ReachGroup, access.TenantAdmin, access.Auditor)
}
