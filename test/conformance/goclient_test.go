//go:build conformance

package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const (
	goClient = "github.com/EventStore/EventStore-Client-Go/v4"
	// A good server passes these many of the suite's tests and subtests; the
	// others want a server full of their data, or one that isn't a cluster.
	goClientPasses, goClientSkips = 62, 9
)

// eventstore.md, Conformance: the Go client's own suite, unmodified, as it was
// published: the module cache is verified, and nothing replaces the client.
func TestGoClientSuite(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mod)) {
		if strings.HasPrefix(strings.TrimSpace(line), "replace") {
			t.Errorf("go.mod replaces something: %s", line)
		}
	}
	for _, args := range [][]string{{"mod", "verify"}, {"list", "-m", goClient}} {
		out, err := goTool(t, args...).CombinedOutput()
		t.Logf("go %s\n%s", strings.Join(args, " "), out)
		if err != nil {
			t.Fatal(err)
		}
	}
	start(t, ClientAddresses...)
	run := goTool(t, "test", "-count=1", "-json", "-timeout=5m", goClient+"/esdb", "-run", "TestStreams|TestPersistentSubscriptions|TestMisc")
	run.Env = append(os.Environ(), "CLUSTER=true", "EVENTSTORE_INSECURE=false")
	out, err := run.Output()
	passed, skipped, failed := count(t, out)
	t.Logf("%d passed, %d skipped, %d failed", passed, skipped, len(failed))
	if err != nil || len(failed) > 0 || passed != goClientPasses || skipped != goClientSkips {
		t.Errorf("want %d passed and %d skipped: %v\n%s", goClientPasses, goClientSkips, err, strings.Join(failed, "\n"))
	}
}

func goTool(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = "../.."
	return cmd
}

// count reads what go test -json tells of tests; failed has their output.
func count(t *testing.T, out []byte) (passed, skipped int, failed []string) {
	t.Helper()
	output := map[string]*strings.Builder{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Test == "" {
			continue
		}
		if output[e.Test] == nil {
			output[e.Test] = &strings.Builder{}
		}
		switch e.Action {
		case "output":
			output[e.Test].WriteString(e.Output)
		case "pass":
			passed++
		case "skip":
			skipped++
		case "fail":
			failed = append(failed, e.Test+"\n"+output[e.Test].String())
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return passed, skipped, failed
}
