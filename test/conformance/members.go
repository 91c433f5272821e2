package conformance

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tallyard/infra/eventstore/embedded"
)

// People are the users of the servers that are tried, with their passwords. The
// clients' own suites sign in as the first.
var People = []struct{ Name, Password, Groups string }{
	{"admin", "changeit", "$admins"},
	{"ops", "changeit", "$ops"},
	{"ada", "lovelace", ""},
	{"bob", "builder", "readers"},
}

// ClientAddresses are what the Go client's own suite expects: the last leads.
var ClientAddresses = []string{"localhost:2111", "localhost:2112", "localhost:2113"}

// Members are a server that looks like a cluster: several addresses over one store.
type Members struct {
	Server *embedded.Server
	// CA is the file that clients must trust.
	CA  string
	dir string
}

// StartMembers serves an empty store on the given addresses, over TLS with a
// certificate for localhost. Close removes the store.
func StartMembers(ctx context.Context, logger *slog.Logger, addresses ...string) (_ *Members, err error) {
	// Sockets want shorter paths than tests are given.
	dir, err := os.MkdirTemp("", "es")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	tls, err := embedded.OwnCertificate(filepath.Join(dir, "tls"), []string{"localhost", "127.0.0.1", "::1"}, time.Now)
	if err != nil {
		return nil, err
	}
	users, err := people()
	if err != nil {
		return nil, err
	}
	server, err := embedded.Open(ctx, embedded.Config{
		Dir: filepath.Join(dir, "events"), Socket: filepath.Join(dir, "run", "s"), Logger: logger,
		Network: &embedded.NetworkConfig{Listen: addresses, TLS: tls, Users: users},
	})
	if err != nil {
		return nil, err
	}
	return &Members{Server: server, CA: filepath.Join(dir, "tls", embedded.CAFile), dir: dir}, nil
}

func people() (*embedded.Users, error) {
	var lines strings.Builder
	for _, p := range People {
		hash, err := embedded.HashPassword(p.Password)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&lines, "%s:%s:%s\n", p.Name, hash, p.Groups)
	}
	return embedded.ParseUsers(strings.NewReader(lines.String()))
}

// Close stops the server and removes its store.
func (m *Members) Close(ctx context.Context) error {
	err := m.Server.Close(ctx)
	if rerr := os.RemoveAll(m.dir); err == nil {
		err = rerr
	}
	return err
}
