package runner_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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

// A leader that dies between the move of the pointer and the answer leaves a
// request that only has to be answered: the next one does so before its flow
// has begun.
func TestRebuildThatOnlyLacksItsAnswerIsAnsweredByTheNextLeader(t *testing.T) {
	f := newFixture(t)
	f.append(uuid.New(), added{"a"})
	r := f.start()
	f.ready(r)
	done, err := r.Rebuild(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.stop()
	var id uuid.UUID
	err = f.db.QueryRow(t.Context(), `UPDATE tallyard.projection_requests SET state = 'open', result = '', finished_at = NULL RETURNING id`).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	next := f.start()
	f.ready(next)
	eventually(t, 10*time.Second, func() error {
		r, err := next.Request(t.Context(), id)
		if err != nil {
			return err
		}
		var report runner.RebuildReport
		if r.FinishedAt == nil || json.Unmarshal(r.Result, &report) != nil {
			return expect(false, "%+v", r)
		}
		return expect(report == done, "it says %+v, first it was %+v", report, done)
	})
}
