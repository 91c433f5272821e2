package transport

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// OnLoopback refuses, with 421, every request that is not addressed to a name
// of the machine itself. A page of any site can make its own name resolve to
// 127.0.0.1 once it is loaded (DNS rebinding): its scripts then talk to what
// listens there as to their own origin. The name that they used still tells.
func OnLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopbackHost(r.Host) {
			http.Error(w, "This server is for its own machine alone: call it by 127.0.0.1, [::1] or localhost.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// loopbackHost tells whether a Host header names the machine itself.
func loopbackHost(host string) bool {
	name, _ := splitPort(host)
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true // RFC 6761: never asked of the network
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}

// sameLoopback tells whether an origin is this very server by another of the
// machine's names.
func sameLoopback(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" || !loopbackHost(u.Host) || !loopbackHost(host) {
		return false
	}
	_, from := splitPort(u.Host)
	_, to := splitPort(host)
	return from == to
}

// splitPort reads the port of a host; without one it is that of http.
func splitPort(host string) (name, port string) {
	if name, port, err := net.SplitHostPort(host); err == nil {
		return name, port
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), "80"
}
