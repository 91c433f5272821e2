package explorer_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	explorer "tallyard/web/explorer"
)

func page(t *testing.T, cfg explorer.Config) http.Handler {
	t.Helper()
	h, err := explorer.Handler(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func get(h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// The bundle is committed, so that building the program needs no Node.
func TestTheCommittedBundleWasBuiltFromTheSourcesBesideIt(t *testing.T) {
	if out, err := exec.Command("./check.sh").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestThePageIsServedWithAStrictPolicyAndNoOutsideAddress(t *testing.T) {
	h := page(t, explorer.Config{})
	for _, path := range []string{"/", "/explorer/", "/explorer"} {
		w := get(h, path)
		body := w.Body.String()
		if w.Code != 200 || !strings.Contains(body, "Tallyard explorer") {
			t.Fatalf("%s: %d %.200s", path, w.Code, body)
		}
		policy := w.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'self';") || strings.Contains(policy, "unsafe-eval") || strings.Contains(policy, "script-src") {
			t.Errorf("policy %q", policy)
		}
		if outside := regexp.MustCompile(`(src|href)="(https?:)?//`).FindString(body); outside != "" {
			t.Errorf("an outside address: %s", outside)
		}
		if regexp.MustCompile(`<script[^>]*>[^<]`).MatchString(body) {
			t.Error("an inline script")
		}
	}
}

func TestFilesGoOutAsTheyAreStored(t *testing.T) {
	h := page(t, explorer.Config{})
	script := regexp.MustCompile(`/explorer/assets/index-[^"]+\.js`).FindString(get(h, "/").Body.String())
	packed := get(h, script, "Accept-Encoding", "br, gzip;q=0.8")
	if packed.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(packed.Header().Get("Cache-Control"), "immutable") ||
		packed.Header().Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Fatalf("%d %v", packed.Code, packed.Header())
	}
	unpacked, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	want, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	for _, encoding := range []string{"", "br", "gzip;q=0"} {
		plain := get(h, script, "Accept-Encoding", encoding)
		if plain.Header().Get("Content-Encoding") != "" || plain.Body.String() != string(want) {
			t.Errorf("%q: encoded as %q", encoding, plain.Header().Get("Content-Encoding"))
		}
	}
	if w := get(h, script, "If-None-Match", packed.Header().Get("ETag")); w.Code != http.StatusNotModified {
		t.Errorf("again: %d", w.Code)
	}
}

func TestTheConfigurationIsData(t *testing.T) {
	w := get(page(t, explorer.Config{Example: "{ me }</script>", People: []explorer.Person{{Name: "ada", Token: "t", Note: "admin"}}}), "/explorer/config.json")
	var got struct {
		Endpoint, Example string
		People            []explorer.Person
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Endpoint != "/graphql" || got.Example != "{ me }</script>" || len(got.People) != 1 || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%s %v", w.Body, w.Header())
	}
}

func TestNothingElseIsServed(t *testing.T) {
	h := page(t, explorer.Config{})
	for _, path := range []string{"/explorer/SOURCES", "/explorer/../embed.go", "/explorer/assets/", "/nothing", "/explorer/assets/none.js"} {
		if w := get(h, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}
