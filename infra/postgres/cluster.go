// Package postgres holds everything the program does with PostgreSQL itself:
// a private cluster that it initialises and supervises, the connection pool,
// migrations of the operational tables, leadership by advisory lock, and small
// stores on those tables. Read models are the business of package projections.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// ClusterConfig says where a private cluster lives and how it runs.
type ClusterConfig struct {
	// Dir is the cluster's own directory; data, lock and socket lie in it. The
	// directory above it is the program's data directory: as root it is made
	// passable for the user that Postgres runs as.
	Dir string
	// SocketDir is the directory of the socket. Empty: inside Dir, or in the
	// directory for temporary files when that path were too long.
	SocketDir string
	// BinDir holds initdb and postgres. Empty: found, see FindBinaries.
	BinDir string
	// Account is the user Postgres runs as when the program is root. Empty:
	// DefaultAccount. Data that is there already keeps its owner.
	Account string
	// Logger gets what happens and what the server says. Nil: slog.Default.
	Logger *slog.Logger
	// Settings override the server settings; tests turn fsync off.
	Settings map[string]string
	// InitArgs are further arguments of initdb; tests skip its fsync.
	InitArgs []string
	// StopTimeout is how long a clean stop may take before it is made an
	// immediate one. Zero: 15 seconds.
	StopTimeout time.Duration
	// OrphanSignal is what the server gets when the program dies. Zero: SIGINT,
	// a clean shutdown; tests that throw the data away use SIGQUIT.
	OrphanSignal syscall.Signal
}

// Cluster is a private PostgreSQL server under supervision.
type Cluster struct {
	config         ClusterConfig
	logger         *slog.Logger
	layout         layout
	account        account
	binaries       Binaries
	statStatements bool
	lock           *os.File

	pid      atomic.Int64
	restarts atomic.Int64

	life     context.Context // ends with Stop
	stop     context.CancelFunc
	finished chan struct{} // closed when the supervisor has ended
	unlock   func() error
}

// StartCluster starts the cluster in cfg.Dir, making it if need be, and returns
// when it takes connections. ctx bounds the start only; the cluster runs, and
// is restarted when it dies, until Stop.
//
// It fails with a *MissingError when the binaries are not installed and with
// ErrInUse when another program holds the directory. What an earlier program
// left behind, killed at any moment, is cleaned up.
func StartCluster(ctx context.Context, cfg ClusterConfig) (*Cluster, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Account == "" {
		cfg.Account = DefaultAccount
	}
	if cfg.StopTimeout <= 0 {
		cfg.StopTimeout = 15 * time.Second
	}
	if cfg.OrphanSignal == 0 {
		cfg.OrphanSignal = syscall.SIGINT
	}
	l, err := newLayout(cfg.Dir, cfg.SocketDir)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	c := &Cluster{config: cfg, logger: cfg.Logger, layout: l, finished: make(chan struct{})}
	if err := l.makeRoot(); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if c.lock, err = l.acquire(); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	p, log, err := c.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", errors.Join(err, c.lock.Close()))
	}
	c.unlock = sync.OnceValue(c.lock.Close)
	c.life, c.stop = context.WithCancel(context.Background())
	go c.supervise(p, log)
	return c, nil
}

// begin does everything from an owned directory to a server that answers.
func (c *Cluster) begin(ctx context.Context) (*process, *serverLog, error) {
	version, err := c.layout.dataVersion()
	if err != nil {
		return nil, nil, err
	}
	if c.binaries, err = FindBinaries(ctx, c.config.BinDir, version); err != nil {
		return nil, nil, err
	}
	if c.account, err = chooseAccount(c.layout.data, c.config.Account); err != nil {
		return nil, nil, err
	}
	if err := c.layout.makeReachable(c.account); err != nil {
		return nil, nil, err
	}
	c.statStatements = c.binaries.hasStatStatements(ctx)
	if err := c.clearLeftovers(ctx); err != nil {
		return nil, nil, err
	}
	c.removeUnfinished()
	if version == 0 {
		c.logger.Info("making a Postgres cluster", "dir", c.layout.data, "version", c.binaries.Major, "user", c.account.name)
		if err := c.initialise(ctx); err != nil {
			return nil, nil, err
		}
	}
	return c.launch(ctx)
}

// launch starts the server on data that is there and waits until it answers.
func (c *Cluster) launch(ctx context.Context) (*process, *serverLog, error) {
	if err := c.layout.makeSocketDir(c.account); err != nil {
		return nil, nil, err
	}
	if err := c.writeSettings(c.layout.data); err != nil {
		return nil, nil, err
	}
	if err := c.clearPidFile(); err != nil {
		return nil, nil, err
	}
	p, log, err := c.spawn()
	if err != nil {
		return nil, nil, err
	}
	if err := c.settle(ctx, p, log); err != nil {
		c.end(p, log, 0)
		return nil, nil, err
	}
	c.pid.Store(int64(p.cmd.Process.Pid))
	c.logger.Info("Postgres is ready", "pid", p.cmd.Process.Pid, "socket", c.layout.socket, "version", c.binaries.Major)
	return p, log, nil
}

// Stop ends the server cleanly: sessions are ended, the data is written and
// the directory is free again when it returns. When that takes longer than
// StopTimeout, or ctx ends first, the server is ended at once, which costs a
// recovery at the next start and no data.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stop()
	select {
	case <-c.finished:
	case <-ctx.Done():
		c.signalServer(syscall.SIGQUIT)
		<-c.finished // bounded: end kills in the end
	}
	return c.unlock()
}

// signalServer signals the running server, if there is one.
func (c *Cluster) signalServer(sig syscall.Signal) {
	if pid := int(c.pid.Load()); pid > 0 {
		c.signal(leftover{pid: pid, postmaster: true}, sig)
	}
}

// URL is the address of the program's database, for Open.
func (c *Cluster) URL() string { return c.DatabaseURL(databaseName) }

// DatabaseURL is the address of another database of the cluster.
func (c *Cluster) DatabaseURL(name string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User(programRole), Path: "/" + name,
		RawQuery: url.Values{"host": {c.layout.socket}, "port": {fmt.Sprint(port)}, "sslmode": {"disable"}}.Encode(),
	}
	return u.String()
}

// ConnConfig is URL as pgx wants it.
func (c *Cluster) ConnConfig() (*pgx.ConnConfig, error) { return pgx.ParseConfig(c.URL()) }

// SocketDir is the directory of the server's socket.
func (c *Cluster) SocketDir() string { return c.layout.socket }

// DataDir is the server's data directory.
func (c *Cluster) DataDir() string { return c.layout.data }

// Version is the server's major version.
func (c *Cluster) Version() int { return c.binaries.Major }

// PID is the process number of the server; 0 while there is none.
func (c *Cluster) PID() int { return int(c.pid.Load()) }

// Restarts counts how often the server died and was started again.
func (c *Cluster) Restarts() int { return int(c.restarts.Load()) }
