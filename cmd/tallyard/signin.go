package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/flows/signin"
	"tallyard/domain/user"
	"tallyard/graph/authn"
	"tallyard/infra/oidc"
)

// readProviders reads the file of identity providers.
func readProviders(path string) ([]oidc.Config, error) {
	text, err := os.ReadFile(path) //nolint:gosec // G304: the operator names it
	if err != nil {
		return nil, fmt.Errorf("--oidc-config: %w", err)
	}
	providers, err := oidc.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--oidc-config %s: %w", path, err)
	}
	return providers, nil
}

// shownTimeout is how long somebody new waits for the read models, as a
// mutation does.
const shownTimeout = 2 * time.Second

// shown waits until the read models show what a sign-in wrote; where they are
// late, the first answer is, too.
func (p *parts) shown(ctx context.Context, at es.Position, events []string) {
	ctx, cancel := context.WithTimeout(ctx, shownTimeout)
	defer cancel()
	if err := p.reader.WaitFor(ctx, at, p.reader.ProjectionsFor(events...)...); err != nil {
		p.logger.WarnContext(ctx, "read models are late for somebody new", "error", err)
	}
}

// outsiders lets in whom identity providers vouch for.
type outsiders struct {
	verifier *oidc.Verifier
	flow     *signin.Flow
	logger   *slog.Logger
}

// Verify implements authn.Verifier.
func (o outsiders) Verify(ctx context.Context, token string) (authn.Viewer, error) {
	who, err := o.verifier.Verify(ctx, token)
	switch {
	case errors.Is(err, oidc.ErrOther):
		return authn.Viewer{}, authn.ErrNotMine
	case errors.Is(err, oidc.ErrInvalid):
		o.logger.InfoContext(ctx, "token of an identity provider refused", "error", err)
		return authn.Viewer{}, user.Unauthenticated()
	case err != nil:
		return authn.Viewer{}, o.outage(ctx, err)
	}
	s, err := o.enter(ctx, who)
	return authn.Viewer{Session: s}, err
}

// outage makes a fault of a provider that does not answer.
func (o outsiders) outage(ctx context.Context, err error) error {
	if !errors.Is(err, oidc.ErrUnreachable) {
		return err
	}
	o.logger.WarnContext(ctx, "identity provider not reached", "error", err)
	return fault.New(fault.Unavailable, fault.CodeUnavailable,
		"The identity provider does not answer, so your sign-in can't be looked at; try again soon.")
}

// enter lets somebody in by the rules of their provider.
func (o outsiders) enter(ctx context.Context, who oidc.Identity) (user.Session, error) {
	p := who.Provider
	return o.flow.Enter(ctx, signin.Rules{Issuer: p.Issuer, Tenant: p.Tenant, Create: p.Create, Roles: p.Roles}, who.Identity)
}
