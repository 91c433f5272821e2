// Package blackbox_test runs the program as people run it and asks it over the
// network alone: what it proves holds for every client.
package blackbox_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// shared is the one program that most tests ask. Tests that stop their program
// start one of their own.
var shared *program

// binary is the program, built by this run unless BLACKBOX_PROGRAM names one
// that is built already; root is where everything lies.
var binary, root string

func TestMain(m *testing.M) {
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "blackbox-*")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// Started by root, Postgres runs as somebody else, who must get through.
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // G302: nothing secret lies in it
		return 1, err
	}
	root, binary = dir, filepath.Join(dir, "tallyard")
	if built := os.Getenv("BLACKBOX_PROGRAM"); built != "" {
		binary = built
	} else if out, err := exec.CommandContext(context.Background(), "go", "build", "-o", binary, "tallyard/cmd/tallyard").CombinedOutput(); err != nil {
		return 1, fmt.Errorf("go build: %w\n%s", err, out)
	}
	shared = &program{dir: filepath.Join(dir, "data")}
	if err := shared.start(); err != nil {
		return 1, err
	}
	code = m.Run()
	return code, shared.stop()
}

// program is a running tallyard in the development mode.
type program struct {
	dir, url string
	flags    []string // beside those that every program has
	cmd      *exec.Cmd
	ended    chan error
	said     lines
}

// lines keeps what a program prints.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start runs the program and returns when it says that it is ready.
func (p *program) start() error {
	args := append([]string{"dev", "--addr", "127.0.0.1:0", "--data-dir", p.dir}, p.flags...)
	p.cmd = exec.CommandContext(context.Background(), binary, args...) //nolint:gosec // G204: the program is the one built here
	p.cmd.Stderr = &p.said
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	ready := make(chan string, 1)
	p.ended = make(chan error, 1)
	go func() {
		var url string
		scan := bufio.NewScanner(io.TeeReader(out, &p.said))
		for scan.Scan() {
			line := strings.TrimSpace(scan.Text())
			if address, ok := strings.CutPrefix(line, "listening"); ok {
				url = strings.TrimSpace(address)
			}
			if strings.HasPrefix(line, "Ready") {
				ready <- url
			}
		}
		p.ended <- p.cmd.Wait()
	}()
	select {
	case p.url = <-ready:
		return nil
	case err := <-p.ended:
		return fmt.Errorf("the program ended before it was ready: %w\n%s", err, p.said.String())
	case <-time.After(2 * time.Minute):
		return errors.Join(fmt.Errorf("the program is not ready after two minutes:\n%s", p.said.String()), p.cmd.Process.Kill())
	}
}

// stop asks the program to end and tells when it did not end well.
func (p *program) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-p.ended:
		if err != nil {
			return fmt.Errorf("the program did not end well: %w\n%s", err, p.said.String())
		}
		return nil
	case <-time.After(time.Minute):
		return errors.Join(fmt.Errorf("the program goes on after SIGTERM:\n%s", p.said.String()), p.cmd.Process.Kill())
	}
}

// own starts a program for one test.
func own(t *testing.T, flags ...string) *program {
	t.Helper()
	p := &program{dir: filepath.Join(root, unique("data")), flags: flags}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// restart stops and starts the program on the same data.
func (p *program) restart(t *testing.T) {
	t.Helper()
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
}
