// Package browser signs browsers in: it sends them to an identity provider, and
// gives those that come back a cookie that the API takes for a sign-in, from our
// own pages alone.
package browser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tallyard/domain/fault"
)

const (
	// SignInPath begins a sign-in.
	SignInPath = "/signin"
	// BackPath is where browsers come back to from a provider.
	BackPath = "/signin/back"
	// SessionPath tells a page how it may sign in.
	SessionPath = "/signin/session"
	// SignOutPath ends a session.
	SignOutPath = "/signout"

	// pendingCookie holds what a browser must bring back, for a while.
	pendingCookie = "tallyard_signin"
	pendingLife   = 10 * time.Minute
	// maxPending bounds that cookie, in bytes.
	maxPending = 4 << 10
)

// Flow carries sign-ins out.
type Flow interface {
	// Begin gives the address at the provider, and what the browser must bring back.
	Begin(ctx context.Context, issuer string) (address string, pending []byte, err error)
	// Finish gives the secret of the browser's session and when it ends.
	Finish(ctx context.Context, pending []byte, state, code string) (secret string, ends time.Time, err error)
	// Close ends a session.
	Close(ctx context.Context, secret string) error
}

// Provider is an identity provider that people may choose.
type Provider struct{ Issuer, Label string }

// Config is what a Handler needs.
type Config struct {
	Flow      Flow
	Providers []Provider
	// Public is the address at which browsers reach the program,
	// scheme://host[:port]. With https cookies travel by it alone.
	Public *url.URL
	Logger *slog.Logger
}

// Handler serves sign-in and sign-out.
type Handler struct {
	cfg    Config
	cookie string
	secure bool
	cross  *http.CrossOriginProtection
	mux    *http.ServeMux
}

// New makes a Handler.
func New(cfg Config) (*Handler, error) {
	h := &Handler{cfg: cfg, cookie: "tallyard", secure: cfg.Public.Scheme == "https", cross: http.NewCrossOriginProtection(), mux: http.NewServeMux()}
	if h.secure {
		// Such a cookie can be set by this host alone, not by its neighbours.
		h.cookie = "__Host-tallyard"
	}
	if err := h.cross.AddTrustedOrigin(h.origin()); err != nil {
		return nil, err
	}
	h.mux.HandleFunc("GET "+SignInPath, h.begin)
	h.mux.HandleFunc("GET "+BackPath, h.back)
	h.mux.HandleFunc("GET "+SessionPath, h.session)
	h.mux.HandleFunc("POST "+SignOutPath, h.signOut)
	return h, nil
}

func (h *Handler) origin() string { return h.cfg.Public.Scheme + "://" + h.cfg.Public.Host }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.mux.ServeHTTP(w, r)
}

// pending is the content of the cookie of a sign-in that has begun.
type pending struct {
	Flow   []byte `json:"flow"`
	Return string `json:"return"`
}

// begin sends a browser to a provider: ?provider=N of the list, and ?return=/path.
func (h *Handler) begin(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	n, err := strconv.Atoi(first(q.Get("provider"), "0"))
	if err != nil || n < 0 || n >= len(h.cfg.Providers) {
		h.say(w, http.StatusNotFound, "There is no such identity provider; go back and choose one of the list.")
		return
	}
	address, flow, err := h.cfg.Flow.Begin(r.Context(), h.cfg.Providers[n].Issuer)
	if err != nil {
		h.failed(w, r, err)
		return
	}
	text, err := json.Marshal(pending{flow, local(q.Get("return"))})
	if err != nil {
		h.failed(w, r, err)
		return
	}
	// It comes back with a navigation from the provider's pages.
	h.set(w, pendingCookie, base64.RawURLEncoding.EncodeToString(text), SignInPath, pendingLife, http.SameSiteLaxMode)
	http.Redirect(w, r, address, http.StatusSeeOther)
}

// back takes a browser that comes from a provider.
func (h *Handler) back(w http.ResponseWriter, r *http.Request) {
	p, ok := pendingOf(r)
	// Once only, whatever comes of it.
	h.set(w, pendingCookie, "", SignInPath, -1, http.SameSiteLaxMode)
	if !ok {
		h.say(w, http.StatusBadRequest, "This sign-in was begun in another browser or too long ago; begin again at "+h.origin()+"/.")
		return
	}
	q := r.URL.Query()
	if q.Get("error") != "" {
		h.say(w, http.StatusForbidden, "The identity provider did not sign you in; begin again at "+h.origin()+"/.")
		return
	}
	secret, ends, err := h.cfg.Flow.Finish(r.Context(), p.Flow, q.Get("state"), q.Get("code"))
	if err != nil {
		h.failed(w, r, err)
		return
	}
	h.set(w, h.cookie, secret, "/", time.Until(ends), http.SameSiteStrictMode)
	http.Redirect(w, r, local(p.Return), http.StatusSeeOther)
}

