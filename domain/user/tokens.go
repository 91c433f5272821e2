package user

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/user/internal/apitoken"
)

// NewToken is what an API token is asked for with.
type NewToken struct {
	Name string
	// ExpiresAt is when it ends; zero stands for DefaultTokenLife from now.
	ExpiresAt time.Time
}

// Issued is the answer to IssueToken. The token itself is in no stream and can
// be shown this once only.
type Issued struct {
	ID        uuid.UUID `json:"id"`
	ExpiresAt time.Time `json:"expiresAt"`
	Token     string    `json:"-"`
}

// IssueToken is `createApiToken`: a token of the user who asks.
func (h *Handler) IssueToken(ctx context.Context, cmd es.Command, in NewToken) (es.Result[Issued], error) {
	cmd.Subject = es.Ref{Kind: Category, ID: cmd.Actor.User}
	r, err := es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Issued, error) {
		if err := h.may(ctx, cmd, mustIssue(cmd.Actor)); err != nil {
			return Issued{}, err
		}
		return h.issue(ctx, cmd, in)
	})
	if err == nil && r.Replayed {
		return r, alreadyShown()
	}
	return r, err
}

func (h *Handler) issue(ctx context.Context, cmd es.Command, in NewToken) (Issued, error) {
	now := h.Runtime.Now()
	name, bad := tokenName.Clean(in.Name, "name")
	if bad != nil {
		return Issued{}, bad
	}
	end, err := expiry(in.ExpiresAt, now)
	if err != nil {
		return Issued{}, err
	}
	t, err := apitoken.New(cmd.Tenant, cmd.Actor.User, cmd.NewIDs(1)[0], h.Random)
	if err != nil {
		return Issued{}, err
	}
	ev := TokenIssued{ID: t.ID, Name: name, Digest: t.Digest(), ExpiresAt: end}
	out, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, cmd.Actor.User, issueToken(ev, now))
	if err != nil {
		return Issued{}, err
	}
	// Finished after a crash, the token in the log has a secret that is lost.
	if kept, ok := out.State.token(t.ID); !ok || !kept.same(ev.Digest) {
		return Issued{}, alreadyShown()
	}
	return Issued{ID: t.ID, ExpiresAt: end, Token: t.Text()}, nil
}

func alreadyShown() *fault.Fault {
	return fault.New(fault.State, fault.CodeSecretAlreadyShown,
		"The token was made and is shown only once; revoke it and make another one if it is lost.")
}

// mustIssue lets people make tokens for themselves, and keeps a token from
// making others: one that leaked could outlive its end.
func mustIssue(by es.Actor) func(access.Grants) error {
	return func(g access.Grants) error {
		switch {
		case !g.Active:
			return access.Missing()
		case !g.Writes():
			return access.ReadOnly()
		case by.Kind == es.ActorToken:
			return forbidden("A token can't make another one; sign in yourself.")
		}
		return nil
	}
}

// RevokeToken is `revokeApiToken`: of one's own, or of anybody's by a tenant
// admin. It works at the next request.
func (h *Handler) RevokeToken(ctx context.Context, cmd es.Command, user, token uuid.UUID) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: Category, ID: user}
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		rule := mustGovern
		if user == cmd.Actor.User {
			rule = mustBeActive
		}
		if err := h.may(ctx, cmd, rule); err != nil {
			return Refs{}, err
		}
		_, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, user, revokeToken(token))
		return Refs{User: user}, err
	})
}

// mustBeActive lets everybody, auditors too, end a token of their own.
func mustBeActive(g access.Grants) error {
	if !g.Active {
		return access.Missing()
	}
	return nil
}
