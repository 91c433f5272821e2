package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// childMode names, in the environment, what a re-executed test binary is to do
// instead of running tests.
const childMode = "EVENTSTORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		os.Exit(runChild(mode))
	}
	goleak.VerifyTestMain(m)
}

func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "es")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// serve opens a server that is closed with the test, if not before.
func serve(t testing.TB, cfg Config) *Server {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Socket == "" {
		cfg.Socket = socketPath(t)
	}
	cfg.DiskReserve = -1
	s, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeServer(t, s) })
	return s
}

func closeServer(t testing.TB, s *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// connect gives the unmodified public client.
func connect(t testing.TB, s *Server) *esdb.Client {
	t.Helper()
	c, err := esdb.NewClient(&esdb.Configuration{
		Address: s.Address(), DisableTLS: true, MaxDiscoverAttempts: 1, GossipTimeout: 5,
		NodePreference: esdb.NodePreferenceLeader, KeepAliveInterval: 10 * time.Second, KeepAliveTimeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// stub gives the protocol's stub, for what the client hides.
func stub(t testing.TB, s *Server) streams.StreamsClient {
	t.Helper()
	conn, err := grpc.NewClient(s.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return streams.NewStreamsClient(conn)
}

func newEvent(id uuid.UUID) esdb.EventData {
	return esdb.EventData{EventID: id, EventType: "made", ContentType: esdb.ContentTypeJson, Data: []byte(`{"a":1}`), Metadata: []byte(`{"m":1}`)}
}

func newEvents(n int) []esdb.EventData {
	out := make([]esdb.EventData, n)
	for i := range out {
		out[i] = newEvent(uuid.New())
	}
	return out
}

func mustAppend(t testing.TB, c *esdb.Client, stream string, x esdb.ExpectedRevision, events ...esdb.EventData) *esdb.WriteResult {
	t.Helper()
	w, err := c.AppendToStream(context.Background(), stream, esdb.AppendToStreamOptions{ExpectedRevision: x}, events...)
	if err != nil {
		t.Fatalf("append to %s: %v", stream, err)
	}
	return w
}

func setMetadata(t testing.TB, c *esdb.Client, stream string, m esdb.StreamMetadata) {
	t.Helper()
	if _, err := c.SetStreamMetadata(context.Background(), stream, esdb.AppendToStreamOptions{}, m); err != nil {
		t.Fatal(err)
	}
}

func code(err error) esdb.ErrorCode {
	var e *esdb.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return -1
}

func readEvents(t testing.TB, s *esdb.ReadStream, err error) ([]*esdb.RecordedEvent, error) {
	t.Helper()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var out []*esdb.RecordedEvent
	for {
		e, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, e.OriginalEvent())
	}
}

func readForward(t testing.TB, c *esdb.Client, stream string, from esdb.StreamPosition, n uint64) ([]*esdb.RecordedEvent, error) {
	t.Helper()
	s, err := c.ReadStream(context.Background(), stream, esdb.ReadStreamOptions{From: from}, n)
	return readEvents(t, s, err)
}

func readBackward(t testing.TB, c *esdb.Client, stream string, from esdb.StreamPosition, n uint64) ([]*esdb.RecordedEvent, error) {
	t.Helper()
	s, err := c.ReadStream(context.Background(), stream, esdb.ReadStreamOptions{From: from, Direction: esdb.Backwards}, n)
	return readEvents(t, s, err)
}

func readAll(t testing.TB, c *esdb.Client, from esdb.AllPosition, dir esdb.Direction, n uint64) []*esdb.RecordedEvent {
	t.Helper()
	s, err := c.ReadAll(context.Background(), esdb.ReadAllOptions{From: from, Direction: dir}, n)
	events, err := readEvents(t, s, err)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func revisions(events []*esdb.RecordedEvent) string {
	out := ""
	for _, e := range events {
		out += fmt.Sprint(e.EventNumber, " ")
	}
	return out
}

// newTestStore opens a bare store that is closed with the test, if not before.
func newTestStore(t testing.TB, opt storeOptions) *store {
	t.Helper()
	if opt.logger == nil {
		opt.logger = slog.New(slog.DiscardHandler)
	}
	if opt.clock == nil {
		opt.clock = time.Now
	}
	s, err := openStore(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