func pendingOf(r *http.Request) (p pending, ok bool) {
	c, err := r.Cookie(pendingCookie)
	if err != nil || len(c.Value) > maxPending {
		return p, false
	}
	text, err := base64.RawURLEncoding.DecodeString(c.Value)
	return p, err == nil && json.Unmarshal(text, &p) == nil
}

// session tells a page how it may sign in, and whether the browser has a session.
func (h *Handler) session(w http.ResponseWriter, r *http.Request) {
	type provider struct {
		Label string `json:"label"`
		Href  string `json:"href"`
	}
	out := struct {
		SignedIn  bool       `json:"signedIn"`
		Providers []provider `json:"providers"`
	}{h.secret(r) != "", []provider{}}
	for i, p := range h.cfg.Providers {
		out.Providers = append(out.Providers, provider{p.Label, SignInPath + "?provider=" + strconv.Itoa(i)})
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(out) // a client that left needs no answer
}

func (h *Handler) signOut(w http.ResponseWriter, r *http.Request) {
	if err := h.cross.Check(r); err != nil {
		h.say(w, http.StatusForbidden, "Sign out on the page itself.")
		return
	}
	if secret := h.secret(r); secret != "" {
		if err := h.cfg.Flow.Close(r.Context(), secret); err != nil {
			h.failed(w, r, err)
			return
		}
	}
	h.set(w, h.cookie, "", "/", -1, http.SameSiteStrictMode)
	w.WriteHeader(http.StatusNoContent)
}

// Guard lets the browser's session count as a sign-in at next, where a request
// has no other and comes from our own pages.
func (h *Handler) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret := h.secret(r)
		if secret == "" || r.Header.Get("Authorization") != "" {
			next.ServeHTTP(w, r)
			return
		}
		if !h.ours(r) {
			h.say(w, http.StatusForbidden, "A browser's sign-in counts for requests from "+h.origin()+" alone; elsewhere send a token in the header Authorization.")
			return
		}
		signed := r.Clone(r.Context())
		signed.Header.Set("Authorization", "Bearer "+secret)
		next.ServeHTTP(w, signed)
	})
}

// ours tells whether a request is from our own pages. Browsers tell where
// requests come from, and what is no browser sends no cookie by accident.
func (h *Handler) ours(r *http.Request) bool {
	if h.cross.Check(r) != nil {
		return false
	}
	// A WebSocket begins with a GET, which that takes for harmless.
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return false
	}
	origin := r.Header.Get("Origin")
	return origin == "" && r.Header.Get("Upgrade") == "" || origin == h.origin()
}

// secret is the browser's secret, empty when it has none.
func (h *Handler) secret(r *http.Request) string {
	c, err := r.Cookie(h.cookie)
	if err != nil {
		return ""
	}
	return c.Value
}

// set sets a cookie that no script can read, or takes it away where life is below zero.
func (h *Handler) set(w http.ResponseWriter, name, value, path string, life time.Duration, site http.SameSite) {
	age := -1
	if life > 0 {
		age = int(life.Seconds())
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // G124: without TLS on loopback alone, which the configuration holds
		Name: name, Value: value, Path: path, MaxAge: age, HttpOnly: true, Secure: h.secure, SameSite: site,
	})
}

// failed says what a person can do. What went wrong is for the log.
func (h *Handler) failed(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case fault.Is(err, fault.CodeUnauthenticated):
		h.say(w, http.StatusForbidden, "You are known to the identity provider, and not let in here; ask an admin of your company.")
	case fault.Is(err, fault.CodeUnavailable):
		h.say(w, http.StatusServiceUnavailable, "The identity provider does not answer; try again soon.")
	case fault.Is(err, fault.CodeBadRequest):
		h.say(w, http.StatusBadRequest, "The identity provider's answer does not hold; begin again at "+h.origin()+"/.")
	default:
		h.cfg.Logger.ErrorContext(r.Context(), "sign-in by browser failed", "error", err)
		h.say(w, http.StatusInternalServerError, "The sign-in failed here; try again.")
	}
}

func (h *Handler) say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // a client that left needs no answer
}

// local keeps a way back inside our own pages.
func local(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return "/"
	}
	return path
}

func first(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
