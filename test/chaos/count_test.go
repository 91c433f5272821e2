//go:build chaos

package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/graph/relay"
	"tallyard/infra/eventstore"
	"tallyard/infra/eventstore/embedded"
	"tallyard/infra/postgres/pgtest"
	"tallyard/test/program"
)

// version names a version as people do.
type version struct{ algorithm, label string }

// acknowledged reads the writer's list; a line cut by nothing but the moment is left out.
func acknowledged(t *testing.T, dir string) []entry {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, listFile)) //nolint:gosec // G304: our own directory
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	var list []entry
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			list = append(list, e)
		}
	}
	return list
}

// tally is how often each version was found.
type tally map[version]int

func (c tally) of(list []entry) (found int) {
	for _, e := range list {
		if c[version{e.Name, e.Label}] > 0 {
			found++
		}
	}
	return found
}

func (c tally) twice() (n int) {
	for _, times := range c {
		if times > 1 {
			n++
		}
	}
	return n
}

// byGraphQL pages through everything that alice sees.
func byGraphQL(t *testing.T, c *program.Client) (versions tally, algorithms map[string]int, ids map[string]bool) {
	t.Helper()
	versions, algorithms, ids = tally{}, map[string]int{}, map[string]bool{}
	type page struct {
		Nodes []struct {
			ID, Name, Label string
			Algorithm       struct{ Name string }
		}
		PageInfo struct {
			HasNextPage bool
			EndCursor   *string
		}
	}
	walk := func(list, fields string, each func(p page)) {
		for after := (*string)(nil); ; {
			var data struct{ List page }
			query := `query($after: String) {list: ` + list + `(first: 100, after: $after, orderBy: {field: CREATED_AT, direction: ASC}) {
				nodes {` + fields + `} pageInfo {hasNextPage endCursor}}}`
			if err := c.Do(t.Context(), query, map[string]any{"after": after}, &data); err != nil {
				t.Fatal(err)
			}
			each(data.List)
			if after = data.List.PageInfo.EndCursor; !data.List.PageInfo.HasNextPage {
				return
			}
		}
	}
	walk("algorithms", "id name", func(p page) {
		for _, n := range p.Nodes {
			algorithms[n.Name]++
		}
	})
	walk("algorithmVersions", "id label algorithm {name}", func(p page) {
		for _, n := range p.Nodes {
			versions[version{n.Algorithm.Name, n.Label}]++
			ids[n.ID] = true
		}
	})
	return versions, algorithms, ids
}

// whole is what the log holds.
type whole struct {
	events     int
	versions   tally
	algorithms map[string]int // how many streams have the name
	commands   map[uuid.UUID]bool
	eventTwice int // event ids that stand there twice
}

// byAll reads the whole log of a program that is stopped.
func byAll(t *testing.T, dataDir string) whole {
	t.Helper()
	ctx := t.Context()
	socket := filepath.Join(pgtest.TempDir(t), "s", "events.sock")
	server, err := embedded.Open(ctx, embedded.Config{Dir: filepath.Join(dataDir, "events"), Socket: socket, Logger: slog.Default()})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close(context.WithoutCancel(ctx)) //nolint:errcheck // only read
	log, err := eventstore.Open(ctx, eventstore.Config{Address: server.Address()})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // only read
	w := whole{versions: tally{}, algorithms: map[string]int{}, commands: map[uuid.UUID]bool{}}
	names, seen := map[string]string{}, map[uuid.UUID]bool{}
	for e, err := range log.ReadAll(ctx, es.StartPosition, es.Forward, es.Everything) {
		if err != nil {
			t.Fatal(err)
		}
		w.events++
		if seen[e.ID] {
			w.eventTwice++
		}
		seen[e.ID] = true
		var data struct{ Name, Label string }
		var meta struct{ Command uuid.UUID }
		if e.Type != "algorithm.created.v1" && e.Type != "algorithm.version_added.v1" {
			continue
		}
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(e.Metadata, &meta); err != nil {
			t.Fatal(err)
		}
		w.commands[meta.Command] = true
		if e.Type == "algorithm.created.v1" {
			names[e.Stream] = data.Name
			w.algorithms[data.Name]++
			continue
		}
		w.versions[version{names[e.Stream], data.Label}]++
	}
	return w
}

// has tells whether a command of a receipt left events.
func (w whole) has(command string) bool {
	id, ok := relay.Parse(command)
	return ok && id.Kind == relay.Command && w.commands[id.UUID]
}
