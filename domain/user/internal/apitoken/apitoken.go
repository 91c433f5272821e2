// Package apitoken is the text of a personal API token: whose it is, which one,
// and the secret.
package apitoken

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"
)

// Prefix begins every token, so that scanners for leaked secrets know it.
const Prefix = "tyd_"

const (
	secretSize = 32
	size       = 3*16 + secretSize
)

// encoding refuses a text that is not the one way to write its bytes, so that
// a token has one spelling.
var encoding = base64.RawURLEncoding.Strict()

// Token is what a token's text says.
type Token struct {
	Tenant, User, ID uuid.UUID
	Secret           [secretSize]byte
}

// New makes a token with a secret from a random source.
func New(tenant, user, id uuid.UUID, random io.Reader) (Token, error) {
	t := Token{Tenant: tenant, User: user, ID: id}
	if _, err := io.ReadFull(random, t.Secret[:]); err != nil {
		return Token{}, fmt.Errorf("make a token: %w", err)
	}
	return t, nil
}

// Text is what the user keeps.
func (t Token) Text() string {
	b := make([]byte, 0, size)
	b = append(b, t.Tenant[:]...)
	b = append(b, t.User[:]...)
	b = append(b, t.ID[:]...)
	return Prefix + encoding.EncodeToString(append(b, t.Secret[:]...))
}

// Digest is what is kept of the secret. It needs no salt and no slow hash: the
// secret is random and as long as the digest.
func (t Token) Digest() []byte {
	d := sha256.Sum256(t.Secret[:])
	return d[:]
}

// Parse reads a token's text; false when it is none.
func Parse(text string) (Token, bool) {
	rest, ok := strings.CutPrefix(text, Prefix)
	if !ok || encoding.DecodedLen(len(rest)) != size {
		return Token{}, false
	}
	b, err := encoding.DecodeString(rest)
	if err != nil || len(b) != size {
		return Token{}, false
	}
	var t Token
	copy(t.Tenant[:], b)
	copy(t.User[:], b[16:])
	copy(t.ID[:], b[32:])
	copy(t.Secret[:], b[48:])
	return t, true
}
