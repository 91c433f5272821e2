package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v3"

	"tallyard/infra/eventstore/embedded"
	"tallyard/projections/runner"
)

// adminServer serves the command line on a unix socket that only its owner
// reaches.
func (p *parts) adminServer(ctx context.Context, s *stores) (*http.Server, net.Listener, error) {
	path := p.config.adminSocketPath(s.sockets)
	if conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path); err == nil {
		// Processes of one installation may share the data directory, not the socket.
		return nil, nil, errors.Join(fmt.Errorf("another program answers at the admin socket %s; give this one its own with --admin-socket", path), conn.Close())
	}
	if err := embedded.RemoveStaleSocket(path); err != nil {
		return nil, nil, fmt.Errorf("the admin socket: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, nil, fmt.Errorf("the admin socket can't be made: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	if s.madeTemp {
		// The data directory's path is too long for a socket: it holds the way to it.
		if err := os.WriteFile(filepath.Join(p.config.dataDir, "admin.path"), []byte(path), 0o600); err != nil {
			return nil, nil, errors.Join(err, l.Close())
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/projections/", http.StripPrefix("/projections", p.runner.Admin()))
	mux.HandleFunc("POST /bootstrap", p.bootstrap)
	mux.HandleFunc("POST /quota/recount", p.recountSpaces)
	mux.Handle("/events/", http.StripPrefix("/events", eventsAdmin{server: s.server}.handler()))
	return &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}, l, nil
}

// adminSocketOf is where the program answers that the flags speak of.
func adminSocketOf(cmd *cli.Command) string {
	if socket := cmd.String("admin-socket"); socket != "" {
		return socket
	}
	return filepath.Join(socketsOf(cmd.String("data-dir")), "admin.sock")
}

// socketsOf is the directory of the sockets of a program with a data directory.
func socketsOf(dataDir string) string {
	if b, err := os.ReadFile(filepath.Join(dataDir, "admin.path")); err == nil { //nolint:gosec // G304: the operator names the directory
		return filepath.Dir(string(b))
	}
	return filepath.Join(dataDir, "run")
}

// adminClient speaks to a program over its admin socket.
func adminClient(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
}

// admin asks the running program.
func admin(ctx context.Context, cmd *cli.Command, method, path string, body io.Reader) error {
	socket := adminSocketOf(cmd)
	client := adminClient(socket)
	req, err := http.NewRequestWithContext(ctx, method, "http://tallyard"+path, body)
	if err != nil {
		return err
	}
	if !cmd.Bool("json") {
		req.Header.Set("Accept", "text/plain")
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("no running program answers at %s (give its --data-dir or --admin-socket): %w", socket, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		return errors.New(string(text))
	}
	_, err = io.Copy(os.Stdout, resp.Body)
	return err
}

func adminFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "data-dir", Value: defaultDataDir(), Sources: env("data-dir"), Usage: "data directory of the running program"},
		&cli.StringFlag{Name: "admin-socket", Sources: env("admin-socket"), Usage: "admin socket of the running program, when it was given one"},
		&cli.BoolFlag{Name: "json", Usage: "print JSON"},
	}, more...)
}

// adminAsk makes an action of a request to the running program.
func adminAsk(method, path string) cli.ActionFunc {
	return func(ctx context.Context, cmd *cli.Command) error { return admin(ctx, cmd, method, path, nil) }
}

func projectionsCommand() *cli.Command {
	ask := func(method, path string) cli.ActionFunc { return adminAsk(method, "/projections"+path) }
	return &cli.Command{
		Name: "projections", Usage: "the read models of a running program",
		Commands: []*cli.Command{
			{Name: "status", Usage: "how far each one is, and what is parked or halted", Flags: adminFlags(), Action: ask(http.MethodGet, "/status")},
			{
				Name: "rebuild", Usage: "build all of them anew beside the old ones, without stopping reads",
				Flags: adminFlags(append(storeFlags(), &cli.BoolFlag{
					Name:  "accept-new-store",
					Usage: "with the program stopped: drop the read models of an event store that was wiped or exchanged; the next start builds them from the one that is there",
				})...),
				Action: func(ctx context.Context, cmd *cli.Command) error {
					if cmd.Bool("accept-new-store") {
						return acceptNewStore(ctx, cmd)
					}
					return ask(http.MethodPost, "/rebuild")(ctx, cmd)
				},
			},
			{Name: "verify", Usage: "compare them with ones built anew", Flags: adminFlags(), Action: ask(http.MethodPost, "/verify")},
			{
				Name: "replay-parked", Usage: "try parked streams again",
				Flags: adminFlags(&cli.StringFlag{Name: "projection", Usage: "only of this one"}, &cli.StringFlag{Name: "stream", Usage: "only this one"}),
				Action: func(ctx context.Context, cmd *cli.Command) error {
					q := url.Values{"projection": {cmd.String("projection")}, "stream": {cmd.String("stream")}}
					return admin(ctx, cmd, http.MethodPost, "/projections/replay-parked?"+q.Encode(), nil)
				},
			},
		},
	}
}

// acceptNewStore drops the read models that another event store's events made.
// The program itself refuses to start on them, so this opens the stores alone.
func acceptNewStore(ctx context.Context, cmd *cli.Command) (err error) {
	c := configOf(cmd)
	c.addr, c.roles, c.logFormat, c.shutdown = "127.0.0.1:0", allRoles, "text", 20*time.Second
	if err := c.check(); err != nil {
		return err
	}
	logger := newLogger(c.logFormat)
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
	n, err := runner.AcceptStore(ctx, p.projecting)
	if err != nil {
		return err
	}
	fmt.Printf("Dropped %d generation(s) of read models that another event store had made. Start the program: it builds them from this one.\n", n)
	return nil
}
