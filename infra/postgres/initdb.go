package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// unfinishedPrefix starts the name of a data directory that is being made.
const unfinishedPrefix = "initdb-"

// dataVersion is the major version that made the data, 0 when there is none.
func (l layout) dataVersion() (int, error) {
	b, err := os.ReadFile(filepath.Join(l.data, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		if _, statErr := os.Lstat(l.data); statErr == nil {
			return 0, fmt.Errorf("%s exists and is no Postgres data directory: move it away, or use another data directory", l.data)
		}
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	v, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0, fmt.Errorf("%s/PG_VERSION is damaged: %w", l.data, err)
	}
	return v, nil
}

// initialise makes the data directory: under another name first, so that a
// kill in the middle leaves nothing that looks like a cluster.
func (c *Cluster) initialise(ctx context.Context) error {
	tmp, err := os.MkdirTemp(c.layout.root, unfinishedPrefix)
	if err != nil {
		return err
	}
	defer func() {
		if rmErr := os.RemoveAll(tmp); rmErr != nil {
			c.logger.Warn("cannot remove an unfinished data directory", "dir", tmp, "error", rmErr)
		}
	}()
	if err := c.account.give(tmp); err != nil {
		return err
	}
	err = c.initdb(ctx, tmp, "C.UTF-8")
	if err != nil && strings.Contains(err.Error(), "invalid locale name") {
		c.logger.Warn("this machine has no locale C.UTF-8: only ASCII letters have upper and lower case in searches")
		if err = os.RemoveAll(filepath.Join(tmp, "base")); err == nil {
			err = c.initdb(ctx, tmp, "C")
		}
	}
	if err != nil {
		return err
	}
	if err := c.writeSettings(tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, c.layout.data); err != nil {
		return err
	}
	return syncDir(c.layout.root)
}

func (c *Cluster) initdb(ctx context.Context, dir, ctype string) error {
	log := &serverLog{logger: c.logger}
	log.quiet.Store(true)
	args := []string{
		"-D", dir, "-U", adminRole, "-E", "UTF8",
		// Keys sort bytewise, as Go compares them; letters are Unicode's.
		"--locale=C", "--lc-ctype=" + ctype,
		"--auth-local=peer", "--auth-host=reject",
		"--no-instructions",
		"--data-checksums", // a damaged page is an error, never a wrong answer
	}
	args = append(args, c.config.InitArgs...)
	cmd := exec.Command(c.binaries.initdb(), args...) //nolint:gosec,noctx // G204: an installed server; what ends it is decided below
	cmd.Dir = dir
	cmd.Env = serverEnv()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = c.account.attributes(syscall.SIGKILL)
	p, err := startProcess(cmd)
	if err != nil {
		return c.explainStart(err)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		_ = cmd.Process.Kill() // it may have ended by itself
		<-p.done
		return ctx.Err()
	}
	if p.err != nil {
		return fmt.Errorf("initdb failed: %w\n%s", p.err, log.last())
	}
	return nil
}

// removeUnfinished removes what a kill in the middle of initdb left.
func (c *Cluster) removeUnfinished() {
	found, err := filepath.Glob(filepath.Join(c.layout.root, unfinishedPrefix+"*"))
	if err != nil {
		return // the pattern is well-formed
	}
	for _, dir := range found {
		// The killed initdb's helper may write for a moment longer.
		for range 5 {
			if err = os.RemoveAll(dir); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil {
			c.logger.Warn("cannot remove an unfinished data directory", "dir", dir, "error", err)
		}
	}
}

// serverEnv is all that a server gets of the program's environment: PGDATA,
// PGPORT and the like must not leak in.
func serverEnv() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LANG=C", "TZ=UTC"}
}

// explainStart adds what to do to an error of starting a process as another user.
func (c *Cluster) explainStart(err error) error {
	if errors.Is(err, syscall.EPERM) && !c.account.own {
		return fmt.Errorf("the program may not start Postgres as user %s (it is root without the right to change user): "+
			"run it as an ordinary user: %w", c.account.name, err)
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // G304: the cluster's own directory
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}
