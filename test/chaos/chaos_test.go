//go:build chaos

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tallyard/infra/postgres/pgtest"
	"tallyard/test/program"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerEnv); dir != "" {
		if err := write(dir); err != nil {
			fmt.Fprintln(os.Stderr, "writer:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func setting(t *testing.T, name string, usual int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return usual
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("%s=%q is no number", name, s)
	}
	return n
}

// slowStart is when a start after a kill is too slow for anybody to believe
// that nothing is wrong, also on a machine with much else to do.
const slowStart = 60 * time.Second

// run is a test under way.
type run struct {
	t          *testing.T
	path, data string
	shared     string // directory shared with the writer
	starts     []time.Duration
	rebuilds   int // kills while a rebuild was under way
	early      int // kills before the program was ready
}

// TestNothingIsLostOrDoubledByKills is the promise of the whole: what was
// acknowledged is there, once, whenever the program is killed.
func TestNothingIsLostOrDoubledByKills(t *testing.T) {
	kills, writes := setting(t, "CHAOS_KILLS", 50), setting(t, "CHAOS_WRITES", 5000)
	r := &run{t: t, path: program.Build(t), data: filepath.Join(pgtest.TempDir(t), "data"), shared: t.TempDir()}
	waitForWriter := startWriter(t, r.shared)
	for i := range kills {
		r.killOnce(i)
	}
	r.finishWriting(writes)
	if err := waitForWriter(); err != nil {
		t.Error("the writer:", err)
	}
	r.count(kills)
}

// start starts the program and tells the writer where.
func (r *run) start() *program.Program {
	r.t.Helper()
	p, err := program.Start(r.path, "dev", "--addr", "127.0.0.1:0", "--data-dir", r.data)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// ready waits until the program is ready.
func (r *run) ready(p *program.Program) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), slowStart)
	defer cancel()
	if err := p.Await(ctx); err != nil {
		p.Kill()
		r.t.Fatal(err)
	}
	r.starts = append(r.starts, time.Since(p.Started))
	tmp := filepath.Join(r.shared, addressFile+".new")
	if err := os.WriteFile(tmp, []byte(p.Base), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(r.shared, addressFile)); err != nil {
		r.t.Fatal(err)
	}
}

// killOnce starts the program and kills it: every fifth time while it starts,
// every fifth while it builds its tables anew, else at any moment of its work.
func (r *run) killOnce(i int) {
	r.t.Helper()
	p := r.start()
	if i%5 == 0 {
		time.Sleep(rand.N(2500 * time.Millisecond))
		r.early++
		p.Kill()
		r.t.Logf("kill %d: %d ms after it was started", i+1, time.Since(p.Started).Milliseconds())
		return
	}
	r.ready(p)
	at := "at work"
	if i%5 == 1 {
		time.Sleep(rand.N(time.Second))
		ctx, cancel := context.WithCancel(r.t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := program.Command(ctx, r.path, "projections", "rebuild", "--data-dir", r.data)
			done <- err
		}()
		select {
		case <-done:
			at = "just after a rebuild"
		case <-time.After(100*time.Millisecond + rand.N(2500*time.Millisecond)):
			at = "in a rebuild"
			r.rebuilds++
		}
		p.Kill()
		cancel()
	} else {
		select {
		case <-p.Exited():
			r.t.Fatalf("it ended by itself:\n%s", p.Output())
		case <-time.After(rand.N(5 * time.Second)):
		}
		p.Kill()
	}
	r.t.Logf("kill %d: %s; the start had taken %d ms; %d acknowledged so far",
		i+1, at, r.starts[len(r.starts)-1].Milliseconds(), len(acknowledged(r.t, r.shared)))
}

// finishWriting lets the writer go on until it has written enough.
func (r *run) finishWriting(writes int) {
	r.t.Helper()
	p := r.start()
	r.ready(p)
	for n := 0; n < writes; n = len(acknowledged(r.t, r.shared)) {
		select {
		case <-p.Exited():
			r.t.Fatalf("it ended by itself:\n%s", p.Output())
		case <-time.After(time.Second):
		}
	}
	if err := os.WriteFile(filepath.Join(r.shared, stopFile), nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
	// The writer's last commands are answered before the program goes.
	last := -1
	for n := len(acknowledged(r.t, r.shared)); n != last; n = len(acknowledged(r.t, r.shared)) {
		last = n
		time.Sleep(3 * time.Second)
	}
	if err := p.Stop(); err != nil {
		r.t.Error(err)
	}
}

// count compares the writer's list with what is there.
func (r *run) count(kills int) {
	t := r.t
	t.Helper()
	list := acknowledged(t, r.shared)
	log := byAll(t, r.data)
	p := r.start()
	defer func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	}()
	r.ready(p)
	versions, algorithms, ids := byGraphQL(t, p.Client("dev-alice"))
	out, err := program.Command(t.Context(), r.path, "projections", "verify", "--json", "--data-dir", r.data)
	var report struct{ Equal bool }
	if err != nil || json.Unmarshal([]byte(out), &report) != nil {
		t.Fatalf("verify: %v\n%s", err, out)
	}
	text, err := program.Command(t.Context(), r.path, "projections", "status", "--data-dir", r.data)
	if err != nil {
		t.Fatal(err, text)
	}
	slices.Sort(r.starts)
	gone, withID, known := 0, 0, map[string]bool{}
	for _, e := range list {
		known[e.Name] = true
		if ids[e.Version] {
			withID++
		}
		if !log.has(e.Command) {
			gone++
		}
	}
	named := 0
	for name := range known {
		if log.algorithms[name] == 1 && algorithms[name] == 1 {
			named++
		}
	}
	lines := []string{
		fmt.Sprintf("kills                 %d (%d before it was ready, %d in a rebuild)", kills, r.early, r.rebuilds),
		fmt.Sprintf("acknowledged          %d", len(list)),
		fmt.Sprintf("found by GraphQL      %d (%d by id), twice %d", versions.of(list), withID, versions.twice()),
		fmt.Sprintf("found by $all         %d (of %d events), twice %d, event ids twice %d", log.versions.of(list), log.events, log.versions.twice(), log.eventTwice),
		fmt.Sprintf("algorithms            %d acknowledged, %d found once in both; %d by GraphQL, %d by $all", len(known), named, len(algorithms), len(log.algorithms)),
		fmt.Sprintf("versions there        %d by GraphQL, %d by $all", len(versions), len(log.versions)),
		fmt.Sprintf("projections verify    equal %v", report.Equal),
		fmt.Sprintf("starts after a kill   median %d ms, slowest %d ms", r.starts[len(r.starts)/2].Milliseconds(), r.starts[len(r.starts)-1].Milliseconds()),
	}
	fmt.Println(strings.Join(lines, "\n") + "\n\n" + text)
	n := len(list)
	switch {
	case versions.of(list) != n || withID != n || log.versions.of(list) != n || gone > 0 || named != len(known):
		t.Errorf("acknowledged commands are missing (%d of the log's commands)", gone)
	case versions.twice() > 0 || log.versions.twice() > 0 || log.eventTwice > 0:
		t.Error("something is there twice")
	case len(versions) != n || len(log.versions) != n:
		// Every command was repeated until it was acknowledged, so nothing else is there.
		t.Error("something is there that was not acknowledged")
	case !report.Equal:
		t.Error("the read models differ from ones built anew:\n" + out)
	}
}
