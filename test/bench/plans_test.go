package bench

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	domain "tallyard/domain/algorithm"
	projaccess "tallyard/projections/access"
	"tallyard/projections/algorithm"
	"tallyard/projections/audit"
	"tallyard/projections/operation"
	"tallyard/projections/page"
	"tallyard/projections/people"
	"tallyard/projections/runner"
	"tallyard/projections/storage"
)

// plans takes what Postgres says about the statements that it runs.
type plans struct {
	mu   sync.Mutex
	list []string
}

func (p *plans) note(_ *pgconn.PgConn, n *pgconn.Notice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if strings.Contains(n.Message, "plan:") && strings.Contains(n.Message, "gen_") {
		p.list = append(p.list, n.Message)
	}
}

func (p *plans) last() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) == 0 {
		return ""
	}
	return p.list[len(p.list)-1]
}

// explained is a pool whose every statement is explained; mode is Postgres'
// plan_cache_mode.
func (w *world) explained(b *testing.B, mode string) (*pgxpool.Pool, *plans) {
	b.Helper()
	p := &plans{}
	pool := w.pool(b, func(cfg *pgxpool.Config) {
		cfg.ConnConfig.OnNotice = p.note
		cfg.ConnConfig.RuntimeParams["plan_cache_mode"] = mode
		cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, `LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;
				SET auto_explain.log_buffers = on; SET auto_explain.log_timing = off; SET auto_explain.log_level = notice; SET client_min_messages = notice`)
			return err
		}
	})
	return pool, p
}

var (
	durationOf = regexp.MustCompile(`duration: ([\d.]+) ms`)
	hitsOf     = regexp.MustCompile(`Buffers: shared (?:hit=(\d+))?(?: ?read=(\d+))?`)
	removedOf  = regexp.MustCompile(`Rows Removed by Filter: (\d+)`)
	scanOf     = regexp.MustCompile(`(?:Index Scan|Index Only Scan|Seq Scan|Bitmap Index Scan|Index Scan Backward)[^\n]*? on (\S+)|using (\S+) on`)
)

func number(re *regexp.Regexp, s string) (sum int) {
	m := re.FindStringSubmatch(s)
	for _, g := range m[min(1, len(m)):] {
		n, _ := strconv.Atoi(g) // absent is 0
		sum += n
	}
	return sum
}

func scans(plan string) string {
	var names []string
	for _, m := range scanOf.FindAllStringSubmatch(plan, -1) {
		name := m[1] + m[2]
		if strings.HasPrefix(m[0], "Seq Scan") {
			name = "SEQ " + name
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// mostBuffers is how many pages of 8 KB a page of a list may touch.
const mostBuffers = 6000

// BenchmarkPlans prints how Postgres finds the rows of lists, for every order
// and filter that pages show, for viewers who see everything, much and little,
// with plans for the values at hand and for any values: pages touched, rows
// thrown away, time, indexes.
func BenchmarkPlans(b *testing.B) {
	w := filled(b)
	set, err := runner.NewSet(people.Projection(nil), projaccess.Projection, storage.Projection, operation.Projection, algorithm.Projection, audit.Projection)
	if err != nil {
		b.Fatal(err)
	}
	c := w.company
	viewers := map[string]projaccess.Filter{
		"everything": {Tenant: c.Tenant, All: true, Projects: []uuid.UUID{}},
		"much":       {Tenant: c.Tenant, User: c.Owners[len(c.Owners)-1], Projects: c.Projects[:1]},
		"some":       {Tenant: c.Tenant, User: c.Owners[3], Projects: c.Projects[3:6]},
		"little":     {Tenant: c.Tenant, User: uuid.New(), Projects: []uuid.UUID{uuid.New()}},
	}
	orders := map[string]page.Column{"updated": algorithm.ByUpdated, "created": algorithm.ByCreated, "name": algorithm.ByName}
	filters := map[string]algorithm.Filter{
		"none": {}, "GLOBAL": {Scope: algorithm.ScopeGlobal}, "GROUP": {Scope: algorithm.ScopeGroup}, "PERSONAL": {Scope: algorithm.ScopePersonal},
		"project": {Project: c.Projects[3]}, "owner": {Owner: c.Owners[3]}, "favorites": {Favorites: true},
	}
	versionFilters := map[string]algorithm.Filter{
		"search": {Search: "attempt 77"}, "states": {Statuses: []domain.Status{domain.Published}}, "rare state": {Statuses: []domain.Status{domain.Publishing}},
	}
	for b.Loop() {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			pool, got := w.explained(b, mode)
			q := algorithm.Queries{Reader: runner.NewReader(pool, nil, set)}
			fmt.Printf("\n%s\n%-10s %-10s %-8s %-11s %8s %8s %9s  %s\n", mode, "list", "viewer", "order", "filter", "buffers", "removed", "ms", "scans")
			show := func(list, viewer, order, filter string, run func() error) {
				if err := run(); err != nil {
					b.Fatal(err)
				}
				plan := got.last()
				took, _ := strconv.ParseFloat(durationOf.FindStringSubmatch(plan)[1], 64)
				fmt.Printf("%-10s %-10s %-8s %-11s %8d %8d %9.2f  %s\n", list, viewer, order, filter, number(hitsOf, plan), number(removedOf, plan), took, scans(plan))
				if n := number(hitsOf, plan); n > mostBuffers && filter != "search" {
					fmt.Println("  too many buffers:\n" + plan)
				}
			}
			for _, viewer := range []string{"everything", "much", "some", "little"} {
				for _, order := range []string{"updated", "created", "name"} {
					o := page.Order{Column: orders[order], IDColumn: "t.id", Descending: order != "name"}
					p := page.Page{First: rowsPerPage}
					for _, f := range []string{"none", "GLOBAL", "GROUP", "PERSONAL", "project", "owner", "favorites"} {
						show("algorithms", viewer, order, f, func() error {
							_, err := q.List(b.Context(), viewers[viewer], filters[f], o, p)
							return err
						})
						show("versions", viewer, order, f, func() error {
							_, err := q.Versions(b.Context(), viewers[viewer], filters[f], o, p)
							return err
						})
					}
					for _, f := range []string{"search", "states", "rare state"} {
						show("versions", viewer, order, f, func() error {
							_, err := q.Versions(b.Context(), viewers[viewer], versionFilters[f], o, p)
							return err
						})
					}
				}
			}
			a := audit.Queries{Reader: q.Reader}
			for name, f := range map[string]audit.Filter{
				"none": {}, "actor": {Actor: c.Owners[3]}, "project": {Project: c.Projects[3]}, "stranger": {Actor: uuid.New()},
				"subject": {Subject: uuid.New()}, "action": {Actions: []string{"publishAlgorithmVersion"}}, "rare action": {Actions: []string{"grantRole"}},
				"refused": {Outcomes: []audit.Outcome{audit.Refused}}, "persons": {Persons: true},
			} {
				f.Tenant = c.Tenant
				show("audit", "everything", "position", name, func() error {
					_, err := a.List(b.Context(), f, audit.Newest(true), page.Page{First: rowsPerPage})
					return err
				})
			}
			pool.Close()
		}
	}
}
