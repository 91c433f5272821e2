package setting

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tallyard/domain/setting"
	"tallyard/projections/runner"
)

// Queries reads the table.
type Queries struct{ Reader *runner.Reader }

// ByTenant gives what each tenant set for itself; that of the platform is under
// the nil tenant. Who set nothing is missing.
func (q Queries) ByTenant(ctx context.Context, key setting.Key) (map[uuid.UUID]setting.Value, error) {
	rows, err := q.Reader.Query(ctx, `SELECT tenant, value FROM {g}.settings WHERE key = $1 AND scope = ANY($2)`,
		string(key), []string{string(setting.Platform), string(setting.Tenant)})
	if err != nil {
		return nil, err
	}
	found := map[uuid.UUID]setting.Value{}
	var tenant uuid.UUID
	var v setting.Value
	_, err = pgx.ForEachRow(rows, []any{&tenant, &v}, func() error {
		found[tenant] = v
		return nil
	})
	return found, err
}
