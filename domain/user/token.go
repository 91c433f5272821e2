package user

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/user/internal/apitoken"
)

// TokenPrefix begins every API token.
const TokenPrefix = apitoken.Prefix

// Unauthenticated is the one answer to every credential that does not hold,
// whatever is wrong with it.
func Unauthenticated() *fault.Fault {
	return fault.New(fault.Unauthenticated, fault.CodeUnauthenticated,
		"The sign-in is missing or not valid; sign in again or use another token.")
}

// Session is who a credential belongs to and what they may do, by the log.
type Session struct {
	Tenant uuid.UUID
	Actor  es.Actor
	Grants access.Grants
	// ExpiresAt is when the credential ends; zero: not by itself.
	ExpiresAt time.Time
}

// VerifyToken tells who a token belongs to.
func (h *Handler) VerifyToken(ctx context.Context, token string, now time.Time) (Session, error) {
	t, ok := apitoken.Parse(token)
	if !ok {
		return Session{}, Unauthenticated()
	}
	s, err := h.Load(ctx, t.Tenant, t.User)
	if err != nil {
		return Session{}, err
	}
	// The comparison is made for unknown tokens as well: its time tells nothing.
	known, _ := s.token(t.ID)
	if subtle.ConstantTimeCompare(pad(known.Digest), t.Digest()) != 1 {
		return Session{}, Unauthenticated()
	}
	return s.session(t.Tenant, es.Actor{Kind: es.ActorToken, User: t.User, Token: t.ID}, now)
}

// Recheck tells whether an actor who was let in still would be, and with which
// rights: not when suspended, nor when the token ended or was revoked (TEN-07).
func (h *Handler) Recheck(ctx context.Context, tenant uuid.UUID, actor es.Actor, now time.Time) (Session, error) {
	s, err := h.Load(ctx, tenant, actor.User)
	if err != nil {
		return Session{}, err
	}
	return s.session(tenant, actor, now)
}

// session lets an actor in by the state of the user.
func (s State) session(tenant uuid.UUID, actor es.Actor, now time.Time) (Session, error) {
	out := Session{Tenant: tenant, Actor: actor, Grants: s.Grants(tenant, actor.User)}
	if !out.Grants.Active {
		return Session{}, Unauthenticated()
	}
	if actor.Kind == es.ActorToken {
		t, known := s.token(actor.Token)
		if !known || !t.ExpiresAt.After(now) {
			return Session{}, Unauthenticated()
		}
		out.ExpiresAt = t.ExpiresAt
	}
	return out, nil
}

// pad gives unknown tokens a digest that no secret has.
func pad(digest []byte) []byte {
	if len(digest) == sha256.Size {
		return digest
	}
	return make([]byte, sha256.Size)
}
