package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tallyard/infra/eventstore/embedded"
	"tallyard/infra/eventstore/storetest"
	"tallyard/infra/keys"
	"tallyard/infra/postgres/pgtest"
	"tallyard/test/program"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// site is what the processes of an installation share.
type site struct {
	t              *testing.T
	path, data     string
	key            string // file with the master key
	database       string
	local, overTCP string // addresses of the event store
	last           string // admin socket of the process started last
	admin          string // admin socket of the process that has the API
	client         *program.Client
	started        int
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir := pgtest.TempDir(t)
	s := &site{t: t, path: program.Build(t), data: filepath.Join(dir, "data"), key: filepath.Join(dir, "master.key"), database: pgtest.URL(t)}
	if _, err := keys.LoadOrCreate(s.key); err != nil {
		t.Fatal(err)
	}
	server := storetest.Serve(t, embedded.Config{})
	s.local = server.Address()
	s.overTCP = "esdb://" + overTCP(t, strings.TrimPrefix(s.local, "unix:")) + "?tls=false"
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return s
}

// overTCP lets the store's socket be reached by TCP, as a store on another
// machine is, and gives the address.
func overTCP(t *testing.T, socket string) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", socket) //nolint:noctx // it connects at once or not at all
			if err != nil {
				_ = in.Close() // the client sees that nobody is there
				continue
			}
			for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
				work.Go(func() {
					_, _ = io.Copy(way[0], way[1]) // whichever side ends, both do
					_ = way[0].Close()
					_ = way[1].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		work.Wait()
	})
	return l.Addr().String()
}

// serve starts a process with one role and waits until it is ready.
func (s *site) serve(role, eventStore string, flags ...string) *program.Program {
	s.t.Helper()
	p := s.begin(role, eventStore, flags...)
	s.await(p)
	return p
}

func (s *site) begin(role, eventStore string, flags ...string) *program.Program {
	s.t.Helper()
	s.started++
	socket := filepath.Join(filepath.Dir(s.data), fmt.Sprintf("admin-%d.sock", s.started))
	p, err := program.Start(s.path, append([]string{
		"serve", "--roles", role, "--addr", "127.0.0.1:0", "--data-dir", s.data, "--master-key-file", s.key,
		"--eventstore", eventStore, "--database", s.database, "--admin-socket", socket,
	}, flags...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.last = socket
	if strings.Contains(role, "api") {
		s.admin = socket
	}
	s.t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			s.t.Errorf("%s: %v", role, err)
		}
	})
	return p
}

func (s *site) await(p *program.Program) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	if err := p.Await(ctx); err != nil {
		s.t.Fatal(err)
	}
}

// command runs a command of the program and gives what it printed.
func (s *site) command(args ...string) string {
	s.t.Helper()
	out, err := program.Command(s.t.Context(), s.path, append(args, "--admin-socket", s.admin)...)
	if err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

// do asks the API.
func (s *site) do(query string, variables map[string]any, into any) {
	s.t.Helper()
	if err := s.client.Do(s.t.Context(), query, variables, into); err != nil {
		s.t.Fatal(err)
	}
}

// put uploads a file into the home of whoever the client is.
func (s *site) put(path, content string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPut, s.client.Base+"/files/home/"+path, strings.NewReader(content))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.client.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode >= 300 {
		s.t.Fatalf("%s: %s %s", path, resp.Status, text)
	}
}

// eventually waits for something and tells how long it took.
func (s *site) eventually(what string, ok func() bool) time.Duration {
	s.t.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > time.Minute {
			s.t.Fatal("never: " + what)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(start)
}
