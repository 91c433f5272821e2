package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
)

const (
	// maxReceive is the largest message taken from a client; the client's own
	// limit is the same.
	maxReceive = 17 << 20
	// minPing is how often a client may ping. Clients ping every 10 s, also
	// without a call; gRPC's default would cut them off for that.
	minPing = 5 * time.Second
	// stopGrace is how long calls may take to end by themselves when the
	// server stops, before their connections are cut.
	stopGrace = 800 * time.Millisecond
	// defaultReserve is the free disk space below which appends are refused.
	defaultReserve = 64 << 20
	// MinMaxBytes is the least limit that makes sense: the write-ahead log alone
	// takes some 100 MB.
	MinMaxBytes = 256 << 20
)

// Config tells where an embedded event store lives.
type Config struct {
	// Dir is the directory of the log. It is created if need be, and locked
	// while the server is open.
	Dir string
	// Socket is the path of the unix socket, at most 107 bytes, in a directory
	// that only its owner may enter. That directory is created if need be.
	Socket string
	// Logger takes the server's log; nil discards it.
	Logger *slog.Logger
	// Clock gives the creation time of events and the time by which $maxAge
	// counts; nil is time.Now.
	Clock func() time.Time
	// CacheBytes is the memory for blocks read from disk; 0 is 32 MiB.
	CacheBytes int64
	// DiskReserve is the free space in bytes below which appends are refused,
	// so that the log never meets a full disk; 0 is 64 MiB, negative is none.
	DiskReserve int64
	// MaxBytes is the size of the store's files from which on appends are
	// refused, at least MinMaxBytes; 0 is no limit.
	MaxBytes int64
	// ScavengeEvery is the time between two scavenges; 0 is never.
	ScavengeEvery time.Duration
	// Network opens the store to other programs; nil keeps it closed.
	Network *NetworkConfig
}

// Server is an open embedded event store.
type Server struct {
	store   *store
	socket  *front
	network []*front // the last leads
	subs    *subscriptions
	logger  *slog.Logger

	stopping chan struct{} // closed when calls must end

	closeOnce sync.Once
	closeErr  error
}

// Open opens the store, creating it if need be, and serves it. The context
// bounds the opening only.
func Open(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	opt := storeOptions{dir: cfg.Dir, logger: cfg.Logger, clock: cfg.Clock, cache: cfg.CacheBytes, reserve: defaultReserve, limit: uint64(max(cfg.MaxBytes, 0)), scavengeEvery: cfg.ScavengeEvery}
	switch {
	case cfg.DiskReserve > 0:
		opt.reserve = uint64(cfg.DiskReserve)
	case cfg.DiskReserve < 0:
		opt.reserve = 0
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the event store's directory: %w", err)
	}
	// The store's lock comes before the socket: who holds it may take away a
	// socket that a killed process left behind.
	st, err := openStore(ctx, opt)
	if err != nil {
		return nil, err
	}
	s, err := serveStore(ctx, st, cfg)
	if err != nil {
		return nil, errors.Join(err, st.close())
	}
	return s, nil
}

// serveStore serves an open store on its socket and, where wanted, on a network.
func serveStore(ctx context.Context, st *store, cfg Config) (*Server, error) {
	s := &Server{store: st, logger: cfg.Logger, stopping: make(chan struct{})}
	l, err := listen(ctx, cfg.Socket)
	if err != nil {
		return nil, err
	}
	s.subs = newSubscriptions(st, cfg.Logger)
	s.socket = s.newFront(l, member{id: st.id, host: cfg.Socket, leads: true}, nil)
	if cfg.Network != nil {
		if s.network, err = s.openNetwork(ctx, cfg.Network); err == nil {
			err = st.listUsers(ctx, cfg.Network.Users)
		}
		if err != nil {
			for _, f := range s.fronts() {
				err = errors.Join(err, f.listener.Close())
			}
			s.subs.close()
			return nil, err
		}
	}
	for _, f := range s.fronts() {
		f.serve()
	}
	return s, nil
}

// fronts are all ways in.
func (s *Server) fronts() []*front {
	return append([]*front{s.socket}, s.network...)
}

// Address is the address by which the event store client's Configuration reaches the server.
func (s *Server) Address() string { return "unix:" + s.socket.member.host }

// NetworkAddresses are the addresses, host:port, by which clients come over the
// network, in the order of NetworkConfig.Listen.
func (s *Server) NetworkAddresses() []string {
	addresses := make([]string, 0, len(s.network))
	for _, f := range s.network {
		addresses = append(addresses, f.member.address())
	}
	return addresses
}

// Failed is closed when the store can't go on, because its disk refused a
// write. Every append is then answered with Unavailable; only a new process can
// open the log again.
func (s *Server) Failed() <-chan struct{} { return s.store.failed() }

// Err tells why the store has failed; nil while it works.
func (s *Server) Err() error { return s.store.failure() }

// Close stops the server: new calls are refused, every open subscription ends
// with a status within a second, appends under way are committed and answered.
// The context can only shorten the wait.
func (s *Server) Close(ctx context.Context) error {
	s.closeOnce.Do(func() { s.closeErr = s.stop(ctx) })
	return s.closeErr
}

func (s *Server) stop(ctx context.Context) error {
	close(s.stopping)
	graceful := make(chan struct{})
	go func() {
		defer close(graceful)
		var all sync.WaitGroup
		for _, f := range s.fronts() {
			all.Go(f.rpc.GracefulStop)
		}
		all.Wait()
	}()
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-graceful:
	case <-grace.C:
	case <-ctx.Done():
	}
	if err := s.end(ctx, "calls to it", s.cut); err != nil {
		return err
	}
	// Every call has ended; the groups write down how far they are.
	if err := s.end(ctx, "its persistent subscriptions", s.subs.close); err != nil {
		return err
	}
	err := s.store.closeWithin(ctx)
	for _, f := range s.fronts() {
		if serr := <-f.served; serr != nil && !errors.Is(serr, grpc.ErrServerStopped) {
			err = errors.Join(err, fmt.Errorf("serve the event store: %w", serr))
		}
	}
	return err
}

// cut ends every connection and waits for the calls on them.
func (s *Server) cut() {
	var all sync.WaitGroup
	for _, f := range s.fronts() {
		all.Go(f.rpc.Stop)
	}
	all.Wait()
}

// end ends a part of the server. What waits for a failed store, or for a disk
// that hangs, may never come back.
func (s *Server) end(ctx context.Context, what string, part func()) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		part()
	}()
	select {
	case <-ended:
		return nil
	case <-s.store.failed():
	case <-ctx.Done():
	}
	late := time.NewTimer(stopGrace)
	defer late.Stop()
	select {
	case <-ended:
		return nil
	case <-late.C:
		return fmt.Errorf("stop the event store: %s do not end: %w", what, errors.Join(s.store.failure(), ctx.Err()))
	}
}
