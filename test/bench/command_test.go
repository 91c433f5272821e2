package bench

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/test/program"
)

// empty gives a program of its own without a history.
func empty(b *testing.B) *world {
	b.Helper()
	w := bare(b)
	w.start(b)
	b.Cleanup(func() {
		if err := w.p.Stop(); err != nil {
			b.Error(err)
		}
	})
	return w
}

// commands sends mutations over HTTP as alice.
type commands struct {
	b       *testing.B
	client  *program.Client
	project string
	serial  atomic.Int64
}

func (w *world) commands(b *testing.B) *commands {
	b.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 128}
	b.Cleanup(transport.CloseIdleConnections)
	c := &commands{b: b, client: &program.Client{Base: w.p.Base, Token: "dev-alice", HTTP: &http.Client{Transport: transport}}}
	var data struct {
		Projects struct{ Nodes []struct{ ID string } }
	}
	if err := c.client.Do(b.Context(), `{projects(first: 1) {nodes {id}}}`, nil, &data); err != nil {
		b.Fatal(err)
	}
	c.project = data.Projects.Nodes[0].ID
	return c
}

// mutate sends a mutation that makes or changes a version. It tells the id of
// the version and whether the read model had it in time.
func (c *commands) mutate(mutation, inputType string, input map[string]any) (id string, pending bool, err error) {
	var data map[string]struct {
		AlgorithmVersion *struct{ ID, State string }
		UserErrors       program.Problems
		Receipt          struct{ Pending bool }
	}
	query := fmt.Sprintf(`mutation($i: %s!) {%s(input: $i) {algorithmVersion {id state} userErrors {code message} receipt {pending}}}`, inputType, mutation)
	if err := c.client.Do(c.b.Context(), query, map[string]any{"i": input}, &data); err != nil {
		return "", false, err
	}
	a := data[mutation]
	switch {
	case len(a.UserErrors) > 0:
		return "", false, a.UserErrors
	case a.AlgorithmVersion == nil:
		return "", a.Receipt.Pending, nil
	}
	return a.AlgorithmVersion.ID, a.Receipt.Pending, nil
}

func (c *commands) create() (id string, pending bool, err error) {
	return c.mutate("createAlgorithm", "CreateAlgorithmInput", map[string]any{
		"projectId": c.project, "name": fmt.Sprintf("bench_%d", c.serial.Add(1)), "label": "v1",
		"image": map[string]any{"reference": "pytorch:2.6"}, "source": map[string]any{"command": "python train.py"},
	})
}

// figures are the times of some requests.
type figures struct {
	times           []time.Duration
	took            time.Duration
	pending, failed int
}

func (f figures) at(part float64) float64 { return ms(f.times[int(float64(len(f.times)-1)*part)]) }

func (f figures) String() string {
	return fmt.Sprintf("%6d  %8.0f/s  %8.2f ms  %8.2f ms  %8.2f ms  %7d  %6d",
		len(f.times), float64(len(f.times))/f.took.Seconds(), f.at(0.5), f.at(0.99), f.at(1), f.pending, f.failed)
}

// all does something n times by some clients at once.
func all(clients, n int, do func(i int) (pending bool, err error)) (figures, error) {
	var (
		f     figures
		mu    sync.Mutex
		g     sync.WaitGroup
		next  atomic.Int64
		first error
	)
	start := time.Now()
	for range clients {
		g.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				begin := time.Now()
				pending, err := do(i)
				took := time.Since(begin)
				mu.Lock()
				f.times = append(f.times, took)
				if pending {
					f.pending++
				}
				if err != nil {
					f.failed++
					first = err
				}
				mu.Unlock()
			}
		})
	}
	g.Wait()
	f.took = time.Since(start)
	slices.Sort(f.times)
	return f, first
}

// BenchmarkP3Command measures a command from the request to the answer, which
// waits for the read model: publish over HTTP, by 1 and by 64 clients, and
// create; beside what it can't go below, a bare append and a bare upsert.
func BenchmarkP3Command(b *testing.B) {
	w := empty(b)
	c := w.commands(b)
	for b.Loop() {
		fmt.Printf("\n%-24s %7s %6s  %10s  %11s  %11s  %11s  %7s  %6s\n", "what", "clients", "count", "rate", "p50", "p99", "slowest", "pending", "failed")
		show := func(what string, clients, n int, do func(i int) (bool, error)) {
			f, err := all(clients, n, do)
			fmt.Printf("%-24s %7d %s\n", what, clients, f)
			if err != nil {
				b.Error(what, err)
			}
		}
		var mu sync.Mutex
		var ids []string
		create := func(int) (bool, error) {
			id, pending, err := c.create()
			mu.Lock()
			defer mu.Unlock()
			if id != "" {
				ids = append(ids, id)
			}
			return pending, err
		}
		publish := func(of []string) func(i int) (bool, error) {
			return func(i int) (bool, error) {
				_, pending, err := c.mutate("publishAlgorithmVersion", "PublishAlgorithmVersionInput", map[string]any{"id": of[i], "visibility": "GLOBAL"})
				return pending, err
			}
		}
		show("create", 1, 300, create)
		show("create", 64, 3000, create)
		show("publish", 1, 300, publish(ids[:300]))
		show("publish", 64, len(ids)-300, publish(ids[300:]))
		w.floor(b, show)
	}
}

// floor measures the two writes that no command does without.
func (w *world) floor(b *testing.B, show func(string, int, int, func(int) (bool, error))) {
	b.Helper()
	log := w.log(b)
	defer log.Close() //nolint:errcheck // only this measurement's connection
	for _, clients := range []int{1, 64} {
		show("bare append, 400 B", clients, 300*min(clients, 10), func(int) (bool, error) {
			// A type of its own would halt the projections: a note in a stream of the store's own.
			raw := es.Raw{ID: uuid.New(), Type: "$bench", Data: []byte(fmt.Sprintf(`{"pad":"%0380d"}`, 0)), Metadata: []byte(`{}`)}
			_, err := log.Append(b.Context(), "$bench-"+uuid.NewString(), es.NoStream(), raw)
			return false, err
		})
	}
	pool := w.pool(b, nil)
	if _, err := pool.Exec(b.Context(), `CREATE TABLE IF NOT EXISTS public.bench (id uuid PRIMARY KEY, v int)`); err != nil {
		b.Fatal(err)
	}
	show("bare upsert", 1, 300, func(i int) (bool, error) {
		_, err := pool.Exec(b.Context(), `INSERT INTO public.bench VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v`, uuid.New(), i)
		return false, err
	})
}
