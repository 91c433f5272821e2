//go:build !race

package transport_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"
)

// G15, P7: what one idle subscriber holds on the server. The clients here are
// bare connections, so that nearly all that is measured is the server's.
func TestAnIdleSubscriberIsSmall(t *testing.T) {
	const subscribers, limit = 1000, 40 << 10
	s := open(t, nil)
	used := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	s.bare(t) // what is made once
	before := used()
	for range subscribers {
		s.bare(t)
	}

	eventually(t, "all subscribe", func() bool { return s.handler.Metrics().Running == subscribers+1 })
	time.Sleep(50 * time.Millisecond)
	each := (used() - before) / subscribers
	t.Logf("%d bytes each", each)
	if each > limit {
		t.Errorf("%d bytes each, the limit is %d", each, limit)
	}
}

// bare opens a socket and subscribes by writing frames.
func (s *site) bare(t *testing.T) {
	t.Helper()
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, _ = fmt.Fprint(conn, "GET /graphql HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReaderSize(conn, 1024), nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(err, res)
	}
	_ = res.Body.Close()
	for _, text := range []string{initGood, // both under 126 bytes
		`{"id":"1","type":"subscribe","payload":{"query":"subscription { silent }"}}`} {
		frame := []byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0} // masked with zeros
		_, _ = conn.Write(append(frame, text...))
	}
}
