package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"tallyard/domain/storage"
	"tallyard/infra/files"
)

// config is what a running program is told.
type config struct {
	addr        string
	dataDir     string
	roles       []string
	eventStore  string // empty: embedded
	database    string // empty: embedded
	masterKey   string // file; empty: inside the data directory
	origins     []string
	dev         bool
	logFormat   string
	shutdown    time.Duration
	introspect  bool
	adminSocket string
	copyRate    int64 // bytes a second that copies of files read; 0: no limit
	limits      storage.Limits
	network     eventStoreNetwork
	room        eventStoreRoom
	providers   string // file of identity providers; empty: none
	lostPeople  bool   // go on without the keys of persons
	publicURL   string // where browsers reach the program; empty: where it listens
}

// env names a flag's environment variable.
func env(flag string) cli.ValueSourceChain {
	return cli.EnvVars("TALLYARD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_")))
}

// Roles of a process.
const (
	roleAPI       = "api"
	roleProjector = "projector"
	roleWorker    = "worker"
)

var allRoles = []string{roleAPI, roleProjector, roleWorker}

func commonFlags(addr string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "addr", Value: addr, Sources: env("addr"), Usage: "address to listen on; port 0 picks a free one and prints it"},
		&cli.StringFlag{Name: "data-dir", Value: defaultDataDir(), Sources: env("data-dir"), Usage: "where files and everything embedded lie"},
		&cli.DurationFlag{Name: "shutdown-timeout", Value: 20 * time.Second, Sources: env("shutdown-timeout"), Usage: "how long a clean stop may take"},
		&cli.Int64Flag{Name: "copy-rate", Sources: env("copy-rate"), Usage: "bytes a second that copies of files may read, all of a process together; 0: no limit"},
		&cli.Int64Flag{Name: "quota-home", Sources: env("quota-home"), Usage: "bytes that a home may hold, where none were set for it; 0: no limit"},
		&cli.Int64Flag{Name: "quota-project", Sources: env("quota-project"), Usage: "the same for the space of a project"},
		&cli.Int64Flag{Name: "quota-tenant", Sources: env("quota-tenant"), Usage: "the same for the space of a tenant"},
		&cli.StringFlag{Name: "oidc-config", Sources: env("oidc-config"), Usage: "file of OpenID Connect providers whose people may sign in (JSON, docs/operations.md)"},
		&cli.BoolFlag{Name: "accept-lost-people", Usage: "start although the database has lost the keys of persons, who are erased persons then"},
		&cli.StringFlag{Name: "public-url", Sources: env("public-url"), Usage: "where browsers reach the program, such as https://tallyard.example.com (default: where it listens); sign-in by browser comes back there"},
		&cli.StringFlag{Name: "admin-socket", Sources: env("admin-socket"), Usage: "unix socket of the command line (default: inside the data directory)"},
	}
}

// defaultDataDir is the system's place for root and the user's for others.
func defaultDataDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/tallyard"
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "tallyard")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "data"
	}
	return filepath.Join(home, ".local", "share", "tallyard")
}

func devCommand() *cli.Command {
	return &cli.Command{
		Name:  "dev",
		Usage: "run everything on this machine, with people to try it as",
		Flags: slices.Concat(commonFlags("127.0.0.1:8080"), eventStoreNetworkFlags(), eventStoreRoomFlags()),
		Action: cliAction(func(c config) config {
			c.dev, c.roles, c.introspect, c.logFormat = true, allRoles, true, "text"
			return c
		}),
	}
}

func serveCommand() *cli.Command {
	flags := append(slices.Concat(commonFlags("127.0.0.1:8080"), storeFlags(), eventStoreNetworkFlags(), eventStoreRoomFlags()),
		&cli.StringSliceFlag{Name: "roles", Value: allRoles, Sources: env("roles"), Usage: "what this process does: api, projector, worker"},
		&cli.StringSliceFlag{Name: "origins", Sources: env("origins"), Usage: "foreign origins that browsers may call from"},
		&cli.BoolFlag{Name: "introspection", Sources: env("introspection"), Usage: "let clients ask for the schema"},
		&cli.StringFlag{Name: "log-format", Value: "json", Sources: env("log-format"), Usage: "json or text"},
	)
	return &cli.Command{Name: "serve", Usage: "run as a part of an installation", Flags: flags, Action: cliAction(nil)}
}

