package transport

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/google/uuid"
)

// RequestInfo is what the audit keeps of the request an operation came with.
type RequestInfo struct {
	// RequestID names the operation in logs, events and errors. It is always
	// made here: the audit finds by it from where a command came, so nobody may
	// choose it.
	RequestID string
	// Trace is the client's own X-Request-Id, for logs; empty when it gave none
	// or one that can't stand in a log line.
	Trace string
	// RemoteAddr is the client's address, without a port.
	RemoteAddr string
	// UserAgent is what the client calls itself, cut to 256 bytes.
	UserAgent string
	// WebSocket tells that the operation came over a socket.
	WebSocket bool
}

type requestInfoKey struct{}

// RequestInfoFrom returns the information on the request that ctx belongs to;
// it is zero outside of a request.
func RequestInfoFrom(ctx context.Context) RequestInfo {
	info, _ := ctx.Value(requestInfoKey{}).(RequestInfo)
	return info
}

// WithRequestInfo returns a context that carries info. The handler does this
// for every operation; other entrances to the product use it for theirs.
func WithRequestInfo(ctx context.Context, info RequestInfo) context.Context {
	return context.WithValue(ctx, requestInfoKey{}, info)
}

// NewRequestID makes a request id.
func NewRequestID() string {
	return uuid.Must(uuid.NewV7()).String()
}

// requestInfo reads the request's headers.
func (h *Handler) requestInfo(r *http.Request) RequestInfo {
	trace := r.Header.Get("X-Request-Id")
	if !saneRequestID(trace) {
		trace = ""
	}
	return RequestInfo{
		RequestID:  NewRequestID(),
		Trace:      trace,
		RemoteAddr: h.clientAddress(r),
		UserAgent:  saneUserAgent(r.UserAgent()),
	}
}

// saneRequestID accepts what can stand in a log line and in an error unescaped.
func saneRequestID(id string) bool {
	if len(id) < 8 || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

func saneUserAgent(agent string) string {
	if len(agent) > 256 {
		agent = agent[:256]
	}
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7F {
			return -1
		}
		return r
	}, agent), "")
}

// clientAddress is the peer, or what trusted proxies say: the last address in
// X-Forwarded-For that is not itself a trusted proxy's.
func (h *Handler) clientAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	if !h.trustedProxy(host) {
		return host
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		hop := strings.TrimSpace(hops[i])
		if _, err := netip.ParseAddr(hop); err != nil {
			break
		}
		host = hop
		if !h.trustedProxy(hop) {
			break
		}
	}
	return host
}

func (h *Handler) trustedProxy(host string) bool {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	for _, p := range h.cfg.TrustedProxies {
		if p.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}
