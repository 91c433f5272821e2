package eventstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"tallyard/domain/es"
	"tallyard/infra/eventstore"
	"tallyard/infra/eventstore/embedded"
	"tallyard/infra/eventstore/storetest"
)

// A store without room refuses an append at once and says why. The connection,
// over which everybody else reads and subscribes, stays.
func TestFullStore(t *testing.T) {
	server := storetest.Serve(t, embedded.Config{DiskReserve: 1 << 62})
	proxy := storetest.NewProxy(t, server.Address())
	log := storetest.Connect(t, eventstore.Config{Address: proxy.Address()})
	sub, err := log.Subscribe(t.Context(), es.FromStart(), es.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if m := <-sub.Messages(); m.Kind != es.MessageCaughtUp && m.Kind != es.MessageCheckpoint {
		t.Fatalf("%+v", m)
	}
	connections := proxy.Accepted()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for range 3 {
		_, err := log.Append(ctx, "s", es.Any(), raw("made", 1))
		if !errors.Is(err, es.ErrNoRoom) || errors.Is(err, es.ErrUnavailable) || errors.Is(err, es.ErrTooLarge) {
			t.Fatalf("an append: %v", err)
		}
	}
	if _, err := log.LastPosition(ctx); err != nil {
		t.Fatalf("a read: %v", err)
	}
	if err := log.KeepLast(ctx, "s", 3); err != nil {
		t.Fatalf("metadata: %v", err)
	}
	if n := proxy.Accepted(); n != connections {
		t.Errorf("the refusals cost %d connections", n-connections)
	}
	if err := sub.Err(); err != nil {
		t.Errorf("the subscription ended: %v", err)
	}
}