// storeFlags are where the outside systems are.
func storeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "eventstore", Sources: env("eventstore"), Usage: "address of the event store, esdb://…; empty: the embedded one"},
		&cli.StringFlag{Name: "database", Sources: env("database"), Usage: "address of Postgres 14 or newer, postgres://…; empty: a private one"},
		&cli.StringFlag{Name: "master-key-file", Sources: env("master-key-file"), Usage: "file with the installation's key, readable by its owner alone; empty: made inside the data directory"},
	}
}

func configOf(cmd *cli.Command) config {
	return config{
		addr: cmd.String("addr"), dataDir: cmd.String("data-dir"), roles: cmd.StringSlice("roles"),
		eventStore: cmd.String("eventstore"), database: cmd.String("database"), masterKey: cmd.String("master-key-file"),
		origins: cmd.StringSlice("origins"), introspect: cmd.Bool("introspection"), logFormat: cmd.String("log-format"),
		shutdown: cmd.Duration("shutdown-timeout"), adminSocket: cmd.String("admin-socket"),
		copyRate: cmd.Int64("copy-rate"),
		limits:   storage.Limits{Home: cmd.Int64("quota-home"), Project: cmd.Int64("quota-project"), Tenant: cmd.Int64("quota-tenant")},
		network:  eventStoreNetworkOf(cmd),
		room:     eventStoreRoomOf(cmd), providers: cmd.String("oidc-config"), publicURL: cmd.String("public-url"), lostPeople: cmd.Bool("accept-lost-people"),
	}
}

// check refuses what can't work, with words that say what to do.
func (c *config) check() error {
	host, port, err := net.SplitHostPort(c.addr)
	if err != nil {
		return fmt.Errorf("--addr %q is not an address; give host:port, such as 127.0.0.1:8080", c.addr)
	}
	if c.dev && !loopback(host) {
		return errors.New("the development mode signs everybody in without a password and listens on loopback only; use 127.0.0.1:" + port + ", or tallyard serve")
	}
	for _, r := range c.roles {
		if !slices.Contains(allRoles, r) {
			return fmt.Errorf("--roles: there is no role %q; choose of %s", r, strings.Join(allRoles, ", "))
		}
	}
	if c.shutdown <= 0 {
		return fmt.Errorf("--shutdown-timeout %v: give a time above zero, such as 20s", c.shutdown)
	}
	if c.copyRate != 0 && c.copyRate < files.MinCopyRate {
		return fmt.Errorf("--copy-rate %d: give 0 for no limit, or at least %d bytes a second", c.copyRate, files.MinCopyRate)
	}
	if min(c.limits.Home, c.limits.Project, c.limits.Tenant) < 0 {
		return errors.New("--quota-home, --quota-project, --quota-tenant: give 0 for no limit, or bytes")
	}
	if err := checkPublicURL(c.publicURL); err != nil {
		return err
	}
	if err := errors.Join(c.network.check(c.eventStore != ""), c.room.check(c.eventStore != "")); err != nil {
		return err
	}
	if c.logFormat != "json" && c.logFormat != "text" {
		return fmt.Errorf("--log-format %q: choose json or text", c.logFormat)
	}
	if c.dataDir == "" {
		return errors.New("--data-dir is empty; name a directory, or leave it out for " + defaultDataDir())
	}
	if c.dataDir, err = filepath.Abs(c.dataDir); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	if len(c.roles) < len(allRoles) && (c.eventStore == "" || c.database == "") {
		return errors.New("a process with some of the roles needs a shared event store and database: give --eventstore and --database")
	}
	return nil
}

// checkPublicURL refuses what is no origin: cookies travel to all of it.
func checkPublicURL(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Path != "" && u.Path != "/") {
		return errors.New("--public-url: give scheme and host, such as https://tallyard.example.com")
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())) {
		return errors.New("--public-url: it must be https, but on loopback; sign-ins travel there")
	}
	return nil
}

func (c config) has(role string) bool { return slices.Contains(c.roles, role) }

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
