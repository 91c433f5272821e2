package postgres_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"tallyard/infra/postgres"
	"tallyard/infra/postgres/pgtest"
)

// childDir makes the test binary run a cluster in this directory instead of
// the tests: a program to be killed.
const (
	childDir = "TALLYARD_TEST_CHILD_DIR"
	// childLeavesServer makes it leave its server running when it is killed.
	childLeavesServer = "TALLYARD_TEST_CHILD_LEAVES_SERVER"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(runChild(dir))
	}
	pgtest.Main(m)
}

// runChild runs a cluster as the program does, with everything synced, says
// "ready" and waits to be told to stop.
func runChild(dir string) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cfg := postgres.ClusterConfig{Dir: dir}
	if os.Getenv(childLeavesServer) != "" {
		cfg.OrphanSignal = syscall.SIGURG // which a server does not mind
	}
	c, err := postgres.StartCluster(ctx, cfg)
	if err != nil {
		println("child:", err.Error())
		return 1
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	os.Stdout.WriteString("ready\n")
	<-stop
	if err := c.Stop(ctx); err != nil {
		println("child:", err.Error())
		return 1
	}
	return 0
}

// startChild starts this test binary as a program that runs a cluster in dir.
func startChild(t *testing.T, dir string, env ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.Command(exe)}
	c.cmd.Env = append(append(os.Environ(), childDir+"="+dir), env...)
	c.cmd.Stderr = &c.stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	t.Cleanup(c.kill)
	return c
}

type child struct {
	cmd    *exec.Cmd
	out    *bufio.Reader
	stderr bytes.Buffer
	once   sync.Once
}

// ready waits until the child's cluster takes connections.
func (c *child) ready(t *testing.T) {
	t.Helper()
	if line, err := c.out.ReadString('\n'); err != nil || line != "ready\n" {
		c.kill()
		t.Fatalf("child says %q, %v: %s", line, err, c.stderr.String())
	}
}

// kill is kill -9.
func (c *child) kill() {
	c.once.Do(func() {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait() // it was killed: that is its error
	})
}

// start starts a cluster for a test that disturbs it.
func start(t *testing.T, cfg postgres.ClusterConfig) *postgres.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, err := postgres.StartCluster(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, c) })
	return c
}

func stop(t *testing.T, c *postgres.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// eventually repeats f until it gives no error.
func eventually(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
