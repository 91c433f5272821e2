package authn

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/user"
)

const (
	// BrowserPrefix begins the secrets of browsers' sessions. They travel in a
	// cookie that no script can read.
	BrowserPrefix = "tys_"
	// BrowserLife is how long a browser stays signed in, whatever it does.
	BrowserLife = 12 * time.Hour
	secretBytes = 32
)

// BrowserSession is a browser that somebody signed in with.
type BrowserSession struct {
	Tenant, User         uuid.UUID
	CreatedAt, ExpiresAt time.Time
}

// BrowserStore keeps sessions by the SHA-256 of their secrets.
type BrowserStore interface {
	Keep(ctx context.Context, digest []byte, s BrowserSession) error
	// Find gives a session that holds at a time.
	Find(ctx context.Context, digest []byte, at time.Time) (BrowserSession, bool, error)
	Drop(ctx context.Context, digest []byte) error
}

// Browsers opens the sessions of browsers, and is their Verifier.
type Browsers struct {
	Store  BrowserStore
	Rights Rights
	Clock  es.Clock
	// Random is the source of secrets: crypto/rand.Reader.
	Random io.Reader
}

// Open signs a browser in and gives the secret for its cookie.
func (b *Browsers) Open(ctx context.Context, who user.Session) (secret string, ends time.Time, err error) {
	raw := make([]byte, secretBytes)
	if _, err := io.ReadFull(b.Random, raw); err != nil {
		return "", time.Time{}, err
	}
	secret = BrowserPrefix + base64.RawURLEncoding.EncodeToString(raw)
	now := b.Clock.Now()
	s := BrowserSession{Tenant: who.Tenant, User: who.Actor.User, CreatedAt: now, ExpiresAt: now.Add(BrowserLife)}
	return secret, s.ExpiresAt, b.Store.Keep(ctx, digest(secret), s)
}

// Verify implements Verifier.
func (b *Browsers) Verify(ctx context.Context, token string) (Viewer, error) {
	if !strings.HasPrefix(token, BrowserPrefix) {
		return Viewer{}, ErrNotMine
	}
	now := b.Clock.Now()
	s, ok, err := b.Store.Find(ctx, digest(token), now)
	if err != nil {
		return Viewer{}, err
	}
	if !ok {
		return Viewer{}, user.Unauthenticated()
	}
	in, err := b.Rights.Recheck(ctx, s.Tenant, es.Actor{Kind: es.ActorUser, User: s.User}, now)
	in.ExpiresAt = s.ExpiresAt
	return Viewer{in}, err
}

// Close signs a browser out; one that isn't signed in stays so.
func (b *Browsers) Close(ctx context.Context, secret string) error {
	return b.Store.Drop(ctx, digest(secret))
}

func digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
