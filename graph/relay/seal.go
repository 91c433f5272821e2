package relay

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// Sealer turns positions and cursors into strings that tell nothing and can't
// be made up: a bare position would tell how much other tenants do. The same
// value seals to the same string (the nonce comes from the value), so that a
// repeated answer is equal to the first.
type Sealer struct {
	aead cipher.AEAD
	mac  []byte
}

// NewSealer makes a sealer from a 32-byte key.
func NewSealer(key []byte) (*Sealer, error) {
	if len(key) != 32 {
		return nil, errors.New("the key of cursors has 32 bytes")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	mac := sha256.Sum256(append([]byte("nonce of cursors"), key...))
	return &Sealer{aead, mac[:]}, nil
}

// Seal seals bytes for one purpose and one tenant.
func (s *Sealer) Seal(purpose string, tenant uuid.UUID, plain []byte) string {
	ad := append([]byte(purpose+"\x00"), tenant[:]...)
	h := hmac.New(sha256.New, s.mac)
	h.Write(ad)
	h.Write(plain)
	nonce := h.Sum(nil)[:s.aead.NonceSize()]
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, plain, ad))
}

// Open opens what Seal made for the same purpose and tenant.
func (s *Sealer) Open(purpose string, tenant uuid.UUID, text string) ([]byte, bool) {
	if len(text) > 4096 {
		return nil, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	n := s.aead.NonceSize()
	if err != nil || len(b) < n {
		return nil, false
	}
	plain, err := s.aead.Open(nil, b[:n], b[n:], append([]byte(purpose+"\x00"), tenant[:]...))
	return plain, err == nil
}

const positionPurpose = "position"

// Position seals a position of the log.
func (s *Sealer) Position(tenant uuid.UUID, p es.Position) string {
	return s.Seal(positionPurpose, tenant, binary.BigEndian.AppendUint64(nil, uint64(p)))
}

// OpenPosition opens a sealed position.
func (s *Sealer) OpenPosition(tenant uuid.UUID, text string) (es.Position, *fault.Fault) {
	b, ok := s.Open(positionPurpose, tenant, text)
	if !ok || len(b) != 8 {
		return 0, fault.New(fault.Invalid, fault.CodeBadRequest, "This position was not given out by this installation; take it from a receipt or a history.")
	}
	return es.Position(binary.BigEndian.Uint64(b)), nil
}

const livePurpose = "live"

// Live is where an item of a subscription lies. The event's id is what counts;
// the position finds it fast in the store that gave it out.
type Live struct {
	Position es.Position
	Event    uuid.UUID // nil: before the first one
	Store    uuid.UUID // identity of the store
	// Part tells how far the items of an event go that has several: the last
	// thing that was told of. Nil: all of them were sent.
	Part uuid.UUID
}

// LiveCursor seals the place of an item.
func (s *Sealer) LiveCursor(tenant uuid.UUID, l Live) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(l.Position))
	b = append(append(b, l.Event[:]...), l.Store[:4]...)
	if l.Part != uuid.Nil {
		b = append(b, l.Part[:]...)
	}
	return s.Seal(livePurpose, tenant, b)
}

// OpenLive opens the cursor of an item; store is the identity of this store,
// and same tells whether the cursor is of it.
func (s *Sealer) OpenLive(tenant uuid.UUID, text string, store uuid.UUID) (l Live, same bool, bad *fault.Fault) {
	b, ok := s.Open(livePurpose, tenant, text)
	if !ok || (len(b) != 28 && len(b) != 44) {
		return l, false, badCursor("after")
	}
	l.Position = es.Position(binary.BigEndian.Uint64(b))
	l.Event = uuid.UUID(b[8:24])
	l.Store = store
	if len(b) == 44 {
		l.Part = uuid.UUID(b[28:])
	}
	return l, string(b[24:28]) == string(store[:4]), nil
}

func badCursor(field string) *fault.Fault {
	return fault.New(fault.Invalid, fault.CodeCursorInvalid, "This cursor was not given out for this list with this filter and order; begin without a cursor.").At(field)
}
