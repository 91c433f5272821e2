package postgres

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 10 * time.Second
	// A server that ran this long and then dies is started again at once.
	healthyAfter = time.Minute
	// How long a start may take, recovery after a crash included.
	startTimeout = 10 * time.Minute
)

// supervise owns the server process until the cluster is stopped.
func (c *Cluster) supervise(p *process, log *serverLog) {
	defer close(c.finished)
	backoff := firstBackoff
	for {
		started := time.Now()
		select {
		case <-c.life.Done():
			c.end(p, log, c.config.StopTimeout)
			return
		case <-p.done:
		}
		c.pid.Store(0)
		c.logger.Error("Postgres died; starting it again", "error", p.err, "last", log.last())
		if time.Since(started) > healthyAfter {
			backoff = firstBackoff
		}
		p, log = c.relaunch(&backoff)
		if p == nil {
			return
		}
		c.restarts.Add(1)
	}
}

// relaunch starts the server again, as often as it takes; nil when the cluster
// is to stop.
func (c *Cluster) relaunch(backoff *time.Duration) (*process, *serverLog) {
	for {
		select {
		case <-c.life.Done():
			return nil, nil
		case <-time.After(*backoff):
		}
		*backoff = min(2**backoff, maxBackoff)
		ctx, cancel := context.WithTimeout(c.life, startTimeout)
		err := c.clearLeftovers(ctx)
		var p *process
		var log *serverLog
		if err == nil {
			p, log, err = c.launch(ctx)
		}
		cancel()
		if err == nil {
			return p, log
		}
		if c.life.Err() == nil {
			c.logger.Error("Postgres does not start", "error", err, "next", *backoff)
		}
	}
}

// spawn starts the server process.
func (c *Cluster) spawn() (*process, *serverLog, error) {
	log := &serverLog{logger: c.logger}
	log.quiet.Store(true)
	cmd := exec.Command(c.binaries.server(), "-D", c.layout.data) //nolint:gosec,noctx // G204: an installed server; what ends it is decided below
	cmd.Dir = c.layout.data
	cmd.Env = serverEnv()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = c.account.attributes(c.config.OrphanSignal)
	p, err := startProcess(cmd)
	if err != nil {
		return nil, nil, c.explainStart(err)
	}
	return p, log, nil
}

// settle waits until the server answers and has roles and database.
func (c *Cluster) settle(ctx context.Context, p *process, log *serverLog) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	began, said := time.Now(), time.Now()
	for {
		err := c.prepare(ctx)
		if err == nil {
			log.quiet.Store(false)
			return nil
		}
		if !isStarting(err) {
			return err
		}
		if time.Since(said) > 5*time.Second {
			said = time.Now()
			c.logger.Info("waiting for Postgres (it recovers after a crash)", "seconds", int(time.Since(began).Seconds()))
		}
		select {
		case <-p.done:
			return fmt.Errorf("the server ended while starting: %w\n%s", p.err, log.last())
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w (%w)\n%s", ctx.Err(), err, log.last())
		case <-time.After(15 * time.Millisecond):
		}
	}
}

// end stops the server: cleanly within d, then at once, then by force.
func (c *Cluster) end(p *process, log *serverLog, d time.Duration) {
	log.quiet.Store(true)
	steps := []struct {
		sig  syscall.Signal
		wait time.Duration
	}{{syscall.SIGINT, d}, {syscall.SIGQUIT, 5 * time.Second}, {syscall.SIGKILL, 5 * time.Second}}
	for _, s := range steps {
		if s.wait == 0 {
			continue
		}
		_ = p.cmd.Process.Signal(s.sig) // an error means that it has ended
		if p.ended(s.wait) {
			break
		}
		c.logger.Warn("Postgres takes too long to stop", "after", s.sig.String())
	}
	c.pid.Store(0)
	// Children of a killed server hold its memory for a moment.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := c.clearLeftovers(ctx); err != nil {
		c.logger.Warn("processes of Postgres are left", "error", err)
	}
}
