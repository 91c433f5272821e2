package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// PersonKeys keeps the keys of personal data, each wrapped by the
// installation's key. Deleting one erases the person.
type PersonKeys struct{ pool *pgxpool.Pool }

// NewPersonKeys returns the store of wrapped keys.
func NewPersonKeys(pool *pgxpool.Pool) *PersonKeys { return &PersonKeys{pool} }

// Get gives a person's wrapped key; false when there is none, or none any more.
func (k *PersonKeys) Get(ctx context.Context, tenant, person uuid.UUID) ([]byte, bool, error) {
	var wrapped []byte
	err := k.pool.QueryRow(ctx, `SELECT wrapped FROM tallyard.person_keys WHERE tenant = $1 AND person = $2`,
		tenant, person).Scan(&wrapped)
	if none(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("get person key: %w", err)
	}
	return wrapped, true, nil
}

// Put keeps a person's wrapped key if there is none yet and returns the one
// that counts: of two writers both use the first one's.
func (k *PersonKeys) Put(ctx context.Context, tenant, person uuid.UUID, wrapped []byte, at time.Time) ([]byte, error) {
	var kept []byte
	// The update changes nothing; it makes the row that was there come back.
	err := k.pool.QueryRow(ctx, `INSERT INTO tallyard.person_keys AS old (tenant, person, wrapped, created_at)
		VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant, person) DO UPDATE SET wrapped = old.wrapped
		RETURNING wrapped`, tenant, person, wrapped, at).Scan(&kept)
	if err != nil {
		return nil, fmt.Errorf("put person key: %w", err)
	}
	return kept, nil
}

// Any tells whether there is the key of anybody.
func (k *PersonKeys) Any(ctx context.Context) (some bool, err error) {
	if err := k.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM tallyard.person_keys)`).Scan(&some); err != nil {
		return false, fmt.Errorf("look for person keys: %w", err)
	}
	return some, nil
}

// Delete destroys a person's key; it is no error when there is none.
func (k *PersonKeys) Delete(ctx context.Context, tenant, person uuid.UUID) error {
	_, err := k.pool.Exec(ctx, `DELETE FROM tallyard.person_keys WHERE tenant = $1 AND person = $2`, tenant, person)
	if err != nil {
		return fmt.Errorf("delete person key: %w", err)
	}
	return nil
}
