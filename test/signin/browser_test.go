package signin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"tallyard/infra/oidc/oidctest"
)

// tab is a browser that keeps cookies. It follows redirections of the provider
// until one leads to the program.
type tab struct {
	*http.Client
	t *testing.T
	w *world
}

func (w *world) tab(t *testing.T) *tab {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &tab{&http.Client{Jar: jar, Timeout: 10 * time.Second, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), w.p.Base) {
			return http.ErrUseLastResponse
		}
		return nil
	}}, t, w}
	t.Cleanup(b.CloseIdleConnections)
	return b
}

// in is the same browser in a subtest.
func (b *tab) in(t *testing.T) *tab {
	t.Helper()
	return &tab{b.Client, t, b.w}
}

// page is an answer.
type page struct {
	status         int
	location, text string
}

// open asks for a page as a browser does that is on a page of the site.
func (b *tab) open(method, address, body, site string) page {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, address, bytes.NewReader([]byte(body)))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", site)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	stays := *b.Client
	stays.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := stays.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return page{res.StatusCode, res.Header.Get("Location"), string(text)}
}

// whoAmI asks the API by the browser's cookie.
func (b *tab) whoAmI(site string) page {
	b.t.Helper()
	return b.open(http.MethodPost, b.w.p.Base+"/graphql", `{"query": "{me {user {loginName}}}"}`, site)
}

// signIn goes through the provider and gives the answer to the way back.
func (b *tab) signIn(login string) page {
	b.t.Helper()
	sent := b.open(http.MethodGet, b.w.p.Base+"/signin?return=/explorer/", "", "same-origin")
	if sent.status != http.StatusSeeOther {
		b.t.Fatal(sent)
	}
	back := b.w.provider.LogIn(b.t, b.Client, sent.location, login)
	if !strings.HasPrefix(back, b.w.p.Base+"/signin/back?") {
		b.t.Fatalf("%s went to %q", login, back)
	}
	return b.open(http.MethodGet, back, "", "cross-site")
}

func TestBrowser(t *testing.T) {
	w := newWorld(t)
	w.provider.Put(oidctest.Person{Login: "erin", Name: "Erin Outside", Groups: []string{"researchers", "auditors"}})
	w.provider.Put(oidctest.Person{Login: "stranger"})
	b := w.tab(t)
	t.Run("TEN-06_a_browser_signs_in_at_the_provider", func(t *testing.T) {
		b := b.in(t)
		if text := b.open(http.MethodGet, w.p.Base+"/signin/session", "", "same-origin").text; !strings.Contains(text, `"signedIn":false`) || !strings.Contains(text, `"label":"Example"`) {
			t.Errorf("%s", text)
		}
		if res := b.signIn("erin"); res.status != http.StatusSeeOther || res.location != "/explorer/" {
			t.Fatal(res)
		}
		if res := b.whoAmI("same-origin"); res.status != http.StatusOK || !strings.Contains(res.text, `"loginName":"erin"`) {
			t.Error(res)
		}
		if text := b.open(http.MethodGet, w.p.Base+"/signin/session", "", "same-origin").text; !strings.Contains(text, `"signedIn":true`) {
			t.Errorf("%s", text)
		}
	})
	t.Run("TEN-06_other_sites_get_nothing_by_its_cookie", func(t *testing.T) {
		b := b.in(t)
		for _, site := range []string{"cross-site", "same-site"} {
			if res := b.whoAmI(site); res.status != http.StatusForbidden || strings.Contains(res.text, "erin") {
				t.Error(site, res)
			}
			if res := b.open(http.MethodPost, w.p.Base+"/signout", "", site); res.status != http.StatusForbidden {
				t.Error(site, "signed out", res)
			}
		}
		if code := b.subscribe("https://evil.example"); code != http.StatusForbidden {
			t.Errorf("a socket of another site: %d", code)
		}
		if code := b.subscribe(w.p.Base); code != http.StatusSwitchingProtocols {
			t.Errorf("a socket of our own: %d", code)
		}
	})
	t.Run("TEN-06_a_code_is_good_once_and_for_its_own_browser", func(t *testing.T) {
		other := w.tab(t)
		back := w.provider.LogIn(t, other.Client, other.open(http.MethodGet, w.p.Base+"/signin", "", "same-origin").location, "erin")
		third := w.tab(t)
		if res := third.open(http.MethodGet, back, "", "cross-site"); res.status != http.StatusBadRequest {
			t.Error("another browser: ", res)
		}
		if res := other.open(http.MethodGet, back, "", "cross-site"); res.status != http.StatusSeeOther {
			t.Error("", res)
		}
		if res := other.open(http.MethodGet, back, "", "cross-site"); res.status != http.StatusBadRequest {
			t.Error("again: ", res)
		}
	})
	t.Run("TEN-06_who_may_not_in_is_told_so", func(t *testing.T) {
		if res := w.tab(t).signIn("stranger"); res.status != http.StatusForbidden {
			t.Error(res)
		}
	})
	t.Run("TEN-06_signing_out_ends_it_here_and_at_the_server", func(t *testing.T) {
		b := b.in(t)
		cookies := b.Jar.Cookies(mustURL(t, w.p.Base))
		if res := b.open(http.MethodPost, w.p.Base+"/signout", "", "same-origin"); res.status != http.StatusNoContent {
			t.Fatal(res)
		}
		if len(b.Jar.Cookies(mustURL(t, w.p.Base))) != 0 {
			t.Error("the cookie is still there")
		}
		b.Jar.SetCookies(mustURL(t, w.p.Base), cookies) // as who copied it would
		if res := b.whoAmI("same-origin"); res.status != http.StatusUnauthorized {
			t.Error(res)
		}
	})
}

// subscribe opens a socket from a page of an origin and gives the status.
func (b *tab) subscribe(origin string) int {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	defer cancel()
	header := http.Header{"Origin": {origin}}
	for _, c := range b.Jar.Cookies(mustURL(b.t, b.w.p.Base)) {
		header.Add("Cookie", c.String())
	}
	conn, res, err := websocket.Dial(ctx, strings.Replace(b.w.p.Base, "http", "ws", 1)+"/graphql", &websocket.DialOptions{
		Subprotocols: []string{"graphql-transport-ws"}, HTTPHeader: header,
	})
	if res == nil {
		b.t.Fatal(err)
	}
	if res.Body != nil {
		_ = res.Body.Close() // empty after an upgrade
	}
	if err != nil {
		return res.StatusCode
	}
	defer conn.CloseNow() //nolint:errcheck // the test is done with it
	for _, m := range []any{
		map[string]any{"type": "connection_init"},
		map[string]any{"id": "1", "type": "subscribe", "payload": map[string]any{"query": `subscription {auditTail(filter: {}) {cursor}}`}},
	} {
		text, err := json.Marshal(m)
		if err != nil {
			b.t.Fatal(err)
		}
		if err := conn.Write(ctx, websocket.MessageText, text); err != nil {
			b.t.Fatal(err)
		}
	}
	for _, want := range []string{"connection_ack", "next"} {
		_, text, err := conn.Read(ctx)
		if err != nil || !strings.Contains(string(text), want) {
			b.t.Fatalf("%s instead of %s: %v", text, want, err)
		}
	}
	return res.StatusCode
}

func mustURL(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
