// Package oidctest runs a real OpenID Connect provider for tests: it signs
// people in with name and password, rotates its keys, and can be gone.
package oidctest

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/google/uuid"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

const (
	// Client is the program under test.
	Client = "tallyard"
	// Secret is what clients show.
	Secret = "of-the-program"
	// Other is a client of the same provider that has nothing to do with it.
	Other = "somebody-else"
	// password is everybody's.
	password = "correct horse"
)

// Person is somebody whom the provider knows.
type Person struct {
	Login, Name, Email string
	Groups             []string
}

// Provider is a provider that serves until the test ends.
type Provider struct {
	// Issuer is its address.
	Issuer string
	// KeysAsked counts how often it was asked for its keys.
	KeysAsked atomic.Int64

	t      *testing.T
	server *httptest.Server
	store  *store
	gone   atomic.Bool
}

// back is where SignIn comes back to; nobody listens there.
const back = "http://localhost:1/back"

// New starts a provider.
func New(t *testing.T) *Provider {
	t.Helper()
	p := &Provider{t: t}
	p.server = httptest.NewUnstartedServer(nil)
	p.Issuer = "http://" + p.server.Listener.Addr().String()
	p.store = newStore()
	provider := exampleop.SetupServer(p.Issuer, p.store, nil, false)
	p.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.gone.Load() {
			http.Error(w, "gone", http.StatusBadGateway)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/keys") {
			p.KeysAsked.Add(1)
		}
		provider.ServeHTTP(w, r)
	})
	p.server.Start()
	t.Cleanup(p.server.Close)
	return p
}

// Gone makes the provider answer nobody, or everybody again.
func (p *Provider) Gone(gone bool) { p.gone.Store(gone) }

// Allow lets browsers come back to an address, too.
func (p *Provider) Allow(address string) {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	p.store.redirect = append(p.store.redirect, address)
}

// Put makes the provider know a person, or know another one by the name.
func (p *Provider) Put(who Person) {
	p.store.people.put(who)
}

// Rotate makes a new key; tokens of the old one no longer hold.
func (p *Provider) Rotate() { p.store.rotate(p.t) }

// Tokens are what a sign-in gives.
type Tokens struct {
	ID     string `json:"id_token"`
	Access string `json:"access_token"`
}

// SignIn signs a person in at a client, as their browser would.
func (p *Provider) SignIn(t *testing.T, client, login string) Tokens {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Timeout: 10 * time.Second, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), back) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	defer browser.CloseIdleConnections()
	ask := url.Values{
		"client_id": {client}, "redirect_uri": {back}, "response_type": {"code"}, "scope": {"openid profile email"}, "state": {"s"},
	}
	address := p.LogIn(t, browser, p.Issuer+"/auth?"+ask.Encode(), login)
	came, err := url.Parse(address)
	if err != nil || came.Query().Get("code") == "" {
		t.Fatalf("no code for %s: %s %v", login, address, err)
	}
	return p.exchange(t, client, came.Query().Get("code"))
}

// LogIn opens an address of the provider, to which a browser was sent, and fills
// its page in. The answer is the last one before the browser stops to follow.
func (p *Provider) LogIn(t *testing.T, browser *http.Client, address, login string) string {
	t.Helper()
	page := do(t, browser, http.MethodGet, address, nil)
	_ = page.Body.Close()
	form := url.Values{"username": {login}, "password": {password}, "id": {page.Request.URL.Query().Get("authRequestID")}}
	res := do(t, browser, http.MethodPost, p.Issuer+"/login/username", form)
	_ = res.Body.Close()
	return res.Header.Get("Location")
}

// do sends a form, or nothing.
func do(t *testing.T, c *http.Client, method, address string, form url.Values) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if form.Has("client_id") {
		r.SetBasicAuth(form.Get("client_id"), Secret)
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func (p *Provider) exchange(t *testing.T, client, code string) (tokens Tokens) {
	t.Helper()
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {back}, "client_id": {client}}
	res := do(t, http.DefaultClient, http.MethodPost, p.Issuer+"/oauth/token", form)
	defer res.Body.Close() //nolint:errcheck // read to its end
	body, err := io.ReadAll(res.Body)
	if err := errors.Join(err, json.Unmarshal(body, &tokens)); err != nil || tokens.ID == "" {
		t.Fatalf("%s %s: %v", res.Status, body, err)
	}
	return tokens
}

// Sign makes a token of claims with the provider's present key, whatever they say.
func (p *Provider) Sign(t *testing.T, claims map[string]any) string {
	t.Helper()
	return p.store.sign(t, claims)
}

