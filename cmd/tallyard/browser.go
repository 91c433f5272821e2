package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"tallyard/domain/fault"
	"tallyard/graph/authn"
	"tallyard/graph/transport/browser"
	"tallyard/infra/oidc"
	"tallyard/infra/postgres"
)

// browserSessions is the store of browsers' sessions, as authn asks for it.
type browserSessions struct{ *postgres.BrowserSessions }

// Keep implements authn.BrowserStore.
func (b browserSessions) Keep(ctx context.Context, digest []byte, s authn.BrowserSession) error {
	return b.BrowserSessions.Keep(ctx, digest, postgres.BrowserSession(s))
}

// Find implements authn.BrowserStore.
func (b browserSessions) Find(ctx context.Context, digest []byte, at time.Time) (authn.BrowserSession, bool, error) {
	s, ok, err := b.BrowserSessions.Find(ctx, digest, at)
	return authn.BrowserSession(s), ok, err
}

// browserFlow signs browsers in at the providers.
type browserFlow struct {
	outsiders
	sessions *authn.Browsers
	back     string // the address that they come back to
}

// Begin implements browser.Flow.
func (f browserFlow) Begin(ctx context.Context, issuer string) (string, []byte, error) {
	address, pending, err := f.verifier.Begin(ctx, issuer, f.back)
	if err != nil {
		return "", nil, f.told(ctx, err)
	}
	text, err := json.Marshal(pending)
	return address, text, err
}

// Finish implements browser.Flow.
func (f browserFlow) Finish(ctx context.Context, text []byte, state, code string) (string, time.Time, error) {
	var pending oidc.Pending
	if err := json.Unmarshal(text, &pending); err != nil {
		return "", time.Time{}, fault.New(fault.Invalid, fault.CodeBadRequest, "The sign-in is not readable; begin again.")
	}
	who, err := f.verifier.Finish(ctx, pending, state, code, f.back)
	if err != nil {
		return "", time.Time{}, f.told(ctx, err)
	}
	s, err := f.enter(ctx, who)
	if err != nil {
		return "", time.Time{}, err
	}
	return f.sessions.Open(ctx, s)
}

// Close implements browser.Flow.
func (f browserFlow) Close(ctx context.Context, secret string) error {
	return f.sessions.Close(ctx, secret)
}

// told makes the fault of a provider's error that a person is told.
func (f browserFlow) told(ctx context.Context, err error) error {
	if errors.Is(err, oidc.ErrInvalid) || errors.Is(err, oidc.ErrOther) {
		f.logger.InfoContext(ctx, "sign-in by browser refused", "error", err)
		return fault.New(fault.Invalid, fault.CodeBadRequest, "The identity provider's answer does not hold; begin again.")
	}
	return f.outage(ctx, err)
}

// buildBrowser makes sign-in by browser, where there are providers.
func (p *parts) buildBrowser(providers []oidc.Config, o outsiders, sessions *authn.Browsers) error {
	public, err := url.Parse(p.config.publicURL)
	if err != nil {
		return fmt.Errorf("--public-url: %w", err)
	}
	list := make([]browser.Provider, len(providers))
	for i := range providers {
		list[i] = browser.Provider{Issuer: providers[i].Issuer, Label: providers[i].Label()}
	}
	slices.SortFunc(list, func(a, b browser.Provider) int { return strings.Compare(a.Label, b.Label) })
	p.browser, err = browser.New(browser.Config{
		Flow:      browserFlow{o, sessions, strings.TrimSuffix(p.config.publicURL, "/") + browser.BackPath},
		Providers: list, Public: public, Logger: p.logger,
	})
	return err
}

// newBrowsers opens and verifies the sessions of browsers.
func (p *parts) newBrowsers() *authn.Browsers {
	return &authn.Browsers{
		Store: browserSessions{postgres.NewBrowserSessions(p.pool)}, Rights: p.domain.users,
		Clock: p.domain.runtime.Clock, Random: rand.Reader,
	}
}
