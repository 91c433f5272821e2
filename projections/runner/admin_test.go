package runner_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"tallyard/projections/runner"
)

func TestAdminAnswersInJSONAndInWords(t *testing.T) {
	f := newFixture(t)
	f.append(uuid.New(), added{"a"})
	r := f.start()
	f.ready(r)
	srv := httptest.NewServer(r.Admin())
	defer srv.Close()
	ask := func(method, path, accept string) string {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Accept", accept)
		res, err := srv.Client().Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %d %s %v", method, path, res.StatusCode, body, err)
		}
		return string(body)
	}
	var s runner.Status
	if err := json.Unmarshal([]byte(ask("GET", "/status", "application/json")), &s); err != nil || len(s.Projections) != 3 || !s.Leading {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/status", "PROJECTION"},
		{"POST", "/verify", "EQUAL at position"},
		{"POST", "/rebuild", "is live at position"},
		{"POST", "/replay-parked?projection=things", "0 streams"},
	} {
		if text := ask(c.method, c.path, "text/plain"); !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %s", c.method, c.path, text)
		}
	}
}
