package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"tallyard/domain/flows/signin"
)

const (
	// maxToken bounds a token, in bytes. Those with hundreds of groups have some 10 KiB.
	maxToken = 32 << 10
	// maxSubject bounds a subject, in bytes; the standard says 255 characters.
	maxSubject = 255
	// maxGroups bounds the groups that are looked at.
	maxGroups = 1000
	// discoverPause is how long a provider that could not be reached is left alone.
	discoverPause = 2 * time.Second
	// callTimeout bounds one request to a provider.
	callTimeout = 10 * time.Second
)

var (
	// ErrOther says that a token is of no provider that is known here.
	ErrOther = errors.New("token of another issuer")
	// ErrInvalid says that a token doesn't hold. What was wrong is for the log:
	// whoever sent it is told nothing.
	ErrInvalid = errors.New("token does not hold")
	// ErrUnreachable says that the provider could not be asked for its keys.
	ErrUnreachable = errors.New("identity provider can't be reached")
)

// Identity is who a provider says somebody is.
type Identity struct {
	// Provider is the provider that says it.
	Provider *Config
	signin.Identity
}

// Verifier verifies the tokens of some providers. Nothing is asked of a provider
// before its first token comes, so that one that is down stops nobody else.
type Verifier struct {
	providers map[string]*provider
}

// New makes a Verifier. The configurations are those that Parse gave.
func New(configs []Config, now func() time.Time) *Verifier {
	v := &Verifier{providers: make(map[string]*provider, len(configs))}
	for i := range configs {
		c := &configs[i]
		v.providers[c.Issuer] = &provider{
			Config: c, now: now,
			client: &http.Client{Timeout: callTimeout, Transport: newCalm(http.DefaultTransport, now)},
		}
	}
	return v
}

// Verify tells who a token belongs to. It gives ErrOther for what no provider
// here has made, ErrInvalid for what doesn't hold, ErrUnreachable when the
// provider's keys can't be had.
func (v *Verifier) Verify(ctx context.Context, token string) (Identity, error) {
	issuer, err := issuerOf(token)
	if err != nil {
		return Identity{}, err
	}
	p := v.providers[issuer]
	if p == nil {
		return Identity{}, ErrOther
	}
	return p.verify(ctx, token)
}

// issuerOf reads who a token says it is from. Nothing is believed yet.
func issuerOf(token string) (string, error) {
	parts := strings.Split(token, ".")
	if len(token) > maxToken || len(parts) != 3 {
		return "", ErrOther
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", ErrOther
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return "", ErrOther
	}
	return claims.Issuer, nil
}

// provider is one provider, found when it is first needed.
type provider struct {
	*Config
	now    func() time.Time
	client *http.Client

	mu       sync.Mutex
	verifier *gooidc.IDTokenVerifier
	// browser verifies the ID tokens that sign-in by browser gives.
	browser  *gooidc.IDTokenVerifier
	endpoint oauth2.Endpoint
	failed   error
	failedAt time.Time
}

// found gives the provider's verifier, after asking the provider where its keys are.
func (p *provider) found(ctx context.Context) (*gooidc.IDTokenVerifier, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.verifier != nil {
		return p.verifier, nil
	}
	if p.failed != nil && p.now().Sub(p.failedAt) < discoverPause {
		return nil, p.failed
	}
	// Others wait for the answer, so it must not end with whoever asks first.
	asking, cancel := context.WithTimeout(gooidc.ClientContext(context.WithoutCancel(ctx), p.client), callTimeout)
	defer cancel()
	found, err := gooidc.NewProvider(asking, p.Issuer)
	if err != nil {
		p.failed, p.failedAt = fmt.Errorf("%w: %w", ErrUnreachable, err), p.now()
		return nil, p.failed
	}
	var says struct {
		Keys       string   `json:"jwks_uri"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := found.Claims(&says); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	p.failed = nil
	set := gooidc.NewRemoteKeySet(gooidc.ClientContext(context.WithoutCancel(ctx), p.client), says.Keys)
	of := func(audience string) *gooidc.IDTokenVerifier {
		return gooidc.NewVerifier(p.Issuer, keySet{set}, &gooidc.Config{
			ClientID:             audience,
			SupportedSigningAlgs: asymmetric(says.Algorithms),
			// A clock that is behind by the skew sees tokens end so much later.
			Now: func() time.Time { return p.now().Add(-p.skew()) },
		})
	}
	p.verifier, p.browser, p.endpoint = of(p.Audience), of(p.ClientID), found.Endpoint()
	return p.verifier, nil
}

// asymmetric leaves of a provider's algorithms those whose keys are public; the
// others would let whoever knows a public key sign with it.
func asymmetric(said []string) (left []string) {
	for _, a := range []string{
		gooidc.RS256, gooidc.RS384, gooidc.RS512, gooidc.ES256, gooidc.ES384, gooidc.ES512,
		gooidc.PS256, gooidc.PS384, gooidc.PS512, gooidc.EdDSA,
	} {
		if slices.Contains(said, a) {
			left = append(left, a)
		}
	}
	return left
}

// keySet tells why a signature could not be verified to whoever put a place for
// it into the context; the library makes it a text.
type keySet struct{ gooidc.KeySet }

type keyErrorPlace struct{}

// VerifySignature implements gooidc.KeySet.
func (k keySet) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, jwt)
	if place, ok := ctx.Value(keyErrorPlace{}).(*error); ok {
		*place = err
	}
	return payload, err
}

func (p *provider) verify(ctx context.Context, token string) (Identity, error) {
	v, err := p.found(ctx)
	if err != nil {
		return Identity{}, err
	}
	who, _, err := p.read(ctx, v, token)
	return who, err
}

// read verifies a token and reads who it belongs to, and its nonce.
func (p *provider) read(ctx context.Context, v *gooidc.IDTokenVerifier, token string) (Identity, string, error) {
	var keyErr error
	ctx = context.WithValue(gooidc.ClientContext(ctx, p.client), keyErrorPlace{}, &keyErr)
	t, err := v.Verify(ctx, token)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return Identity{}, "", ctx.Err()
	case errors.Is(keyErr, errKeys):
		return Identity{}, "", fmt.Errorf("%w: %w", ErrUnreachable, err)
	default:
		return Identity{}, "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if t.IssuedAt.After(p.now().Add(p.skew())) {
		return Identity{}, "", fmt.Errorf("%w: it was made in the future", ErrInvalid)
	}
	claims := map[string]json.RawMessage{}
	if err := t.Claims(&claims); err != nil {
		return Identity{}, "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if t.Subject == "" || len(t.Subject) > maxSubject {
		return Identity{}, "", fmt.Errorf("%w: it has no subject, or one too long", ErrInvalid)
	}
	return Identity{p.Config, signin.Identity{
		Subject: t.Subject, Login: text(claims[p.Claims.Login]), Name: text(claims[p.Claims.Name]), Email: text(claims[p.Claims.Email]),
		Groups: texts(claims[p.Claims.Groups]), IssuedAt: t.IssuedAt, ExpiresAt: t.Expiry.Add(p.skew()),
	}}, t.Nonce, nil
}

// text is the text in a claim, empty where there is none.
func text(claim json.RawMessage) (s string) {
	if json.Unmarshal(claim, &s) != nil {
		return ""
	}
	return s
}

// texts are the texts in a claim that is a list, or the one that it is.
func texts(claim json.RawMessage) []string {
	var list []string
	if json.Unmarshal(claim, &list) != nil {
		if s := text(claim); s != "" {
			return []string{s}
		}
		return nil
	}
	return list[:min(len(list), maxGroups)]
}
