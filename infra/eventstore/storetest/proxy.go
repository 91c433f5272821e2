package storetest

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
)

// Proxy stands between a client and a server on a unix socket, and fails on
// command: it is how tests meet a network that cuts or swallows what it carries.
type Proxy struct {
	backend  string
	listener net.Listener
	work     sync.WaitGroup

	mu       sync.Mutex
	links    map[*link]struct{}
	accepted int
	silent   bool // new links carry nothing from the server
	once     bool // the next answer cuts its link
	closed   bool
}

// link is one connection through the proxy.
type link struct {
	client, server net.Conn
	closed         chan struct{}
	once           sync.Once
	silent         bool // guarded by the proxy's mutex
}

func (l *link) close() {
	l.once.Do(func() {
		close(l.closed)
		_ = l.client.Close()
		_ = l.server.Close()
	})
}

// NewProxy starts a proxy in front of the server at an address, unix:/path, and
// closes it when the test ends.
func NewProxy(t testing.TB, backend string) *Proxy {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "unix", Socket(t))
	if err != nil {
		t.Fatalf("start the proxy: %v", err)
	}
	p := &Proxy{backend: strings.TrimPrefix(backend, "unix:"), listener: l, links: map[*link]struct{}{}}
	p.work.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.Cut()
		p.work.Wait()
	})
	return p
}

// Address is the address by which a client reaches the proxy.
func (p *Proxy) Address() string { return "unix:" + p.listener.Addr().String() }

// Accepted is how many connections there have been.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Silence stops carrying what the server sends on the connections that are open
// now, without closing them. Later connections work.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.silent = true
	}
}

// SilenceAll is Silence for later connections, too, or ends that.
func (p *Proxy) SilenceAll(on bool) {
	if on {
		p.Silence()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = on
}

// Cut closes all open connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// CutNextAnswer drops the next thing that the server sends and closes the
// connection that it was for: the client can't know what became of its call.
func (p *Proxy) CutNextAnswer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.once = true
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	var d net.Dialer
	server, err := d.DialContext(context.Background(), "unix", p.backend)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{client: client, server: server, closed: make(chan struct{})}
	defer l.close()
	p.mu.Lock()
	p.accepted++
	p.links[l] = struct{}{}
	l.silent = p.silent
	if p.closed {
		l.close()
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
	}()
	p.work.Go(func() {
		defer l.close()
		p.carry(l.client, l.server, func() bool { return true })
	})
	p.carry(l.server, l.client, func() bool { return p.mayAnswer(l) })
}

// mayAnswer tells whether something that the server sent may go on its way. It
// holds it back for ever on a silent link.
func (p *Proxy) mayAnswer(l *link) bool {
	p.mu.Lock()
	silent, cut := l.silent, p.once
	p.once = false
	p.mu.Unlock()
	if silent {
		<-l.closed
	}
	return !silent && !cut
}

func (p *Proxy) carry(from, to net.Conn, may func() bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !may() {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
