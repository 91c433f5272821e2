package transport_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tallyard/graph/transport"
	"tallyard/graph/transport/transporttest"
)

// A page that bends its own name to 127.0.0.1 is known by that name.
func TestOnLoopbackRefusesOtherNames(t *testing.T) {
	h := transport.OnLoopback(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, passes := range map[string]bool{
		"127.0.0.1:8080": true, "127.0.0.1": true, "127.1.2.3:1": true, "[::1]:8080": true, "[::1]": true,
		"localhost:8080": true, "LOCALHOST.": true, "tallyard.localhost:8080": true,
		"evil.example:8080": false, "evil.example": false, "localhost.evil.example:8080": false, "127.0.0.1.evil.example": false,
		"10.0.0.1:8080": false, "[2001:db8::1]:8080": false, "0.0.0.0:8080": false, "notlocalhost": false, "": false,
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		want := http.StatusOK
		if !passes {
			want = http.StatusMisdirectedRequest
		}
		if w.Code != want || !passes && !strings.Contains(w.Body.String(), "localhost") {
			t.Errorf("%q: %d %s", host, w.Code, w.Body)
		}
	}
}

// A server on loopback is one origin under all its names, with one port.
func TestOriginsOnLoopback(t *testing.T) {
	for _, loopback := range []bool{true, false} {
		s := open(t, func(c *transport.Config, _ *transporttest.Resolvers) { c.Loopback = loopback })
		port := s.server.URL[strings.LastIndex(s.server.URL, ":")+1:]
		for origin, passes := range map[string]bool{
			"http://127.0.0.1:" + port: true, "http://localhost:" + port: loopback, "http://[::1]:" + port: loopback,
			"http://localhost": false, "http://localhost:1": false, "https://localhost:" + port: false,
			"http://evil.example:" + port: false, "null": false,
		} {
			r := s.post(`{"query":"{ hello }"}`, "Origin", origin)
			if passed := r.status == http.StatusOK; passed != passes || !passed && r.status != http.StatusForbidden {
				t.Errorf("loopback %v, origin %s: %d", loopback, origin, r.status)
			}
			if own := origin == s.server.URL; passes && !own && r.header.Get("Access-Control-Allow-Origin") != origin {
				t.Errorf("the browser keeps the answer from %s", origin)
			}
		}
	}
}
