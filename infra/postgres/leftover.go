package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// leftover is a process of an earlier server of this cluster.
type leftover struct {
	pid        int
	postmaster bool
}

// leftovers finds the processes that work on this cluster's data. The pid file
// is not asked: it can be stale, damaged, or name a stranger. A process is
// ours when it belongs to the account and shows the cluster's own tag or data
// directory.
func (c *Cluster) leftovers() ([]leftover, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []leftover
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if l, ok := c.recognise(pid); ok {
			found = append(found, l)
		}
	}
	return found, nil
}

func (c *Cluster) recognise(pid int) (leftover, bool) {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	if uid, ok := ownerOf(proc); !ok || uid != c.account.uid {
		return leftover{}, false
	}
	cmdline, err := os.ReadFile(filepath.Join(proc, "cmdline")) //nolint:gosec // G304: the kernel's file
	if err != nil || len(cmdline) == 0 {
		return leftover{}, false // ended, or a zombie
	}
	args := strings.Split(strings.TrimRight(string(cmdline), "\x00"), "\x00")
	// The children title themselves "postgres: <cluster name>: …".
	if strings.HasPrefix(args[0], "postgres: "+c.layout.tag) {
		return leftover{pid: pid}, true
	}
	if filepath.Base(args[0]) != "postgres" {
		return leftover{}, false
	}
	i := slices.Index(args, "-D")
	if i >= 0 && i+1 < len(args) && args[i+1] == c.layout.data {
		return leftover{pid: pid, postmaster: true}, true
	}
	return leftover{}, false
}

// signal sends sig to a leftover, and only if the number is still its own:
// os.FindProcess pins the process before it is looked at again.
func (c *Cluster) signal(l leftover, sig syscall.Signal) {
	p, err := os.FindProcess(l.pid)
	if err != nil {
		return
	}
	defer func() { _ = p.Release() }() // nothing depends on it
	if again, ok := c.recognise(l.pid); !ok || again.postmaster != l.postmaster {
		return
	}
	if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.logger.Warn("cannot signal an old Postgres process", "pid", l.pid, "signal", sig.String(), "error", err)
	}
}

// clearLeftovers ends every process of an earlier server: nicely, then
// at once, then by force. Postgres recovers from each of them.
func (c *Cluster) clearLeftovers(ctx context.Context) error {
	steps := []struct {
		sig         syscall.Signal
		postmasters bool // only those: their children follow
		wait        time.Duration
	}{
		{syscall.SIGINT, true, 10 * time.Second},
		{syscall.SIGQUIT, false, 5 * time.Second},
		{syscall.SIGKILL, false, 5 * time.Second},
	}
	said := false
	for _, step := range steps {
		found, err := c.leftovers()
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return nil
		}
		if !said {
			said = true
			c.logger.Info("an earlier Postgres of this data directory still runs: ending it", "processes", len(found))
		}
		orphans := !slices.ContainsFunc(found, func(l leftover) bool { return l.postmaster })
		for _, l := range found {
			if !step.postmasters || l.postmaster {
				c.signal(l, step.sig)
			}
		}
		wait := step.wait
		if orphans && step.postmasters {
			wait = time.Second // they end by themselves when they miss their postmaster
		}
		if gone, err := c.waitGone(ctx, wait); err != nil || gone {
			return err
		}
	}
	return fmt.Errorf("processes of an earlier Postgres on %s cannot be ended", c.layout.data)
}

func (c *Cluster) waitGone(ctx context.Context, d time.Duration) (bool, error) {
	deadline := time.Now().Add(d)
	for {
		found, err := c.leftovers()
		if err != nil || len(found) == 0 {
			return err == nil, err
		}
		if time.Now().After(deadline) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// clearPidFile removes a pid file that would keep the server from starting: a
// damaged one, or one whose number has become a stranger's. Any other is left
// to the server, which also looks for shared memory that is still in use.
func (c *Cluster) clearPidFile() error {
	path := filepath.Join(c.layout.data, "postmaster.pid")
	b, err := os.ReadFile(path) //nolint:gosec // G304: the cluster's own file
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err == nil && pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return nil // stale in the way the server itself can tell
	}
	c.logger.Warn("removing the pid file of an earlier Postgres: it names no process of this cluster", "content", first)
	return os.Remove(path)
}
