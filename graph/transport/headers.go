package transport

import (
	"net/http"
	"net/url"
	"strings"
)

// commonHeaders are on every answer.
func commonHeaders(header http.Header, info RequestInfo) {
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Add("Vary", "Accept")
	header.Add("Vary", "Origin")
	header.Set("X-Request-Id", info.RequestID)
}

// origins tells which pages of browsers may call.
type origins struct {
	list     map[string]bool
	loopback bool // see Config.Loopback
}

func newOrigins(list []string, loopback bool) origins {
	o := origins{map[string]bool{}, loopback}
	for _, origin := range list {
		// "*" would let any page act for whoever looks at it.
		if origin = strings.TrimSuffix(strings.ToLower(origin), "/"); origin != "*" && origin != "" {
			o.list[origin] = true
		}
	}
	return o
}

// allowed tells whether a request may come from where its Origin header says.
// Programs other than browsers send none. An origin that is the host the request
// was sent to is the server's own: no token comes with it by itself, as a cookie
// would, so that a page whose name was bent to this address has none to use.
func (o origins) allowed(r *http.Request) bool {
	list := r.Header.Values("Origin")
	if len(list) == 0 {
		return true
	}
	if len(list) > 1 {
		return false
	}
	return o.foreign(list[0], r.Host) || sameOrigin(list[0], r.Host)
}

func (o origins) foreign(origin, host string) bool {
	return o.list[strings.ToLower(origin)] || o.loopback && sameLoopback(origin, host)
}

// sameOrigin compares hosts only: behind a proxy that ends TLS the scheme is
// not known here.
func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

// cors answers a browser's questions about foreign origins. Credentials are
// never allowed: tokens travel in a header that the page itself sets.
func (o origins) cors(header http.Header, r *http.Request) {
	origin := r.Header.Get("Origin")
	if origin == "" || !o.foreign(origin, r.Host) {
		return
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After")
	if r.Method == http.MethodOptions {
		header.Set("Access-Control-Allow-Methods", "GET, POST")
		header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Request-Id")
		header.Set("Access-Control-Max-Age", "600")
	}
}
