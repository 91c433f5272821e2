package embedded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestParseUsers(t *testing.T) {
	hash, err := HashPassword("lovelace")
	if err != nil {
		t.Fatal(err)
	}
	good, err := ParseUsers(strings.NewReader("# who may come in\n\nbob:" + hash + ":\nada:" + hash + ":$ops, readers\neve:" + hash))
	if err != nil || !slices.Equal(good.names(), []string{"ada", "bob", "eve"}) {
		t.Fatal(good, err)
	}
	if got := good.byName["ada"].groups; !slices.Equal(got, []string{"$ops", "readers"}) {
		t.Error(got)
	}
	cheap, err := bcrypt.GenerateFromPassword([]byte("p"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ text, says string }{
		"nobody":              {"# nobody\n", "no user"},
		"no colon":            {"ada", "line 1"},
		"a password in clear": {"ada:lovelace:", "none of bcrypt"},
		"a cheap hash":        {"ada:" + string(cheap), "cost 4"},
		"twice":               {"ada:" + hash + "\nada:" + hash, "line 2"},
		"no name":             {":" + hash, "must not be empty"},
		"a system's name":     {"$admins:" + hash, "must not begin with $"},
	} {
		_, err := ParseUsers(strings.NewReader(tc.text))
		if err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (strings.Contains(err.Error(), hash) || strings.Contains(err.Error(), "lovelace")) {
			t.Errorf("%s: the error tells a secret: %v", name, err)
		}
	}
}

func TestUsersFileIsTheOwnersAlone(t *testing.T) {
	lines, err := testUsers()
	if err != nil {
		t.Fatal(err)
	}
	lines = strings.ReplaceAll(lines, "$04$", "$10$") // LoadUsers refuses cheap ones
	path := filepath.Join(t.TempDir(), "users")
	for mode, works := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o620: false} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadUsers(path); (err == nil) != works {
			t.Errorf("%o: %v", mode, err)
		}
	}
}

// A password is hashed once; then calls cost a map's look-up. A wrong one is
// never remembered as right, however it is put together.
func TestProvenCredentials(t *testing.T) {
	lines, err := testUsers()
	if err != nil {
		t.Fatal(err)
	}
	u, err := parseUsers(strings.NewReader(lines), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if _, err := u.prove(ctx, "ada", "secret-ada"); err != nil {
		t.Fatal(err)
	}
	full, stop := context.WithCancel(ctx)
	stop()
	for range maxHashing { // no password can be hashed any more
		u.hashing <- struct{}{}
	}
	if _, err := u.prove(full, "ada", "secret-ada"); err != nil {
		t.Error("hashed again:", err)
	}
	if _, err := u.prove(full, "ada", "secret-bob"); err == nil {
		t.Error("a password was not looked at")
	}
	for range maxHashing {
		<-u.hashing
	}
	for _, c := range [][2]string{{"adasecret", "-ada"}, {"ad", "asecret-ada"}, {"", "adasecret-ada"}, {"ada", ""}} {
		if _, err := u.prove(ctx, c[0], c[1]); err == nil {
			t.Error(c)
		}
	}
	for i := range maxProven + 10 {
		u.proven[[32]byte{byte(i), byte(i >> 8), 1}] = true
	}
	if _, err := u.prove(ctx, "bob", "secret-bob"); err != nil || len(u.proven) > maxProven {
		t.Error(len(u.proven), err)
	}
}

// eventstore.md, Conformance: a readable $users stream. Names stand there once,
// however often the server is opened, and hashes never.
func TestUsersStream(t *testing.T) {
	lines, err := testUsers()
	if err != nil {
		t.Fatal(err)
	}
	dir, tlsDir := t.TempDir(), t.TempDir()
	for _, text := range []string{lines, lines, lines + strings.Replace(strings.Split(lines, "\n")[0], strings.Split(lines, ":")[0], "eve", 1)} {
		users, err := parseUsers(strings.NewReader(text), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		settings, err := OwnCertificate(tlsDir, []string{"localhost"}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		s := serve(t, Config{Dir: dir, Network: &NetworkConfig{Listen: []string{"localhost:0"}, TLS: settings, Users: users}})
		events, err := readForward(t, connect(t, s), usersStream, esdb.Start{}, 100)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range events {
			names = append(names, string(e.Data))
		}
		if slices.Sort(names); !slices.Equal(names, users.names()) {
			t.Fatal(names)
		}
		closeServer(t, s)
	}
}

// eventstore.md, Errors on the wire: a stop ends every subscription with a
// status within a second, over the network too, and refuses new calls.
func TestNetworkStops(t *testing.T) {
	s, ca := serveNetwork(t, 3)
	var reads []streams.Streams_ReadClient
	for n := range 3 {
		req := readRequest("s")
		req.Options.CountOption = &streams.ReadReq_Options_Subscription{}
		r, err := streams.NewStreamsClient(dial(t, s, ca, n)).Read(as("ada"), req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Recv(); err != nil {
			t.Fatal(err)
		}
		reads = append(reads, r)
	}
	began := time.Now()
	closeServer(t, s)
	for n, r := range reads {
		var err error
		for err == nil {
			_, err = r.Recv()
		}
		if status.Code(err) != codes.Unavailable {
			t.Errorf("member %d: %v", n, err)
		}
	}
	// A second is the promise; a loaded machine gets more.
	if took := time.Since(began); took > 10*time.Second {
		t.Error(took)
	}
}

// An unknown name costs as much time as the dearest hash of the file, so that
// the time tells no name.
func TestUnknownNameCostsTheMost(t *testing.T) {
	var lines strings.Builder
	for i, cost := range []int{bcrypt.MinCost, bcrypt.MinCost + 2, bcrypt.MinCost + 1} {
		hash, err := bcrypt.GenerateFromPassword([]byte("p"), cost)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(&lines, "user%d:%s:\n", i, hash)
	}
	u, err := parseUsers(strings.NewReader(lines.String()), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	if cost, err := bcrypt.Cost(u.nobody); err != nil || cost != bcrypt.MinCost+2 {
		t.Errorf("cost %d, %v", cost, err)
	}
}
