package user

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// TokenPrefix begins every API token, so that scanners for leaked secrets know it.
const TokenPrefix = "tyd_"

const (
	secretSize = 32
	tokenSize  = 3*16 + secretSize
)

// encoding refuses a text that is not the one way to write its bytes, so that
// a token has one spelling.
var encoding = base64.RawURLEncoding.Strict()

// apiToken is what a token's text says: whose it is, which one, and the secret.
type apiToken struct {
	tenant, user, id uuid.UUID
	secret           [secretSize]byte
}

func newToken(tenant, user, id uuid.UUID, random io.Reader) (apiToken, error) {
	t := apiToken{tenant: tenant, user: user, id: id}
	if _, err := io.ReadFull(random, t.secret[:]); err != nil {
		return t, fmt.Errorf("make a token: %w", err)
	}
	return t, nil
}

// text is what the user keeps.
func (t apiToken) text() string {
	b := make([]byte, 0, tokenSize)
	b = append(b, t.tenant[:]...)
	b = append(b, t.user[:]...)
	b = append(b, t.id[:]...)
	return TokenPrefix + encoding.EncodeToString(append(b, t.secret[:]...))
}

func (t apiToken) digest() []byte {
	d := sha256.Sum256(t.secret[:])
	return d[:]
}

func parseToken(s string) (apiToken, bool) {
	rest, ok := strings.CutPrefix(s, TokenPrefix)
	if !ok || encoding.DecodedLen(len(rest)) != tokenSize {
		return apiToken{}, false
	}
	b, err := encoding.DecodeString(rest)
	if err != nil || len(b) != tokenSize {
		return apiToken{}, false
	}
	var t apiToken
	copy(t.tenant[:], b)
	copy(t.user[:], b[16:])
	copy(t.id[:], b[32:])
	copy(t.secret[:], b[48:])
	return t, true
}

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
	t, ok := parseToken(token)
	if !ok {
		return Session{}, Unauthenticated()
	}
	s, err := h.Load(ctx, t.tenant, t.user)
	if err != nil {
		return Session{}, err
	}
	// The comparison is made for unknown tokens as well: its time tells nothing.
	known, _ := s.token(t.id)
	if subtle.ConstantTimeCompare(pad(known.Digest), t.digest()) != 1 {
		return Session{}, Unauthenticated()
	}
	return s.session(t.tenant, es.Actor{Kind: es.ActorToken, User: t.user, Token: t.id}, now)
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
