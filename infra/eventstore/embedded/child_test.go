package embedded

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// What a re-executed test binary can be, by childMode.
const (
	childServe     = "serve"
	childBadDisk   = "bad-disk"
	childBadTables = "bad-tables"
	childFullDisk  = "full-disk"
	childFaults    = "faults"

	childDir      = "EVENTSTORE_TEST_DIR"
	childSocket   = "EVENTSTORE_TEST_SOCKET"
	childMemtable = "EVENTSTORE_TEST_MEMTABLE"
)

// runChild is the re-executed test binary's main function.
func runChild(mode string) int {
	var err error
	switch mode {
	case childServe:
		err = childServeForEver()
	case childBadDisk:
		err = childMeetBadDisk()
	case childBadTables:
		err = childMeetBadTables()
	case childFullDisk:
		if err = childCloseOnFullDisk(); err == nil {
			fmt.Println("fine")
		}
	case childFaults:
		err = childRunFaults()
	default:
		err = fmt.Errorf("unknown mode %q", mode)
	}
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	return 0
}

// childServeForEver serves a store until it is killed or its input ends.
func childServeForEver() error {
	memtable, err := strconv.ParseUint(os.Getenv(childMemtable), 10, 64)
	if err != nil {
		return err
	}
	ctx := context.Background()
	st, err := openStore(ctx, storeOptions{dir: os.Getenv(childDir), logger: discard(), clock: time.Now, memtable: memtable})
	if err != nil {
		return err
	}
	s, err := serveStore(ctx, st, Config{Socket: os.Getenv(childSocket), Logger: discard()})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return s.Close(ctx)
}

type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func startChild(t *testing.T, mode string, env ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childMode+"="+mode), env...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, stdin: stdin, lines: bufio.NewScanner(out)}
	t.Cleanup(func() { c.kill() })
	return c
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// fine waits for a child that ends by itself, and says at last that all is well.
func (c *child) fine(t *testing.T) {
	t.Helper()
	var out string
	for c.lines.Scan() {
		out = c.lines.Text()
		t.Log(out)
	}
	if err := c.cmd.Wait(); err != nil || out != "fine" {
		t.Fatalf("%v, %q", err, out)
	}
}
