package conformance

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// realNode names, in the environment, the connection string of a real
// EventStoreDB that the table is tried against instead of the embedded server:
// esdb://admin:changeit@localhost:2113?tlsVerifyCert=false. Its user must be an
// admin. Streams with random names stay behind there.
const realNode = "TALLYARD_TEST_ESDB"

// node is the server that the table is tried against.
type node struct {
	client *esdb.Client
	conn   *grpc.ClientConn
	config *esdb.Configuration
	// real tells that it isn't the embedded server.
	real bool
}

// openNode connects to the node that the environment names, or else serves the embedded one.
func openNode(t *testing.T) *node {
	t.Helper()
	text := os.Getenv(realNode)
	n := &node{real: text != ""}
	if !n.real {
		m := start(t, "localhost:0")
		text = fmt.Sprintf("esdb://admin:changeit@%s?tlsCAFile=%s", m.Server.NetworkAddresses()[0], m.CA)
	}
	var err error
	if n.config, err = esdb.ParseConnectionString(text); err != nil {
		t.Fatal("the connection string can't be parsed") // it holds a password
	}
	n.config.Logger = esdb.NoopLogging()
	if n.client, err = esdb.NewClient(n.config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.client.Close() })
	transport := insecure.NewCredentials()
	if !n.config.DisableTLS {
		transport = credentials.NewTLS(&tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: n.config.RootCAs, InsecureSkipVerify: n.config.SkipCertificateVerification,
		})
	}
	address := n.config.Address
	if len(n.config.GossipSeeds) > 0 {
		address = n.config.GossipSeeds[0].String()
	}
	if n.conn, err = grpc.NewClient(address, grpc.WithTransportCredentials(transport)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.conn.Close() })
	return n
}

func (n *node) streams() streams.StreamsClient { return streams.NewStreamsClient(n.conn) }

// admin is a context of calls by the stub as the user of the connection string.
func (n *node) admin(t *testing.T) context.Context {
	if n.config.Username == "" {
		return nobody(t)
	}
	return as(t, n.config.Username, n.config.Password)
}

// as is a context of calls by the stub with a name and a password.
func as(t *testing.T, name, password string) context.Context {
	basic := base64.StdEncoding.EncodeToString([]byte(name + ":" + password))
	return metadata.AppendToOutgoingContext(nobody(t), "authorization", "Basic "+basic)
}

// nobody is a context of calls without credentials. Nothing here takes long; a
// call that hangs is an error and must not be the run's end.
func nobody(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// stream makes a name that nobody has used.
func stream() string { return "conformance-" + uuid.NewString() }

func events(n int) []esdb.EventData {
	out := make([]esdb.EventData, n)
	for i := range out {
		out[i] = esdb.EventData{
			EventID: uuid.New(), EventType: "made", ContentType: esdb.ContentTypeJson,
			Data: fmt.Appendf(nil, `{"i":%d}`, i), Metadata: []byte(`{"m":1}`),
		}
	}
	return out
}

func (n *node) try(t *testing.T, name string, x esdb.ExpectedRevision, events ...esdb.EventData) (*esdb.WriteResult, error) {
	t.Helper()
	return n.client.AppendToStream(nobody(t), name, esdb.AppendToStreamOptions{ExpectedRevision: x}, events...)
}

func (n *node) append(t *testing.T, name string, x esdb.ExpectedRevision, events ...esdb.EventData) *esdb.WriteResult {
	t.Helper()
	w, err := n.try(t, name, x, events...)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return w
}

func (n *node) delete(t *testing.T, name string) *esdb.DeleteResult {
	t.Helper()
	d, err := n.client.DeleteStream(nobody(t), name, esdb.DeleteStreamOptions{ExpectedRevision: esdb.Any{}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (n *node) tombstone(t *testing.T, name string) {
	t.Helper()
	if _, err := n.client.TombstoneStream(nobody(t), name, esdb.TombstoneStreamOptions{ExpectedRevision: esdb.Any{}}); err != nil {
		t.Fatal(err)
	}
}

func (n *node) describe(t *testing.T, name string, f func(*esdb.StreamMetadata)) {
	t.Helper()
	var m esdb.StreamMetadata
	f(&m)
	if _, err := n.client.SetStreamMetadata(nobody(t), name, esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, m); err != nil {
		t.Fatal(err)
	}
}

// read reads a stream to its end.
func (n *node) read(t *testing.T, name string, o esdb.ReadStreamOptions, limit uint64) ([]*esdb.ResolvedEvent, error) {
	t.Helper()
	r, err := n.client.ReadStream(nobody(t), name, o, limit)
	return collect(r, err)
}

// log reads the whole log.
func (n *node) log(t *testing.T, o esdb.ReadAllOptions, limit uint64) ([]*esdb.ResolvedEvent, error) {
	t.Helper()
	r, err := n.client.ReadAll(nobody(t), o, limit)
	return collect(r, err)
}

func collect(r *esdb.ReadStream, err error) ([]*esdb.ResolvedEvent, error) {
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out []*esdb.ResolvedEvent
	for {
		e, err := r.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, e)
	}
}

// revisions lists the revisions of events, in order.
func revisions(events []*esdb.ResolvedEvent) string {
	out := []uint64{}
	for _, e := range events {
		out = append(out, e.OriginalEvent().EventNumber)
	}
	return fmt.Sprint(out)
}

// wants fails the test unless an error of the client has a code.
func wants(t *testing.T, err error, want esdb.ErrorCode) {
	t.Helper()
	var e *esdb.Error
	if !errors.As(err, &e) || e.Code() != want {
		t.Fatalf("want error code %d, got %v", want, err)
	}
}
