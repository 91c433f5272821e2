//go:build conformance

package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tallyard/test/npm"
)

// eventstore.md, Conformance: the npm clients, unmodified, over TLS and with
// batch append, which they use because it is advertised.
func TestNPMClients(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	dir, err := npm.InstallFrom(ctx, npmScripts())
	if errors.Is(err, npm.ErrNoNode) && !npm.InCI() {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	m := start(t, "localhost:0")
	for client, scheme := range map[string]string{"eventstore": "esdb", "kurrent": "kurrentdb"} {
		t.Run(client, func(t *testing.T) {
			out, err := npm.Run(ctx, dir, "clients.mjs", client,
				fmt.Sprintf("%s://admin:changeit@%s?tls=true&tlsCAFile=%s", scheme, m.Server.NetworkAddresses()[0], m.CA))
			t.Log("\n" + out)
			if err != nil || !strings.HasSuffix(out, client+": 15 passed, 0 failed") {
				t.Error(err)
			}
		})
	}
}
