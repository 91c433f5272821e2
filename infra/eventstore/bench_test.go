package eventstore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/infra/eventstore/storetest"
)

// payload makes an event whose body has 400 bytes.
func payload() es.Raw {
	data := make([]byte, 400)
	for i := range data {
		data[i] = 'x'
	}
	copy(data, `{"text":"`)
	copy(data[398:], `"}`)
	return es.Raw{ID: uuid.New(), Type: "bench.made.v1", Data: data, Metadata: []byte(`{}`)}
}

// BenchmarkAppend appends events of 400 bytes, one at a time and durably, over
// the socket (quality P1).
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			log := storetest.Open(b)
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					stream := fmt.Sprintf("bench-%d", w)
					last := es.NoRevision
					for left.Add(-1) >= 0 {
						res, err := log.Append(context.Background(), stream, es.At(last), payload())
						if err != nil {
							b.Error(err)
							return
						}
						last = res.Revision
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
		})
	}
}

// BenchmarkCatchUp reads a log of events of 400 bytes through a subscription
// from its start (quality P2).
func BenchmarkCatchUp(b *testing.B) {
	const events = 50_000
	ctx := b.Context()
	log := storetest.Open(b)
	for i := 0; i < events; i += 500 {
		batch := make([]es.Raw, 500)
		for j := range batch {
			batch[j] = payload()
		}
		if _, err := log.Append(ctx, fmt.Sprintf("bench-%d", i%7), es.Any(), batch...); err != nil {
			b.Fatal(err)
		}
	}
	for _, way := range []string{"subscribe", "read"} {
		b.Run(way, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				if way == "read" {
					for _, err := range log.ReadAll(ctx, es.StartPosition, es.Forward, es.Everything) {
						if err != nil {
							b.Fatal(err)
						}
						n++
					}
				} else {
					sub, err := log.Subscribe(ctx, es.FromStart(), es.Filter{})
					if err != nil {
						b.Fatal(err)
					}
					for m := range sub.Messages() {
						if m.Kind == es.MessageEvent {
							n++
						}
						if m.Kind == es.MessageCaughtUp {
							break
						}
					}
					sub.Close()
				}
				if n != events {
					b.Fatalf("%d events", n)
				}
			}
			b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
