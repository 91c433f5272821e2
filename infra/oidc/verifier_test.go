package oidc_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"go.uber.org/goleak"

	"tallyard/infra/oidc"
	"tallyard/infra/oidc/oidctest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { http.DefaultClient.CloseIdleConnections() }))
}

// clock is the machine's, moved ahead.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

func verifier(t *testing.T, p *oidctest.Provider, c *clock) *oidc.Verifier {
	t.Helper()
	configs, err := oidc.Parse([]byte(fmt.Sprintf(`{"providers": [{"issuer": %q, "audience": %q, "tenant": "acme"}]}`, p.Issuer, oidctest.Client)))
	if err != nil {
		t.Fatal(err)
	}
	return oidc.New(configs, c.Now)
}

func TestVerify(t *testing.T) {
	p, c := oidctest.New(t), &clock{}
	p.Put(oidctest.Person{Login: "ada", Name: "Ada Lovelace", Email: "ada@example.com", Groups: []string{"vision", "ml-admins"}})
	v := verifier(t, p, c)

	t.Run("TEN-06_an_ID_token_and_an_access_token_say_who_it_is", func(t *testing.T) {
		tokens := p.SignIn(t, oidctest.Client, "ada")
		for kind, token := range map[string]string{"ID": tokens.ID, "access": tokens.Access} {
			got, err := v.Verify(t.Context(), token)
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			if got.Subject != oidctest.Subject("ada") || got.Login != "ada" || got.Name != "Ada Lovelace" || got.Email != "ada@example.com" ||
				!slices.Equal(got.Groups, []string{"vision", "ml-admins"}) || got.Provider.Tenant != "acme" || !got.ExpiresAt.After(c.Now()) {
				t.Errorf("%s: %+v", kind, got)
			}
		}
	})
	t.Run("TEN-06_a_token_for_another_client_does_not_hold", func(t *testing.T) {
		refused(t, v, p.SignIn(t, oidctest.Other, "ada").ID)
	})
	t.Run("TEN-06_what_is_wrong_with_a_token_is_found", func(t *testing.T) {
		for name, spoil := range map[string]func(map[string]any){
			"another audience":      func(c map[string]any) { c["aud"] = "somebody-else" },
			"no audience":           func(c map[string]any) { delete(c, "aud") },
			"over":                  func(m map[string]any) { m["exp"] = c.Now().Add(-31 * time.Second).Unix() },
			"without an end":        func(c map[string]any) { delete(c, "exp") },
			"not yet":               func(m map[string]any) { m["nbf"] = c.Now().Add(10 * time.Minute).Unix() },
			"made in the future":    func(m map[string]any) { m["iat"] = c.Now().Add(time.Minute).Unix() },
			"no subject":            func(c map[string]any) { delete(c, "sub") },
			"a subject of 256":      func(c map[string]any) { c["sub"] = strings.Repeat("x", 256) },
			"a subject in a number": func(c map[string]any) { c["sub"] = 7 },
		} {
			claims := p.Claims("s", c.Now())
			spoil(claims)
			t.Run(name, func(t *testing.T) { refused(t, v, p.Sign(t, claims)) })
		}
	})
	t.Run("TEN-06_odd_claims_do_no_harm", func(t *testing.T) {
		claims := p.Claims("s", c.Now())
		claims["groups"], claims["name"], claims["email"] = "one", []int{1}, map[string]any{}
		got, err := v.Verify(t.Context(), p.Sign(t, claims))
		if err != nil || !slices.Equal(got.Groups, []string{"one"}) || got.Name != "" || got.Email != "" {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("TEN-06_a_clock_may_be_a_little_off", func(t *testing.T) {
		claims := p.Claims("s", c.Now())
		claims["exp"], claims["iat"] = c.Now().Add(-20*time.Second).Unix(), c.Now().Add(20*time.Second).Unix()
		if _, err := v.Verify(t.Context(), p.Sign(t, claims)); err != nil {
			t.Error(err)
		}
	})
	t.Run("TEN-06_forged_tokens_do_not_hold", func(t *testing.T) {
		good := p.Sign(t, p.Claims("s", c.Now()))
		parts := strings.Split(good, ".")
		other := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(decode(t, parts[1]), `"sub":"s"`, `"sub":"t"`, 1)))
		none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))
		for name, token := range map[string]string{
			"other claims": parts[0] + "." + other + "." + parts[2],
			"no signature": parts[0] + "." + parts[1] + ".",
			"alg none":     none + "." + parts[1] + ".",
			"alg HS256":    hmacSigned(t, decode(t, parts[1])),
		} {
			t.Run(name, func(t *testing.T) { refused(t, v, token) })
		}
	})
	t.Run("TEN-06_other_things_are_not_taken_for_tokens", func(t *testing.T) {
		claims := p.Claims("s", c.Now())
		claims["iss"] = "https://login.example.com"
		for _, token := range []string{"", "dev-alice", "a.b", "a.b.c", "a.!.c", strings.Repeat("x", 40_000), p.Sign(t, claims)} {
			if _, err := v.Verify(t.Context(), token); !errors.Is(err, oidc.ErrOther) {
				t.Errorf("%.20q: %v", token, err)
			}
		}
	})
}

