package browser

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"tallyard/domain/fault"
)

// flow is a provider that lets "good" in.
type flow struct{ closed []string }

func (*flow) Begin(_ context.Context, issuer string) (string, []byte, error) {
	if issuer == "down" {
		return "", nil, fault.New(fault.Unavailable, fault.CodeUnavailable, "down")
	}
	return issuer + "/auth", []byte("pending of " + issuer), nil
}

func (*flow) Finish(_ context.Context, pending []byte, state, code string) (string, time.Time, error) {
	switch {
	case code == "stranger":
		return "", time.Time{}, fault.New(fault.Unauthenticated, fault.CodeUnauthenticated, "who?")
	case code == "broken":
		return "", time.Time{}, errors.New("connect to 10.0.0.7: refused")
	case state != "state" || code != "good" || string(pending) != "pending of https://idp":
		return "", time.Time{}, fault.New(fault.Invalid, fault.CodeBadRequest, "no")
	}
	return "tys_secret", time.Now().Add(time.Hour), nil
}

func (f *flow) Close(_ context.Context, secret string) error {
	f.closed = append(f.closed, secret)
	return nil
}

func newHandler(t *testing.T, public string) (*Handler, *flow) {
	t.Helper()
	u, err := url.Parse(public)
	if err != nil {
		t.Fatal(err)
	}
	f := &flow{}
	h, err := New(Config{Flow: f, Providers: []Provider{{"https://idp", "Example"}, {"down", "Down"}}, Public: u, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return h, f
}

// page is an answer.
type page struct {
	status   int
	location string
	text     string
	cookies  []*http.Cookie
}

func do(h http.Handler, method, target string, header http.Header, cookies ...*http.Cookie) page {
	r := httptest.NewRequest(method, "https://t.example"+target, nil)
	for name, v := range header {
		r.Header[name] = v
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	res := w.Result()
	defer res.Body.Close() //nolint:errcheck // it lies in memory
	return page{res.StatusCode, res.Header.Get("Location"), w.Body.String(), res.Cookies()}
}

// cookie is the one that an answer sets, by name.
func cookie(t *testing.T, res page, name string) *http.Cookie {
	t.Helper()
	for _, c := range res.cookies {
		if c.Name == name {
			if !c.HttpOnly || c.SameSite == http.SameSiteNoneMode || c.SameSite == http.SameSiteDefaultMode {
				t.Errorf("%+v can be read or sent by others", c)
			}
			return c
		}
	}
	t.Fatalf("%d without cookie %s: %v", res.status, name, res.cookies)
	return nil
}

func TestSignInByBrowser(t *testing.T) {
	h, f := newHandler(t, "https://t.example")
	begin := do(h, http.MethodGet, "/signin?provider=0&return=/explorer/?a=b", nil)
	if begin.status != http.StatusSeeOther || begin.location != "https://idp/auth" {
		t.Fatal(begin)
	}
	waits := cookie(t, begin, pendingCookie)
	t.Run("TEN-06_who_comes_back_is_signed_in_and_where_they_were", func(t *testing.T) {
		res := do(h, http.MethodGet, "/signin/back?state=state&code=good", nil, waits)
		if res.status != http.StatusSeeOther || res.location != "/explorer/?a=b" {
			t.Fatal(res)
		}
		c := cookie(t, res, "__Host-tallyard")
		if !c.Secure || c.Path != "/" || c.Domain != "" || c.SameSite != http.SameSiteStrictMode || c.Value != "tys_secret" {
			t.Errorf("%+v", c)
		}
		if gone := cookie(t, res, pendingCookie); gone.MaxAge >= 0 {
			t.Errorf("%+v can be used again", gone)
		}
	})
	t.Run("TEN-06_whatever_is_wrong_is_said_and_signs_nobody_in", func(t *testing.T) {
		for target, want := range map[string]int{
			"/signin/back?state=other&code=good":     http.StatusBadRequest,
			"/signin/back?state=state&code=":         http.StatusBadRequest,
			"/signin/back?error=access_denied":       http.StatusForbidden,
			"/signin/back?state=state&code=stranger": http.StatusForbidden,
			"/signin/back?state=state&code=broken":   http.StatusInternalServerError,
			"/signin?provider=7":                     http.StatusNotFound,
			"/signin?provider=x":                     http.StatusNotFound,
			"/signin?provider=1":                     http.StatusServiceUnavailable,
		} {
			res := do(h, http.MethodGet, target, nil, waits)
			if res.status != want || strings.Contains(res.text, "10.0.0.7") {
				t.Errorf("%s: %d %s", target, res.status, res.text)
			}
			for _, c := range res.cookies {
				if c.Name == "__Host-tallyard" {
					t.Errorf("%s signed in", target)
				}
			}
		}
		for _, bad := range []string{"", "!", "e30", strings.Repeat("A", 5000)} {
			if res := do(h, http.MethodGet, "/signin/back?state=state&code=good", nil, &http.Cookie{Name: pendingCookie, Value: bad}); res.status != http.StatusBadRequest {
				t.Errorf("%.10q: %d", bad, res.status)
			}
		}
	})
	t.Run("TEN-06_the_way_back_leads_nowhere_else", func(t *testing.T) {
		for path, want := range map[string]string{
			"/a?b#c": "/a?b#c", "": "/", "//evil.example": "/", "https://evil.example": "/", `/\evil.example`: "/", "a": "/", "/\tx": "/", "javascript:1": "/",
		} {
			if got := local(path); got != want {
				t.Errorf("%q: %q", path, got)
			}
		}
	})
	session := &http.Cookie{Name: "__Host-tallyard", Value: "tys_secret"}
	t.Run("TEN-06_signing_out_needs_our_own_page", func(t *testing.T) {
		if res := do(h, http.MethodPost, SignOutPath, http.Header{"Sec-Fetch-Site": {"cross-site"}}, session); res.status != http.StatusForbidden || len(f.closed) > 0 {
			t.Errorf("%d %v", res.status, f.closed)
		}
		res := do(h, http.MethodPost, SignOutPath, http.Header{"Sec-Fetch-Site": {"same-origin"}}, session)
		if res.status != http.StatusNoContent || len(f.closed) != 1 || f.closed[0] != "tys_secret" || cookie(t, res, "__Host-tallyard").MaxAge >= 0 {
			t.Errorf("%d %v", res.status, f.closed)
		}
	})
	t.Run("TEN-06_a_page_learns_how_to_sign_in", func(t *testing.T) {
		text := do(h, http.MethodGet, SessionPath, nil, session).text
		if want := `{"signedIn":true,"providers":[{"label":"Example","href":"/signin?provider=0"},{"label":"Down","href":"/signin?provider=1"}]}`; strings.TrimSpace(text) != want {
			t.Errorf("%s", text)
		}
	})
}

func TestGuard(t *testing.T) {
	h, _ := newHandler(t, "https://t.example")
	var saw string
	api := h.Guard(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { saw = r.Header.Get("Authorization") }))
	session := &http.Cookie{Name: "__Host-tallyard", Value: "tys_secret"}
	for name, c := range map[string]struct {
		method  string
		header  http.Header
		allowed bool
	}{
		"our page":                       {http.MethodPost, http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": {"https://t.example"}}, true},
		"our page, without an origin":    {http.MethodGet, http.Header{"Sec-Fetch-Site": {"same-origin"}}, true},
		"an address typed in":            {http.MethodGet, http.Header{"Sec-Fetch-Site": {"none"}}, true},
		"an old browser":                 {http.MethodPost, http.Header{"Origin": {"https://t.example"}}, true},
		"our socket":                     {http.MethodGet, http.Header{"Origin": {"https://t.example"}, "Upgrade": {"websocket"}}, true},
		"another site":                   {http.MethodPost, http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://evil.example"}}, false},
		"another site reads":             {http.MethodGet, http.Header{"Sec-Fetch-Site": {"cross-site"}}, false},
		"a neighbour":                    {http.MethodPost, http.Header{"Sec-Fetch-Site": {"same-site"}, "Origin": {"https://x.t.example"}}, false},
		"a neighbour reads":              {http.MethodGet, http.Header{"Sec-Fetch-Site": {"same-site"}}, false},
		"an old browser of another site": {http.MethodPost, http.Header{"Origin": {"https://evil.example"}}, false},
		"a page without a name":          {http.MethodPost, http.Header{"Origin": {"null"}}, false},
		"a socket of another site":       {http.MethodGet, http.Header{"Origin": {"https://evil.example"}, "Upgrade": {"websocket"}}, false},
		"a socket of nobody":             {http.MethodGet, http.Header{"Upgrade": {"websocket"}}, false},
		"the same host without TLS":      {http.MethodPost, http.Header{"Origin": {"http://t.example"}}, false},
	} {
		t.Run("TEN-06_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			saw = ""
			res := do(api, c.method, "/graphql", c.header, session)
			if got := saw == "Bearer tys_secret"; got != c.allowed || (!c.allowed && (res.status != http.StatusForbidden || saw != "")) {
				t.Errorf("%d, the API saw %q", res.status, saw)
			}
		})
	}
	t.Run("TEN-06_a_token_counts_before_a_session", func(t *testing.T) {
		do(api, http.MethodPost, "/graphql", http.Header{"Authorization": {"Bearer other"}, "Sec-Fetch-Site": {"cross-site"}}, session)
		if saw != "Bearer other" {
			t.Errorf("%q", saw)
		}
	})
	t.Run("TEN-06_without_a_session_nothing_is_added", func(t *testing.T) {
		saw = "nothing"
		do(api, http.MethodPost, "/graphql", http.Header{"Sec-Fetch-Site": {"cross-site"}})
		if saw != "" {
			t.Errorf("%q", saw)
		}
	})
}
