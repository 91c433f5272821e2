package keys

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/user"
)

// Store keeps wrapped keys. infra/postgres has one.
type Store interface {
	Get(ctx context.Context, tenant, person uuid.UUID) ([]byte, bool, error)
	// Put keeps a key if there is none and returns the one that counts.
	Put(ctx context.Context, tenant, person uuid.UUID, wrapped []byte, at time.Time) ([]byte, error)
	Delete(ctx context.Context, tenant, person uuid.UUID) error
}

// Persons keeps a key per person, wrapped under a key of the master's. It is
// the one place where erasing somebody takes effect.
type Persons struct {
	aead  cipher.AEAD
	store Store
	clock es.Clock
}

var _ user.PersonKeys = (*Persons)(nil)

// NewPersons makes the keys of persons over a store.
func NewPersons(m *Master, store Store, clock es.Clock) (*Persons, error) {
	block, err := aes.NewCipher(m.Derive(persons))
	if err != nil {
		return nil, fmt.Errorf("keys of persons: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("keys of persons: %w", err)
	}
	return &Persons{aead: aead, store: store, clock: clock}, nil
}

// wrapVersion begins every wrapped key, so that the way of wrapping can change.
const wrapVersion = 1

// Create implements user.PersonKeys.
func (p *Persons) Create(ctx context.Context, tenant, person uuid.UUID) ([]byte, error) {
	key, err := p.Get(ctx, tenant, person)
	if !errors.Is(err, user.ErrErased) {
		return key, err
	}
	key = make([]byte, Size)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	nonce := make([]byte, p.aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	wrapped := append([]byte{wrapVersion}, nonce...)
	wrapped = p.aead.Seal(wrapped, nonce, key, owner(tenant, person))
	kept, err := p.store.Put(ctx, tenant, person, wrapped, p.clock.Now())
	if err != nil {
		return nil, err
	}
	return p.unwrap(kept, tenant, person)
}

// Get implements user.PersonKeys.
func (p *Persons) Get(ctx context.Context, tenant, person uuid.UUID) ([]byte, error) {
	wrapped, ok, err := p.store.Get(ctx, tenant, person)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, user.ErrErased
	}
	return p.unwrap(wrapped, tenant, person)
}

// Destroy implements user.PersonKeys.
func (p *Persons) Destroy(ctx context.Context, tenant, person uuid.UUID) error {
	return p.store.Delete(ctx, tenant, person)
}

func (p *Persons) unwrap(wrapped []byte, tenant, person uuid.UUID) ([]byte, error) {
	n := p.aead.NonceSize()
	if len(wrapped) < 1+n || wrapped[0] != wrapVersion {
		return nil, errors.New("the key of a person is wrapped in an unknown way; it was written by a newer program")
	}
	key, err := p.aead.Open(nil, wrapped[1:1+n], wrapped[1+n:], owner(tenant, person))
	if err != nil {
		return nil, errors.New("the key of a person does not open with this master key; start with the one that the installation was made with")
	}
	return key, nil
}

// owner binds a wrapped key to its person: moved to another row it does not open.
func owner(tenant, person uuid.UUID) []byte { return append(tenant[:], person[:]...) }
