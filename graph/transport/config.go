package transport

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tallyard/graph/transport/guard"
)

// Authenticator tells who a token belongs to.
type Authenticator interface {
	// Authenticate returns a context that carries the actor and descends from
	// ctx. An empty token means that none came. An error refuses the request;
	// it is shown through [Config.Present].
	//
	// When the returned context is cancelled later, what runs under it ends: a
	// WebSocket is closed, with the code of the cause when that is a
	// [CloseError], otherwise with 4403. That is how a suspended user or a
	// revoked token loses open subscriptions.
	Authenticate(ctx context.Context, token string) (context.Context, error)
}

// Config is what a [Handler] needs. Schema and Authenticator are required.
type Config struct {
	// Schema is the generated schema with its resolvers.
	Schema graphql.ExecutableSchema
	// Extensions of gqlgen's executor, outermost first.
	Extensions []graphql.HandlerExtension
	// Authenticator is asked before a body or a message is looked at.
	Authenticator Authenticator
	// Present turns an error into what the client sees. It is asked for errors
	// of resolvers and of the Authenticator. Without it, faults are shown and
	// everything else is masked.
	Present func(ctx context.Context, err error) *gqlerror.Error
	// Logger gets panics and refused requests. Default: slog.Default.
	Logger *slog.Logger
	// Limits bounds sizes and times.
	Limits Limits
	// Origins lists the foreign origins, such as "https://app.example.org",
	// that browsers may call from. The own origin always may.
	Origins []string
	// Loopback says that the handler is behind [OnLoopback]: its own origin is
	// that of any of the machine's names, with the same port.
	Loopback bool
	// Introspection allows __schema and __type, and suggestions in messages.
	Introspection bool
	// TrustedProxies may name the client's address in X-Forwarded-For.
	TrustedProxies []netip.Prefix
}

// Limits bounds what one client can ask for. A zero field takes its default.
type Limits struct {
	Document guard.Limits // see there

	BodyBytes  int64 // of a POST; 1 MiB
	CacheBytes int   // of parsed documents; 16 MiB
	Errors     int   // in one answer; 10

	BodyTimeout      time.Duration // for a body to arrive; 10 s
	WriteTimeout     time.Duration // for an answer or a message to leave; 5 s
	OperationTimeout time.Duration // for a query, and for a mutation; 30 s

	SocketMessageBytes int64         // of one message from the client; 64 KiB
	SocketOperations   int           // at once on one socket; 100
	SocketQueue        int           // messages waiting for a slow client; 16
	SocketQueueBytes   int           // bytes of them, one message always fits; 256 KiB
	InitTimeout        time.Duration // for connection_init to arrive; 5 s
	PingInterval       time.Duration // between pings; 20 s
	PongTimeout        time.Duration // for the answer to a ping; 10 s
}

func (l Limits) withDefaults() Limits {
	l.Document = l.Document.WithDefaults()
	fill(&l.BodyBytes, 1<<20)
	fill(&l.CacheBytes, 16<<20)
	fill(&l.Errors, 10)
	fill(&l.BodyTimeout, 10*time.Second)
	fill(&l.WriteTimeout, 5*time.Second)
	fill(&l.OperationTimeout, 30*time.Second)
	fill(&l.SocketMessageBytes, 64<<10)
	fill(&l.SocketOperations, 100)
	fill(&l.SocketQueue, 16)
	fill(&l.SocketQueueBytes, 256<<10)
	fill(&l.InitTimeout, 5*time.Second)
	fill(&l.PingInterval, 20*time.Second)
	fill(&l.PongTimeout, 10*time.Second)
	return l
}

func fill[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

func (c *Config) check() error {
	switch {
	case c.Schema == nil:
		return errors.New("transport: a schema is required")
	case c.Authenticator == nil:
		return errors.New("transport: an authenticator is required")
	}
	return nil
}
