// Package program runs the built program as a process of its own, for tests
// and measurements of the whole: what they see is what a person would see.
package program

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Build builds the program into a directory that goes with the test and gives
// the path. TALLYARD_PROGRAM names one that is built already.
func Build(t testing.TB) string {
	t.Helper()
	if p := os.Getenv("TALLYARD_PROGRAM"); p != "" {
		return p
	}
	path := filepath.Join(t.TempDir(), "tallyard")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "tallyard/cmd/tallyard") //nolint:gosec // G204: our own program
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// Program is a running program.
type Program struct {
	// Base is where it listens, http://host:port.
	Base string
	// Started is when its process was started.
	Started time.Time

	cmd    *exec.Cmd
	exited chan struct{}
	err    error
	output *output
}

// output keeps what the program prints and shows the address once it is there.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	address chan string
}

func (o *output) follow(r io.Reader) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		o.mu.Lock()
		o.text.WriteString(line + "\n")
		o.mu.Unlock()
		if _, base, found := strings.Cut(line, "listening "); found {
			select {
			case o.address <- strings.TrimSpace(base):
			default:
			}
		}
	}
}

// Start starts the program at path; Await tells when it listens and is ready.
func Start(path string, args ...string) (*Program, error) {
	// Not under a context: that would kill it where a test wants to see it stop.
	cmd := exec.Command(path, args...) //nolint:gosec,noctx // G204: our own program
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = w, w
	p := &Program{cmd: cmd, exited: make(chan struct{}), output: &output{address: make(chan string, 1)}, Started: time.Now()}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	go p.output.follow(r) // ends when the last holder of the other end is gone
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// Run starts the program, waits until it is ready and stops it with the test.
func Run(t testing.TB, path string, args ...string) *Program {
	t.Helper()
	p, err := Start(path, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := p.Await(ctx); err != nil {
		t.Fatal(err)
	}
	return p
}

// Await waits until the program listens and is ready, and sets Base.
func (p *Program) Await(ctx context.Context) error {
	if p.Base == "" {
		select {
		case p.Base = <-p.output.address:
		case <-p.exited:
			return fmt.Errorf("it ended: %w\n%s", p.err, p.Output())
		case <-ctx.Done():
			return fmt.Errorf("it did not listen: %w\n%s", ctx.Err(), p.Output())
		}
	}
	last := "it did not answer"
	for {
		if text, ready := p.probe(ctx); ready {
			return nil
		} else if text != "" {
			last = text
		}
		select {
		case <-p.exited:
			return fmt.Errorf("it ended: %w\n%s", p.err, p.Output())
		case <-ctx.Done():
			return fmt.Errorf("%s: %w\n%s", last, ctx.Err(), p.Output())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *Program) probe(ctx context.Context) (string, bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Base+"/readyz", nil)
	if err != nil {
		return err.Error(), false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", false
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	text, _ := io.ReadAll(resp.Body)
	return strings.TrimSpace(string(text)), resp.StatusCode == http.StatusOK
}

// Kill ends the program as a power cut would and waits until it is gone. What
// it had started is left to itself.
func (p *Program) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.exited
}

// Stop asks the program to stop and waits for its end; nil for a clean one,
// also when it was killed before.
func (p *Program) Stop() error {
	select {
	case <-p.exited:
		return nil
	default:
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may end just now
	select {
	case <-p.exited:
	case <-time.After(time.Minute):
		p.Kill()
		return fmt.Errorf("it did not stop within a minute\n%s", p.Output())
	}
	if p.err != nil {
		return fmt.Errorf("it stopped with %w\n%s", p.err, p.Output())
	}
	return nil
}

// Exited is closed when the process has ended.
func (p *Program) Exited() <-chan struct{} { return p.exited }

// PID is the process's id.
func (p *Program) PID() int { return p.cmd.Process.Pid }

// Output is what the program printed so far.
func (p *Program) Output() string {
	p.output.mu.Lock()
	defer p.output.mu.Unlock()
	return p.output.text.String()
}

// Command runs another command of the program and gives what it printed.
func Command(ctx context.Context, path string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // G204: our own program
	out, err := cmd.CombinedOutput()
	return string(out), err
}
