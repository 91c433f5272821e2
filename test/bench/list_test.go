package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"tallyard/test/program"
)

// rowsPerPage is what the pages of the web show.
const rowsPerPage = 20

// listing is a query for a list: the fields of a page, and how it is cut and ordered.
type listing struct {
	name, query string
	filter      map[string]any
	orderBy     map[string]any
}

const algorithmsQuery = `query($first: Int!, $after: String, $filter: AlgorithmFilter, $orderBy: AlgorithmOrder) {
	list: algorithms(first: $first, after: $after, filter: $filter, orderBy: $orderBy) {
		edges {cursor node {id name version updatedAt viewerHasFavorited viewerCanCreateVersion
			project {id name} owner {id displayName} latestVersion {id label state visibility description}}}
		pageInfo {hasNextPage endCursor}}}`

const versionsQuery = `query($first: Int!, $after: String, $filter: AlgorithmVersionFilter, $orderBy: AlgorithmOrder) {
	list: algorithmVersions(first: $first, after: $after, filter: $filter, orderBy: $orderBy) {
		edges {cursor node {id label state visibility description updatedAt algorithm {id name owner {id displayName} project {id name}}}}
		pageInfo {hasNextPage endCursor}}}`

const auditQuery = `query($first: Int!, $after: String, $filter: AuditFilter) {
	list: auditEntries(first: $first, after: $after, filter: $filter) {
		edges {cursor node {id action outcome at actor {kind user {id displayName}} subject {id kind} changes {field}}}
		pageInfo {hasNextPage endCursor}}}`

// answer is a page of any list.
type answer struct {
	List struct {
		Edges    []struct{ Cursor string }
		PageInfo struct {
			HasNextPage bool
			EndCursor   *string
		}
	}
}

func (l listing) page(b *testing.B, c *program.Client, first int, after *string) answer {
	b.Helper()
	var a answer
	err := c.Do(b.Context(), l.query, map[string]any{"first": first, "after": after, "filter": l.filter, "orderBy": l.orderBy}, &a)
	if err != nil {
		b.Fatalf("%s: %v", l.name, err)
	}
	return a
}

// cursor is where page 500 begins, or the last whole page where there are fewer.
func (l listing) cursor(b *testing.B, c *program.Client) (after *string, number int) {
	b.Helper()
	const behind = 499 * rowsPerPage
	cheap := listing{name: l.name, filter: l.filter, orderBy: l.orderBy, query: cheaper(l.query)}
	rows := 0
	for rows < behind {
		a := cheap.page(b, c, min(100, behind-rows), after)
		if !a.List.PageInfo.HasNextPage {
			break
		}
		rows += len(a.List.Edges)
		after = a.List.PageInfo.EndCursor
	}
	return after, rows/rowsPerPage + 1
}

// cheaper asks for nothing but the cursors.
func cheaper(query string) string {
	begin, end := strings.Index(query, "edges {"), strings.Index(query, "pageInfo {")
	return query[:begin] + "edges {cursor} " + query[end:]
}

// repeats is how often a page is asked for in a round.
const repeats = 40

// measured is one page's figures.
type measured struct {
	statements int64
	median     time.Duration
}

func (w *world) measure(b *testing.B, l listing, c *program.Client, pool *pgxpool.Pool, after *string) measured {
	b.Helper()
	l.page(b, c, rowsPerPage, after) // statements are prepared, pages are in memory
	if _, err := pool.Exec(b.Context(), `SELECT pg_stat_statements_reset()`); err != nil {
		b.Fatal(err)
	}
	times := make([]time.Duration, repeats)
	for i := range times {
		start := time.Now()
		l.page(b, c, rowsPerPage, after)
		times[i] = time.Since(start)
	}
	slices.Sort(times)
	m := measured{median: times[len(times)/2]}
	// Those on the read models' tables; each travels with a look at the pointer
	// to the live ones, in the same round trip.
	err := pool.QueryRow(b.Context(), `SELECT coalesce(sum(calls / $1), 0)::bigint FROM pg_stat_statements
		WHERE query ~ 'gen_[0-9]+\.' AND query NOT LIKE 'EXPLAIN%'`, int64(repeats)).Scan(&m.statements)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// BenchmarkList measures the first page and page 500 of lists over the whole
// history: statements per page, time, and the ratio of the two, as the median
// of five rounds.
func BenchmarkList(b *testing.B) {
	w := filled(b)
	pool := w.pool(b, nil)
	order := func(field, direction string) map[string]any {
		return map[string]any{"field": field, "direction": direction}
	}
	lists := []struct {
		listing
		as string
	}{
		{listing{"algorithms", algorithmsQuery, nil, nil}, "admin"},
		{listing{"algorithms by name", algorithmsQuery, nil, order("NAME", "ASC")}, "admin"},
		{listing{"algorithms created, oldest first", algorithmsQuery, nil, order("CREATED_AT", "ASC")}, "admin"},
		{listing{"algorithms", algorithmsQuery, nil, nil}, "alice"},
		{listing{"algorithms, PERSONAL", algorithmsQuery, map[string]any{"scope": "PERSONAL"}, nil}, "alice"},
		{listing{"algorithms, GLOBAL", algorithmsQuery, map[string]any{"scope": "GLOBAL"}, nil}, "alice"},
		{listing{"algorithms", algorithmsQuery, nil, nil}, w.fay},
		{listing{"versions", versionsQuery, nil, nil}, "admin"},
		{listing{"versions", versionsQuery, nil, nil}, "alice"},
		{listing{"audit", auditQuery, nil, nil}, "audra"},
	}
	fmt.Printf("\n%-34s %-6s %5s  %11s %11s  %9s %9s  %5s\n", "list", "viewer", "page", "statements", "statements", "first", "that", "ratio")
	for b.Loop() {
		for _, l := range lists {
			c := w.p.Client("dev-" + l.as)
			after, number := l.cursor(b, c)
			const rounds = 5
			ratios := make([]float64, rounds)
			var first, far measured
			for i := range ratios {
				first, far = w.measure(b, l.listing, c, pool, nil), w.measure(b, l.listing, c, pool, after)
				ratios[i] = float64(far.median) / float64(first.median)
			}
			slices.Sort(ratios)
			fmt.Printf("%-34s %-6s %5d  %11d %11d  %6.2f ms %6.2f ms  %5.2f\n", l.name, l.as, number, first.statements, far.statements,
				ms(first.median), ms(far.median), ratios[rounds/2])
		}
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
