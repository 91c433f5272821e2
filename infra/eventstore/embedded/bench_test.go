package embedded

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
)

// BenchmarkStoreAppend is the store without the protocol: durable appends of
// 400 bytes, one event each, in groups that share a sync (quality P1).
func BenchmarkStoreAppend(b *testing.B) {
	for _, writers := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s := newTestStore(b, storeOptions{dir: b.TempDir()})
			data := make([]byte, 400)
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					stream := fmt.Sprint("bench-", w)
					last := noRevision
					for left.Add(-1) >= 0 {
						x := expectation{kind: expectRevision, revision: last}
						if last == noRevision {
							x = expectation{kind: expectNoStream}
						}
						res, err := s.append(context.Background(), &appendRequest{
							stream: stream, expected: x, size: len(data),
							events: []proposed{{id: uuid.New(), kind: "bench.made.v1", contentType: contentJSON, data: data}},
						})
						if err != nil || res.wrong {
							b.Errorf("%+v, %v", res, err)
							return
						}
						last = res.current
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
			if err := s.close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkStoreRead reads the whole log without the protocol (quality P2).
func BenchmarkStoreRead(b *testing.B) {
	s := newTestStore(b, storeOptions{dir: b.TempDir()})
	const events = 50_000
	for range events / 500 {
		r := &appendRequest{stream: "s", expected: expectation{kind: expectAny}}
		for range 500 {
			r.events = append(r.events, proposed{id: uuid.New(), kind: "bench.made.v1", contentType: contentJSON, data: make([]byte, 400)})
		}
		if _, err := s.append(context.Background(), r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		from, n := uint64(0), 0
		for {
			p, err := s.readAll(context.Background(), from, false, pageEvents, nil)
			if err != nil {
				b.Fatal(err)
			}
			n += len(p.events)
			if !p.more {
				break
			}
			from = p.events[len(p.events)-1].position + 1
		}
		if n != events {
			b.Fatalf("%d events", n)
		}
	}
	b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
	if err := s.close(); err != nil {
		b.Fatal(err)
	}
}
