package transport_test

import (
	"net/netip"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"tallyard/graph/transport"
	"tallyard/graph/transport/transporttest"
)

func TestForwardedAddressesCountOnlyFromTrustedProxies(t *testing.T) {
	var got transport.RequestInfo
	s := open(t, func(c *transport.Config, _ *transporttest.Resolvers) {
		c.Extensions = []graphql.HandlerExtension{watcher{&got}}
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}
	})
	for header, want := range map[string]string{
		"":                                   "127.0.0.1",
		"203.0.113.9":                        "203.0.113.9",
		"198.51.100.1, 203.0.113.9":          "203.0.113.9", // the first is what the client claims
		"203.0.113.9, 10.1.2.3":              "203.0.113.9",
		"10.1.2.3":                           "10.1.2.3",
		"nonsense":                           "127.0.0.1",
		"203.0.113.9, nonsense":              "127.0.0.1",
		"2001:db8::1":                        "2001:db8::1",
		"203.0.113.9, ::ffff:10.0.0.1":       "203.0.113.9",
		"<script>alert(1)</script>, 8.8.8.8": "8.8.8.8",
	} {
		s.post(`{"query":"{ hello }"}`, "X-Forwarded-For", header)
		if got.RemoteAddr != want {
			t.Errorf("%q: %s, want %s", header, got.RemoteAddr, want)
		}
	}
}
