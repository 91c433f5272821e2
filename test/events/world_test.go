package events

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tallyard/infra/postgres/pgtest"
	"tallyard/test/program"
)

// world is a built program and a directory for its data.
type world struct {
	t    *testing.T
	path string
	dir  string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return &world{t: t, path: program.Build(t), dir: pgtest.TempDir(t)}
}

// at is a path in the world's directory.
func (w *world) at(name string) string { return filepath.Join(w.dir, name) }

// dev starts a program on a data directory and waits until it is ready.
func (w *world) dev(data string, more ...string) *program.Program {
	w.t.Helper()
	p, err := program.Start(w.path, append([]string{"dev", "--addr", "127.0.0.1:0", "--data-dir", w.at(data)}, more...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			w.t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	if err := p.Await(ctx); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// refused starts the program on a data directory whose read models have seen
// another store, and sees that it doesn't, but tells the way out.
func (w *world) refused(data string) {
	w.t.Helper()
	w.refusedWith(data, "another event store", "projections rebuild --accept-new-store")
}

// refusedWith starts the program on a data directory and sees that it doesn't,
// with these words.
func (w *world) refusedWith(data string, words ...string) {
	w.t.Helper()
	p, err := program.Start(w.path, "dev", "--addr", "127.0.0.1:0", "--data-dir", w.at(data))
	if err != nil {
		w.t.Fatal(err)
	}
	select {
	case <-p.Exited():
	case <-time.After(2 * time.Minute):
		p.Kill()
		w.t.Fatal("it started")
	}
	for _, word := range words {
		// The last line comes through a pipe, a moment after the end.
		for end := time.Now().Add(10 * time.Second); !strings.Contains(p.Output(), word); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				w.t.Fatalf("refused with %s, without %q", p.Output(), word)
			}
		}
	}
}

func (w *world) stop(p *program.Program) {
	w.t.Helper()
	if err := p.Stop(); err != nil {
		w.t.Fatal(err)
	}
}

// run runs a command that must succeed and gives what it printed.
func (w *world) run(args ...string) string {
	w.t.Helper()
	out, errors, err := w.try(args...)
	if err != nil {
		w.t.Fatalf("tallyard %v: %v\n%s%s", args, err, out, errors)
	}
	return out
}

// fails runs a command that must fail with exit status 1 and these words.
func (w *world) fails(words string, args ...string) string {
	w.t.Helper()
	out, errors, err := w.try(args...)
	var exit *exec.ExitError
	if err == nil || !asExit(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(errors, words) {
		w.t.Fatalf("tallyard %v: %v, where it should fail with %q\n%s%s", args, err, words, out, errors)
	}
	return out
}

func asExit(err error, to **exec.ExitError) bool {
	exit, ok := err.(*exec.ExitError) //nolint:errorlint // Run gives it as it is
	*to = exit
	return ok
}

func (w *world) try(args ...string) (out, errors string, err error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.path, args...)
	cmd.Dir = w.dir
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err = cmd.Run()
	return o.String(), e.String(), err
}

// create makes an algorithm with a version.
func create(t *testing.T, p *program.Program, name string) {
	t.Helper()
	c := p.Client("dev-alice")
	var projects struct {
		Projects struct{ Nodes []struct{ ID string } }
	}
	if err := c.Do(t.Context(), `{projects(first: 1) {nodes {id}}}`, nil, &projects); err != nil || len(projects.Projects.Nodes) == 0 {
		t.Fatal(err, projects)
	}
	var data struct {
		CreateAlgorithm struct{ UserErrors program.Problems }
	}
	err := c.Do(t.Context(), `mutation($i: CreateAlgorithmInput!) {createAlgorithm(input: $i) {userErrors {code message}}}`, map[string]any{"i": map[string]any{
		"projectId": projects.Projects.Nodes[0].ID, "name": name, "label": "v1", "idempotencyKey": name,
		"image": map[string]any{"reference": "pytorch:2.6"}, "source": map[string]any{"command": "python train.py"},
	}}, &data)
	if err != nil || len(data.CreateAlgorithm.UserErrors) > 0 {
		t.Fatal(err, data)
	}
}

// answers are what the API says of everything that create makes, and of who made it.
func answers(t *testing.T, p *program.Program) string {
	t.Helper()
	var data json.RawMessage
	err := p.Client("dev-alice").Do(t.Context(), `{
		algorithms(first: 100, orderBy: {field: CREATED_AT, direction: ASC}) {nodes {id name createdAt project {id name}}}
		algorithmVersions(first: 100, orderBy: {field: CREATED_AT, direction: ASC}) {nodes {id label state version createdAt algorithm {id name}}}
		projects(first: 10) {nodes {id name}}
	}`, nil, &data)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// eventually waits until the API's answer has the words.
func eventually(t *testing.T, p *program.Program, words ...string) string {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for {
		text := answers(t, p)
		missing := ""
		for _, word := range words {
			if !strings.Contains(text, fmt.Sprintf("%q", word)) {
				missing = word
			}
		}
		if missing == "" {
			return text
		}
		if time.Now().After(end) {
			t.Fatalf("%s never shows in %s", missing, text)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// copyKey gives a data directory the installation's key of another.
func (w *world) copyKey(from, to string) {
	w.t.Helper()
	key, err := os.ReadFile(filepath.Join(w.at(from), "keys", "master.key"))
	if err != nil {
		w.t.Fatal(err)
	}
	dir := filepath.Join(w.at(to), "keys")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "master.key"), key, 0o600); err != nil {
		w.t.Fatal(err)
	}
}
