package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/urfave/cli/v3"

	"tallyard/domain/flows/devseed"
	"tallyard/infra/postgres"
	"tallyard/processes/lifecycle"
	"tallyard/projections/runner"
)

// cliAction makes a command of a way to run the program.
func cliAction(adjust func(config) config) cli.ActionFunc {
	return func(ctx context.Context, cmd *cli.Command) error {
		if cmd.Args().Present() {
			return fmt.Errorf("%q is no setting; settings begin with --, see tallyard %s --help", cmd.Args().First(), cmd.Name)
		}
		c := configOf(cmd)
		if adjust != nil {
			c = adjust(c)
		}
		if err := c.check(); err != nil {
			return err
		}
		return run(ctx, c, os.Stdout)
	}
}

func newLogger(format string) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, o))
	}
	o.Level = slog.LevelWarn // people look at this one; what matters to them is printed
	return slog.New(slog.NewTextHandler(os.Stderr, o))
}

// run runs the program until ctx ends or a part of it fails for good.
func run(ctx context.Context, c config, out *os.File) (err error) {
	logger := newLogger(c.logFormat)
	started := time.Now()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.addr)
	if err != nil {
		return fmt.Errorf("can't listen on %s: %w; choose another address with --addr (port 0 picks a free one)", c.addr, err)
	}
	defer listener.Close() //nolint:errcheck // closed by the server before, on the usual way out
	if c.publicURL == "" {
		c.publicURL = "http://" + listener.Addr().String()
	}
	s, err := startStores(ctx, c, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, within(c.shutdown, s.stop)) }()
	p, err := build(ctx, c, s, logger)
	defer func() { err = errors.Join(err, p.close()) }()
	if err != nil {
		return err
	}
	if err := p.start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, within(c.shutdown, p.stopServices)) }()
	fatal := make(chan error, 2)
	stopServers, err := p.serve(ctx, listener, s, fatal)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, within(c.shutdown, stopServers)) }()
	p.announce(ctx, out, listener.Addr(), c.network.describe(c.dataDir, s.server), started)
	select {
	case <-ctx.Done():
		_, _ = fmt.Fprintln(out, "Stopping.") // as in announce
		return nil
	case err := <-fatal:
		return err
	case <-s.failed():
		return fmt.Errorf("the event store stopped taking writes: %w", s.server.Err())
	}
}

// failed is closed when the embedded event store gives up; it never is for
// another one.
func (s *stores) failed() <-chan struct{} {
	if s.server == nil {
		return nil
	}
	return s.server.Failed()
}

// start makes the people of the development mode and starts the loops. Before
// anything is written it makes sure that the event store is the one that the
// read models were made from.
func (p *parts) start(ctx context.Context) error {
	if err := runner.CheckStore(ctx, p.projecting); err != nil {
		return err
	}
	if p.config.dev {
		d := p.domain
		seed := devseed.Handlers{Runtime: d.runtime, Tenants: d.tenants, Projects: d.projects, Users: d.users}
		if err := seed.Run(ctx); err != nil {
			return err
		}
	}
	if err := p.hub.Ready(ctx); err != nil {
		return err
	}
	return lifecycle.StartAll(ctx, p.services...)
}

func (p *parts) stopServices(ctx context.Context) error {
	return lifecycle.StopAll(ctx, p.services...)
}

// within runs a stop with a deadline of its own: the context that the program
// ran under has ended by then.
func within(d time.Duration, stop func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return stop(ctx)
}

// serve serves HTTP and the command line's socket.
func (p *parts) serve(ctx context.Context, listener net.Listener, s *stores, fatal chan<- error) (func(context.Context) error, error) {
	mux, err := p.routes()
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(p.logger.Handler(), slog.LevelWarn),
	}
	admin, adminListener, err := p.adminServer(ctx, s)
	if err != nil {
		return nil, err
	}
	go func() { fatal <- unlessClosed(server.Serve(listener)) }()
	go func() { fatal <- unlessClosed(admin.Serve(adminListener)) }()
	return func(ctx context.Context) error {
		if p.files != nil {
			p.files.Stop() // uploads can be continued
		}
		stops := []func(context.Context) error{server.Shutdown, admin.Shutdown}
		if p.graphql != nil {
			stops = append(stops, p.graphql.Close)
		}
		return p.stopServing(ctx, stops, func() error { return errors.Join(server.Close(), admin.Close()) })
	}, nil
}

// stopServing stops all at once, so that none uses up the time of the others:
// no new connection comes, and what runs on the old ones ends. What has not ended
// in time is cut off, before the services and stores under it close; that is
// still a clean stop, since whoever is cut off may ask again.
func (p *parts) stopServing(ctx context.Context, stops []func(context.Context) error, cut func() error) error {
	errs := make([]error, len(stops))
	var wg sync.WaitGroup
	for i, stop := range stops {
		wg.Go(func() { errs[i] = stop(ctx) })
	}
	wg.Wait()
	err := errors.Join(errs...)
	if ctx.Err() == nil {
		return err
	}
	p.logger.WarnContext(ctx, "requests that did not end in time are cut off", "error", err)
	return cut()
}

func unlessClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// explain turns an error into words for whoever started the program.
func explain(err error) string {
	var missing *postgres.MissingError
	switch {
	case errors.As(err, &missing):
		return missing.Error()
	}
	return err.Error()
}
