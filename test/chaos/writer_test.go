//go:build chaos

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tallyard/test/program"
)

// Files between the test and its writer, in a directory of theirs.
const (
	addressFile = "address" // where the program listens now
	stopFile    = "stop"    // the writer ends when it is there
	listFile    = "list"    // what was acknowledged, a line each
)

// writerEnv tells a copy of the test binary to be the writer in a directory.
const writerEnv = "CHAOS_WRITER"

// writers is how many write at once; perAlgorithm is how many versions each
// algorithm gets.
const (
	writers      = 8
	perAlgorithm = 10
)

// entry is an acknowledged command, as the writer's list keeps it.
type entry struct {
	Key     string // its idempotency key
	Name    string // of the algorithm
	Label   string // of the version that it made
	Command string // its id, as the receipt says
	Version string // the version's id
}

// writer writes until it is told to stop.
type writer struct {
	dir  string
	http *http.Client

	mu   sync.Mutex
	list *os.File
}

// startWriter starts the writer as a process of its own. wait gives its end;
// it is a failure when something was answered that no crash explains.
func startWriter(t *testing.T, dir string) (wait func() error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$") //nolint:gosec,noctx // G204: this very test binary
	cmd.Env = append(os.Environ(), writerEnv+"="+dir)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended unless the test failed
	return cmd.Wait
}

// write is the writer's main.
func write(dir string) error {
	list, err := os.OpenFile(filepath.Join(dir, listFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	w := &writer{dir: dir, list: list, http: &http.Client{Timeout: 15 * time.Second}}
	var g sync.WaitGroup
	failed := make(chan error, writers)
	for i := range writers {
		g.Go(func() {
			if err := w.work(i); err != nil {
				failed <- err
			}
		})
	}
	g.Wait()
	close(failed)
	var all []error
	for err := range failed {
		all = append(all, err)
	}
	return errors.Join(append(all, list.Close())...)
}

func (w *writer) stopped() bool {
	_, err := os.Stat(filepath.Join(w.dir, stopFile))
	return err == nil
}

// work makes algorithms with versions, one command after the other.
func (w *writer) work(worker int) error {
	project, err := w.project()
	if err != nil {
		return err
	}
	for n := 0; !w.stopped(); n++ {
		name := fmt.Sprintf("w%d_%d", worker, n)
		var algorithm string
		for v := 0; v < perAlgorithm && !w.stopped(); v++ {
			input := map[string]any{
				"label": fmt.Sprintf("v%d", v), "idempotencyKey": fmt.Sprintf("%s-%d", name, v),
				"image": map[string]any{"reference": "pytorch:2.6"}, "source": map[string]any{"command": "python train.py"},
			}
			mutation := "createAlgorithmVersion"
			if v == 0 {
				mutation, input["projectId"], input["name"] = "createAlgorithm", project, name
			} else {
				input["algorithmId"] = algorithm
			}
			if algorithm, err = w.untilAcknowledged(mutation, name, input); err != nil {
				return err
			}
		}
	}
	return nil
}

// project waits for the program and finds the project to write in.
func (w *writer) project() (string, error) {
	for {
		var data struct {
			Projects struct{ Nodes []struct{ ID, Name string } }
		}
		if w.do(`{projects(first: 10) {nodes {id name}}}`, nil, &data) == nil && len(data.Projects.Nodes) > 0 {
			return data.Projects.Nodes[0].ID, nil
		}
		if w.stopped() {
			return "", errors.New("stopped before anything was written")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// passing are the codes of answers that another attempt may change.
var passing = []string{"UNAVAILABLE", "INTERNAL", "TIMEOUT", "CONFLICT", "UNAUTHENTICATED"}

// untilAcknowledged sends a command, with the same key again and again, until
// the program says that it is done, and puts it on the list.
func (w *writer) untilAcknowledged(mutation, name string, input map[string]any) (algorithm string, err error) {
	query := fmt.Sprintf(`mutation($input: %s%sInput!) {%s(input: $input) {
		algorithmVersion {id label algorithm {id}} userErrors {code message} receipt {commandId replayed pending}}}`,
		strings.ToUpper(mutation[:1]), mutation[1:], mutation)
	for attempt := 0; ; attempt++ {
		var data map[string]struct {
			AlgorithmVersion *struct {
				ID, Label string
				Algorithm struct{ ID string }
			}
			UserErrors program.Problems
			Receipt    struct{ CommandID string }
		}
		err := w.do(query, map[string]any{"input": input}, &data)
		answer := data[mutation]
		switch problems := program.Problems(nil); {
		case err == nil && len(answer.UserErrors) > 0:
			return "", fmt.Errorf("%s, attempt %d: %w", input["idempotencyKey"], attempt, answer.UserErrors)
		case err == nil && answer.AlgorithmVersion != nil:
			v := answer.AlgorithmVersion
			return v.Algorithm.ID, w.acknowledged(entry{
				Key: input["idempotencyKey"].(string), Name: name, Label: v.Label, Command: answer.Receipt.CommandID, Version: v.ID,
			})
		case err == nil:
			// Done, but the read model did not have it in time: the next answer will.
		case errors.As(err, &problems) && !slices.Contains(passing, problems[0].Extensions.Code):
			return "", fmt.Errorf("%s, attempt %d: %w", input["idempotencyKey"], attempt, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// acknowledged puts a command on the list; it is on disk when it returns.
func (w *writer) acknowledged(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.list.Write(append(line, '\n')); err != nil {
		return err
	}
	return w.list.Sync()
}

// do asks the program wherever it listens now.
func (w *writer) do(query string, variables map[string]any, into any) error {
	base, err := os.ReadFile(filepath.Join(w.dir, addressFile))
	if err != nil {
		return fmt.Errorf("%w: %w", program.ErrNoAnswer, err)
	}
	c := program.Client{Base: string(base), Token: "dev-alice", HTTP: w.http}
	return c.Do(context.Background(), query, variables, into)
}
