package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"tallyard/domain/es"
)

// VerifyReport compares the live tables with ones built anew, at one position.
type VerifyReport struct {
	Equal    bool          `json:"equal"`
	Position es.Position   `json:"position,string"`
	Tables   []TableReport `json:"tables"`
	// Halted and Parked concern the live tables; they explain differences.
	Halted map[string]string `json:"halted,omitempty"`
	Parked map[string]int    `json:"parked,omitempty"`
}

// TableReport is one table of the comparison.
type TableReport struct {
	Table   string `json:"table"`
	Live    int64  `json:"live"`
	Rebuilt int64  `json:"rebuilt"`
	// Missing rows are in the rebuilt table only, Extra ones in the live table
	// only; a changed row is one of each. The samples are keys, at most 5.
	Missing        int64    `json:"missing"`
	Extra          int64    `json:"extra"`
	MissingSamples []string `json:"missingSamples,omitempty"`
	ExtraSamples   []string `json:"extraSamples,omitempty"`
}

// verify builds a generation to compare the live one with. The live one stands
// still only until both are at the same position and a snapshot of it is taken.
func (t *term) verify(ctx context.Context) (VerifyReport, error) {
	live := t.live.Load()
	if live == nil {
		return VerifyReport{}, ErrNotReady
	}
	g, err := t.create(ctx, verify)
	if err != nil {
		return VerifyReport{}, err
	}
	f := t.start(ctx, g)
	t.beside.Store(f)
	defer t.beside.Store(nil)
	report, err := t.compare(ctx, live, f)
	t.stop(f)
	if ctx.Err() == nil {
		// One that stays behind is dropped by the next leader.
		if dropErr := t.drop(ctx, g); dropErr != nil {
			t.logger.WarnContext(ctx, "compared generation not dropped", "error", dropErr)
		}
	}
	return report, err
}

func (t *term) compare(ctx context.Context, live, fresh *flow) (VerifyReport, error) {
	select {
	case <-fresh.caught:
	case <-fresh.done:
		return VerifyReport{}, errors.New("building ended")
	case <-ctx.Done():
		return VerifyReport{}, context.Cause(ctx)
	}
	conn, err := t.db.Acquire(ctx)
	if err != nil {
		return VerifyReport{}, err
	}
	defer conn.Release()
	var report VerifyReport
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if report, err = snapshotBoth(ctx, tx, live, fresh); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = '15min'; SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
			return err
		}
		report.Tables, err = compareTables(ctx, tx, t.core, live.gen.schema(), fresh.gen.schema())
		return err
	})
	report.Equal = err == nil
	for _, table := range report.Tables {
		report.Equal = report.Equal && table.Missing == 0 && table.Extra == 0
	}
	return report, err
}

// snapshotBoth brings both flows to one position and takes the transaction's
// snapshot there.
func snapshotBoth(ctx context.Context, tx pgx.Tx, live, fresh *flow) (report VerifyReport, err error) {
	rebuilt, err := fresh.hold(ctx)
	if err != nil {
		return report, err
	}
	at, err := live.hold(ctx)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, live.release(ctx)) }()
	if rebuilt > at {
		at = rebuilt
		err = live.reach(ctx, at, true)
	} else {
		err = fresh.reach(ctx, at, true)
	}
	if err != nil {
		return report, err
	}
	v := live.view.Load()
	report = VerifyReport{Position: at, Halted: v.halted, Parked: v.parked}
	// The first statement takes the snapshot of a repeatable-read transaction.
	_, err = tx.Exec(ctx, `SELECT 1 FROM tallyard.generations LIMIT 1`)
	return report, err
}

// tables lists a schema's tables.
func (c *core) tables(ctx context.Context, schema string) ([]string, error) {
	return listTables(ctx, c.db, schema)
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func listTables(ctx context.Context, db querier, schema string) ([]string, error) {
	rows, err := db.Query(ctx, `SELECT table_name::text FROM information_schema.tables
		WHERE table_schema = $1 AND table_type = 'BASE TABLE' ORDER BY 1`, schema)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func compareTables(ctx context.Context, tx pgx.Tx, c *core, liveSchema, freshSchema string) ([]TableReport, error) {
	tables, err := listTables(ctx, tx, freshSchema)
	if err != nil {
		return nil, err
	}
	reports := make([]TableReport, 0, len(tables))
	for _, table := range tables {
		r, err := compareTable(ctx, tx, table, liveSchema, freshSchema)
		if err != nil {
			return reports, fmt.Errorf("compare %s: %w", table, err)
		}
		if r.Missing+r.Extra > 0 {
			c.logger.ErrorContext(ctx, "live table differs from the rebuilt one", "table", table, "missing", r.Missing, "extra", r.Extra)
		}
		reports = append(reports, r)
	}
	return reports, nil
}

func compareTable(ctx context.Context, tx pgx.Tx, table, liveSchema, freshSchema string) (TableReport, error) {
	r := TableReport{Table: table}
	columns, key, err := tableColumns(ctx, tx, freshSchema, table)
	if err != nil {
		return r, err
	}
	a, b := liveSchema+"."+quote(table), freshSchema+"."+quote(table)
	err = tx.QueryRow(ctx, `SELECT (SELECT count(*) FROM `+a+`), (SELECT count(*) FROM `+b+`)`).Scan(&r.Live, &r.Rebuilt)
	if err != nil {
		return r, err
	}
	difference := func(from, without string, n *int64, samples *[]string) error {
		return tx.QueryRow(ctx, `WITH d AS MATERIALIZED (SELECT `+columns+` FROM `+from+` EXCEPT ALL SELECT `+columns+` FROM `+without+`)
			SELECT (SELECT count(*) FROM d), ARRAY(SELECT concat_ws('/', `+key+`) AS k FROM d ORDER BY k LIMIT 5)`).Scan(n, samples)
	}
	if err := difference(b, a, &r.Missing, &r.MissingSamples); err != nil {
		return r, err
	}
	return r, difference(a, b, &r.Extra, &r.ExtraSamples)
}

// tableColumns gives the select list of a comparison and the columns that tell
// rows apart. Types that can't be compared are compared as text.
func tableColumns(ctx context.Context, tx pgx.Tx, schema, table string) (columns, key string, err error) {
	rows, err := tx.Query(ctx, `SELECT a.attname::text,
			a.atttypid IN ('json'::regtype, 'xml'::regtype, 'point'::regtype),
			coalesce(a.attnum = ANY (i.indkey), false)
		FROM pg_attribute a
		LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
		WHERE a.attrelid = ($1 || '.' || quote_ident($2))::regclass AND a.attnum > 0 AND NOT a.attisdropped
		ORDER BY 1`, schema, table)
	if err != nil {
		return "", "", err
	}
	var (
		name          string
		asText, isKey bool
		list, keys    []string
	)
	_, err = pgx.ForEachRow(rows, []any{&name, &asText, &isKey}, func() error {
		if isKey {
			keys = append(keys, quote(name))
		}
		if asText {
			list = append(list, quote(name)+"::text AS "+quote(name))
		} else {
			list = append(list, quote(name))
		}
		return nil
	})
	if len(keys) == 0 {
		keys = slices.Clone(list)
		for i, k := range keys {
			if _, as, ok := strings.Cut(k, " AS "); ok {
				keys[i] = as
			}
		}
	}
	return strings.Join(list, ", "), strings.Join(keys, ", "), err
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