// Claims are those of a good ID token, for tests to spoil.
func (p *Provider) Claims(subject string, now time.Time) map[string]any {
	return map[string]any{
		"iss": p.Issuer, "aud": Client, "sub": subject, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
}

// people are those whom the provider knows.
type people struct {
	mu   sync.Mutex
	byID map[string]*storage.User
	more map[string][]string // groups by id
}

// Subject is the provider's name for a person.
func Subject(login string) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(login)).String()
}

func (p *people) put(who Person) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, last, _ := strings.Cut(who.Name, " ")
	id := Subject(who.Login)
	p.byID[id] = &storage.User{ID: id, Username: who.Login, Password: password, FirstName: first, LastName: last, Email: who.Email}
	p.more[id] = who.Groups
}

// GetUserByID implements storage.UserStore.
func (p *people) GetUserByID(id string) *storage.User {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byID[id]
}

// GetUserByUsername implements storage.UserStore.
func (p *people) GetUserByUsername(login string) *storage.User { return p.GetUserByID(Subject(login)) }

// ExampleClientID implements storage.UserStore.
func (p *people) ExampleClientID() string { return storage.ServiceUserID }

func (p *people) groups(id string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.more[id]
}

// store is the provider's memory.
type store struct {
	*storage.Storage
	people *people

	mu       sync.Mutex
	key      signingKey
	redirect []string
}

type signingKey struct {
	id  string
	key *rsa.PrivateKey
}

func newStore() *store {
	clients := map[string]*storage.Client{}
	for _, id := range []string{Client, Other} {
		clients[id] = storage.WebClient(id, Secret)
	}
	p := &people{byID: map[string]*storage.User{}, more: map[string][]string{}}
	s := &store{Storage: storage.NewStorageWithClients(p, clients), people: p, redirect: []string{back}}
	return s
}

func (s *store) rotate(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = signingKey{}
	s.present()
}

// present is the key of now; the lock is held.
func (s *store) present() signingKey {
	if s.key.key == nil {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err) // there is no randomness
		}
		s.key = signingKey{uuid.NewString(), key}
	}
	return s.key
}

func (s *store) now() signingKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.present()
}

// ID implements op.SigningKey and op.Key.
func (k signingKey) ID() string { return k.id }

// SignatureAlgorithm implements op.SigningKey.
func (k signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }

// Key implements op.SigningKey.
func (k signingKey) Key() any { return k.key }

type publicKey struct{ signingKey }

// Algorithm implements op.Key.
func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }

// Use implements op.Key.
func (k publicKey) Use() string { return "sig" }

// Key implements op.Key.
func (k publicKey) Key() any { return &k.key.PublicKey }

// SigningKey implements op.Storage.
func (s *store) SigningKey(context.Context) (op.SigningKey, error) { return s.now(), nil }

// KeySet implements op.Storage.
func (s *store) KeySet(context.Context) ([]op.Key, error) { return []op.Key{publicKey{s.now()}}, nil }

// SetUserinfoFromRequest puts the groups into ID tokens.
func (s *store) SetUserinfoFromRequest(_ context.Context, info *oidc.UserInfo, r op.IDTokenRequest, _ []string) error {
	info.Subject = r.GetSubject()
	for name, value := range s.claims(r.GetSubject()) {
		info.AppendClaims(name, value)
	}
	return nil
}

// GetPrivateClaimsFromScopes puts the groups into access tokens.
func (s *store) GetPrivateClaimsFromScopes(_ context.Context, id, _ string, _ []string) (map[string]any, error) {
	return s.claims(id), nil
}

func (s *store) claims(id string) map[string]any {
	u := s.people.GetUserByID(id)
	if u == nil {
		return nil
	}
	return map[string]any{
		"preferred_username": u.Username, "name": strings.TrimSpace(u.FirstName + " " + u.LastName), "email": u.Email, "groups": s.people.groups(id),
	}
}

// GetClientByClientID implements op.Storage.
func (s *store) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := s.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return jwtClient{c, slices.Clone(s.redirect)}, nil
}

// jwtClient gets access tokens that can be read.
type jwtClient struct {
	op.Client
	redirect []string
}

// RedirectURIs implements op.Client.
func (c jwtClient) RedirectURIs() []string { return c.redirect }

// AccessTokenType implements op.Client.
func (jwtClient) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }

func (s *store) sign(t *testing.T, claims map[string]any) string {
	t.Helper()
	key := s.now()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key.key, KeyID: key.id}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(body)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(fmt.Errorf("serialize: %w", err))
	}
	return raw
}
