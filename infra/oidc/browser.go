package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Pending is what a browser must bring back from the provider, and what proves
// that it is the one that was sent there. It is for that browser alone.
type Pending struct {
	Issuer string `json:"issuer"`
	// State comes back with the browser; Nonce comes back in the token.
	State string `json:"state"`
	Nonce string `json:"nonce"`
	// Verifier is the secret of PKCE: a code that leaks is of no use without it.
	Verifier string `json:"verifier"`
}

// Providers are the configurations, in no order.
func (v *Verifier) Providers() []*Config {
	list := make([]*Config, 0, len(v.providers))
	for _, p := range v.providers {
		list = append(list, p.Config)
	}
	return list
}

// Begin gives the address to send a browser to, so that it signs in at a provider
// and comes back to the address back. ErrOther: there is no such provider.
func (v *Verifier) Begin(ctx context.Context, issuer, back string) (address string, pending Pending, err error) {
	p := v.providers[issuer]
	if p == nil {
		return "", Pending{}, ErrOther
	}
	if _, err := p.found(ctx); err != nil {
		return "", Pending{}, err
	}
	pending = Pending{Issuer: issuer, State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	return p.oauth(back, "").AuthCodeURL(pending.State, gooidc.Nonce(pending.Nonce), oauth2.S256ChallengeOption(pending.Verifier)), pending, nil
}

// Finish turns the code that a browser came back with into who it belongs to.
func (v *Verifier) Finish(ctx context.Context, pending Pending, state, code, back string) (Identity, error) {
	p := v.providers[pending.Issuer]
	switch {
	case p == nil:
		return Identity{}, ErrOther
	case pending.State == "" || subtle.ConstantTimeCompare([]byte(state), []byte(pending.State)) != 1:
		return Identity{}, fmt.Errorf("%w: another browser was sent", ErrInvalid)
	case code == "":
		return Identity{}, fmt.Errorf("%w: there is no code", ErrInvalid)
	}
	if _, err := p.found(ctx); err != nil {
		return Identity{}, err
	}
	secret, err := p.secret()
	if err != nil {
		return Identity{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	// The library takes its client from the context.
	asking := context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Timeout: callTimeout})
	token, err := p.oauth(back, secret).Exchange(asking, code, oauth2.VerifierOption(pending.Verifier))
	if err != nil {
		return Identity{}, p.exchangeFailed(err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return Identity{}, fmt.Errorf("%w: the provider gave no ID token", ErrInvalid)
	}
	who, nonce, err := p.read(ctx, p.browser, raw)
	if err != nil {
		return Identity{}, err
	}
	if subtle.ConstantTimeCompare([]byte(nonce), []byte(pending.Nonce)) != 1 {
		return Identity{}, fmt.Errorf("%w: it was made for another sign-in", ErrInvalid)
	}
	return who, nil
}

func (p *provider) oauth(back, secret string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: secret, Endpoint: p.endpoint, RedirectURL: back,
		Scopes: append([]string{gooidc.ScopeOpenID, "profile", "email"}, p.Scopes...),
	}
}

// secret reads what the program shows at the provider, anew each time, so that it
// can be changed. Errors don't tell it.
func (p *provider) secret() (string, error) {
	if p.ClientSecretFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(p.ClientSecretFile)
	if err != nil {
		return "", fmt.Errorf("secret at %s: %w", p.Issuer, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// exchangeFailed tells a code that doesn't hold from a provider that doesn't
// answer. The answer itself may repeat the code and is left out.
func (p *provider) exchangeFailed(err error) error {
	var answer *oauth2.RetrieveError
	if errors.As(err, &answer) && answer.Response != nil && answer.Response.StatusCode < http.StatusInternalServerError {
		return fmt.Errorf("%w: the provider refuses the code: %s", ErrInvalid, answer.ErrorCode)
	}
	return fmt.Errorf("%w: no answer to a code", ErrUnreachable)
}
