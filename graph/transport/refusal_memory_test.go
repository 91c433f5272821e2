//go:build !race

package transport_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

// G4, G5: a document that is too long is refused before anything copies it:
// its body is held once, as it comes.
func TestADocumentThatIsTooLongIsNotCopied(t *testing.T) {
	s := open(t, nil)
	for name, body := range map[string]string{
		"aliases":              queryBody("{" + times(50_000, " a%d:hello") + "}"),
		"escapes":              queryBody("{ hello #" + strings.Repeat("\n", 400_000) + "}"),
		"escapes of six":       queryBody("{ hello #" + strings.Repeat("\x01", 150_000) + "}"),
		"behind its variables": `{"variables":{},"query":"{ hello #` + strings.Repeat("x", 800_000) + `"}`,
	} {
		ask := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, s.signed(body))
			return w
		}
		if w := ask(); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "bytes") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ask()
		runtime.ReadMemStats(&after)
		if used, limit := after.TotalAlloc-before.TotalAlloc, uint64(4*len(body)); used > limit {
			t.Errorf("%s: %d bytes allocated for a body of %d", name, used, len(body))
		}
	}
}

// Escapes are counted by what they become: a document within the limit passes
// however long its JSON is.
func TestAnEscapedDocumentWithinTheLimitPasses(t *testing.T) {
	s := open(t, nil)
	body := `{"query":"{ hello } #` + strings.Repeat(`\u0020`, 100_000) + `"}`
	if r := s.post(body); r.status != http.StatusOK {
		t.Errorf("%d %.200s", r.status, r.body)
	}
}

// signed is a POST for the handler itself.
func (s *site) signed(body string) *http.Request {
	return s.request(http.MethodPost, "/graphql", body, "Authorization", "Bearer good")
}
