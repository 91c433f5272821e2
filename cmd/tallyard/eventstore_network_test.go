package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tallyard/domain/es"
	"tallyard/infra/eventstore"
	"tallyard/infra/eventstore/embedded"
)

func TestEventStoreNetworkSettings(t *testing.T) {
	good := eventStoreNetwork{listen: "127.0.0.1:2113", users: "users"}
	for name, tc := range map[string]struct {
		set      func(*eventStoreNetwork)
		external bool
		says     string // empty: taken
	}{
		"good":                         {func(*eventStoreNetwork) {}, false, ""},
		"closed":                       {func(n *eventStoreNetwork) { *n = eventStoreNetwork{} }, true, ""},
		"every address, one named":     {func(n *eventStoreNetwork) { n.listen, n.advertise = ":2113", "events.example:2113" }, false, ""},
		"a certificate":                {func(n *eventStoreNetwork) { n.cert, n.key = "c", "k" }, false, ""},
		"another event store":          {func(*eventStoreNetwork) {}, true, "--eventstore"},
		"users without an address":     {func(n *eventStoreNetwork) { n.listen = "" }, false, "--eventstore-listen"},
		"no users":                     {func(n *eventStoreNetwork) { n.users = "" }, false, "--eventstore-users"},
		"a certificate without a key":  {func(n *eventStoreNetwork) { n.cert = "c" }, false, "together"},
		"every address":                {func(n *eventStoreNetwork) { n.listen = "0.0.0.0:2113" }, false, "--eventstore-advertise"},
		"every address, the short way": {func(n *eventStoreNetwork) { n.listen = ":2113" }, false, "--eventstore-advertise"},
		"no port":                      {func(n *eventStoreNetwork) { n.listen = "localhost" }, false, "--eventstore-listen"},
		"a port by name":               {func(n *eventStoreNetwork) { n.listen = "localhost:http" }, false, "--eventstore-listen"},
		"a bad other address":          {func(n *eventStoreNetwork) { n.advertise = "x" }, false, "--eventstore-advertise"},
	} {
		n := good
		tc.set(&n)
		err := n.check(tc.external)
		if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The lines that the command prints let the product's own client in, over TLS,
// by the address that the program prints.
func TestEventStoreOverTheNetwork(t *testing.T) {
	dir, err := os.MkdirTemp("", "ty") // its socket wants a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var lines bytes.Buffer
	if err := printUser(strings.NewReader("open sesame\n"), &lines, "ada", "$admins"); err != nil {
		t.Fatal(err)
	}
	users := filepath.Join(dir, "users")
	if err := os.WriteFile(users, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	n := eventStoreNetwork{listen: "localhost:0", users: users}
	network, err := n.open(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := embedded.Open(ctx, embedded.Config{Dir: filepath.Join(dir, "events"), Socket: filepath.Join(dir, "run", "s"), Network: network})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	address := n.describe(dir, server)
	for password, works := range map[string]bool{"open%20sesame": true, "guess": false} {
		log, err := eventstore.Open(ctx, eventstore.Config{Address: strings.Replace(address, "esdb://", "esdb://ada:"+password+"@", 1)})
		if err != nil {
			t.Fatal(err)
		}
		for _, rerr := range log.ReadAll(ctx, es.StartPosition, es.Forward, 1) {
			err = rerr
		}
		if (err == nil) != works {
			t.Errorf("%s: %v", password, err)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := os.Chmod(users, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := n.open(dir); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
}

func TestEventsUser(t *testing.T) {
	for name, tc := range map[string]struct{ password, user, groups, says string }{
		"no password":       {"\n", "ada", "", "empty"},
		"a long password":   {strings.Repeat("x", 73), "ada", "", "73 bytes"},
		"a colon":           {"p", "a:b", "", "colon"},
		"a group of system": {"p", "$ada", "", "must not begin"},
	} {
		var out bytes.Buffer
		err := printUser(strings.NewReader(tc.password), &out, tc.user, tc.groups)
		if err == nil || !strings.Contains(err.Error(), tc.says) || out.Len() > 0 {
			t.Errorf("%s: %v %q", name, err, out.String())
		}
	}
}