func TestKeys(t *testing.T) {
	p, c := oidctest.New(t), &clock{}
	v := verifier(t, p, c)
	sign := func() string { return p.Sign(t, p.Claims("s", c.Now())) }
	holds := func(t *testing.T, token string) {
		t.Helper()
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Error(err)
		}
	}
	t.Run("TEN-06_a_provider_that_is_down_is_found_later", func(t *testing.T) {
		p.Gone(true)
		if _, err := v.Verify(t.Context(), sign()); !errors.Is(err, oidc.ErrUnreachable) {
			t.Fatal(err)
		}
		p.Gone(false)
		c.pass(3 * time.Second)
		holds(t, sign())
	})
	t.Run("TEN-06_keys_are_asked_for_once", func(t *testing.T) {
		before := p.KeysAsked.Load()
		for range 50 {
			holds(t, sign())
		}
		if n := p.KeysAsked.Load() - before; n != 0 {
			t.Errorf("asked %d times more", n)
		}
	})
	t.Run("TEN-06_a_new_key_is_found_by_itself", func(t *testing.T) {
		old := sign()
		p.Rotate()
		c.pass(2 * time.Second)
		holds(t, sign())
		// The new keys come a moment after the first token that needed them.
		for range 200 {
			if _, err := v.Verify(t.Context(), old); err != nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		refused(t, v, old)
	})
	t.Run("TEN-06_made_up_keys_do_not_make_the_provider_be_asked_each_time", func(t *testing.T) {
		holds(t, sign())
		before := p.KeysAsked.Load()
		forged := oidctest.New(t)
		claims := p.Claims("s", c.Now())
		var g sync.WaitGroup
		for range 50 {
			g.Go(func() { refused(t, v, forged.Sign(t, claims)) })
		}
		g.Wait()
		if n := p.KeysAsked.Load() - before; n > 1 {
			t.Errorf("asked %d times", n)
		}
	})
	t.Run("TEN-06_known_keys_hold_while_the_provider_is_down", func(t *testing.T) {
		token := sign()
		holds(t, token)
		p.Gone(true)
		defer p.Gone(false)
		c.pass(2 * time.Second)
		holds(t, token)
		p.Rotate()
		if _, err := v.Verify(t.Context(), sign()); !errors.Is(err, oidc.ErrUnreachable) {
			t.Errorf("a key that can't be had: %v", err)
		}
	})
	t.Run("TEN-06_who_asks_can_go_away", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c.pass(2 * time.Second)
		p.Rotate()
		if _, err := v.Verify(ctx, sign()); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		c.pass(2 * time.Second)
		holds(t, sign())
	})
}

func refused(t *testing.T, v *oidc.Verifier, token string) {
	t.Helper()
	if got, err := v.Verify(t.Context(), token); !errors.Is(err, oidc.ErrInvalid) {
		t.Errorf("%+v, %v", got, err)
	}
}

func decode(t *testing.T, part string) string {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// hmacSigned signs with what everybody knows.
func hmacSigned(t *testing.T, payload string) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: make([]byte, 32)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign([]byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
