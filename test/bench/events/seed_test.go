package events

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

const (
	eventType = "bench.made.v1"
	// seeders is how many streams are appended at once; they share syncs.
	seeders = 32
)

// perStream is how many events a seeded stream has, and an append that seeds:
// EVENTS_PER_STREAM, or a few, as the product's aggregates have.
var perStream = func() int {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("EVENTS_PER_STREAM"), "10"))
	if err != nil || n < 1 || n > 1000 {
		panic("EVENTS_PER_STREAM: a number from 1 to 1000")
	}
	return n
}()

func seedStream(i int) string {
	return fmt.Sprintf("bench-7d9c1f6e-3f0a-4a53-9d2e-5b1e0c8f4a21.%08d", i)
}

// payload is the size of an event's body in bytes.
const payload = 400

// text is what bodies are cut from: random, so that no file gets smaller by
// compression, which is the worst case.
var text = func() string {
	raw := make([]byte, 1<<20)
	rand.Read(raw) // never fails
	return base64.RawStdEncoding.EncodeToString(raw)
}()

// newBody is JSON of the size of a payload, another every time.
func newBody() []byte {
	const head, tail = `{"text":"`, `"}`
	n := payload - len(head) - len(tail)
	at := mathrand.IntN(len(text) - n)
	b := make([]byte, 0, payload)
	return append(append(append(b, head...), text[at:at+n]...), tail...)
}

func newEvent() esdb.EventData {
	return esdb.EventData{EventID: uuid.New(), EventType: eventType, ContentType: esdb.ContentTypeJson, Data: newBody(), Metadata: []byte(`{}`)}
}

// seed appends events to streams that are not there yet, through the client, a
// whole stream an append. first is the number of the first stream.
func seed(b *testing.B, c *esdb.Client, first, events int) {
	b.Helper()
	var next atomic.Int64
	g, ctx := errgroup.WithContext(b.Context())
	for range seeders {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				n := min(perStream, events-i*perStream)
				if n <= 0 {
					return nil
				}
				batch := make([]esdb.EventData, n)
				for j := range batch {
					batch[j] = newEvent()
				}
				if err := appendEvents(ctx, c, seedStream(first+i), esdb.NoStream{}, batch...); err != nil {
					return err
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
}

func appendEvents(ctx context.Context, c *esdb.Client, stream string, expected esdb.ExpectedRevision, events ...esdb.EventData) error {
	_, err := c.AppendToStream(ctx, stream, esdb.AppendToStreamOptions{ExpectedRevision: expected}, events...)
	return err
}
