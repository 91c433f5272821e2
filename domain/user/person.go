package user

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/text"
)

// ErrErased says that a person's key was destroyed: nobody can read the
// personal data any more.
var ErrErased = errors.New("personal data erased")

// ErasedName is shown in place of the name of a person who was erased.
const ErasedName = "erased person"

// PersonKeys keeps one 32-byte key per person, outside the log.
type PersonKeys interface {
	// Create makes a person's key; when there is one already, it is given back.
	Create(ctx context.Context, tenant, person uuid.UUID) ([]byte, error)
	// Get gives a person's key, or ErrErased when there is none any more.
	Get(ctx context.Context, tenant, person uuid.UUID) ([]byte, error)
	// Destroy ends a person's key; doing it twice is no error.
	Destroy(ctx context.Context, tenant, person uuid.UUID) error
}

// Described holds personal data, sealed under the person's key.
type Described struct {
	User   uuid.UUID `json:"user"`
	Sealed []byte    `json:"sealed"`
}

// Changes implements es.Event: what changed is sealed, that it did is not.
func (Described) Changes() []es.Change { return nil }

// Subject implements es.Subjected: readers of the audit look for the user.
func (e Described) Subject(es.Ref) es.Ref { return es.Ref{Kind: Category, ID: e.User} }

// describedName is the stored name, part of what the seal protects: a sealed
// text can't be moved to another event or stream.
const describedName = "person.described.v1"

// Person is somebody's personal data.
type Person struct {
	LoginName   string `json:"loginName"`
	DisplayName string `json:"displayName"`
	Email       string `json:"email,omitempty"`
	// Outside is who the person is at an identity provider; empty: none vouches
	// for them.
	Outside Outside `json:"outside,omitzero"`
	// Erased: the data is gone, DisplayName is ErasedName.
	Erased bool `json:"-"`
}

type personState struct{ Last *Described }

var persons = es.Aggregate[personState]{
	Category: PersonCategory,
	Fold:     1,
	Evolve: func(s personState, env es.Envelope) personState {
		if ev, ok := env.Event.(Described); ok {
			s.Last = &ev
		}
		return s
	},
}

// loginName is the rule for login names; they are compared without case.
var loginName = text.Rule{
	Min: 1, Max: 64,
	Allowed: func(r rune) bool {
		return strings.ContainsRune("._-@", r) || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
	},
	First: func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) },
	Says:  "letters, digits, full stop, underscore, hyphen and @, beginning with a letter or digit",
}

// clean checks a person's data; the faults never repeat it.
func (p Person) clean() (Person, error) {
	var faults fault.List
	login, bad := loginName.Clean(fold(p.LoginName), "loginName")
	faults.Add(bad)
	display, bad := text.Line(1, 128).Clean(p.DisplayName, "displayName")
	faults.Add(bad)
	email, bad := text.Line(0, 254).Clean(p.Email, "email")
	faults.Add(bad)
	if at := strings.IndexByte(email, '@'); bad == nil && email != "" && (at < 1 || at == len(email)-1 || strings.ContainsAny(email, " <>")) {
		faults.Add(fault.New(fault.Invalid, fault.CodeInvalidValue, "This is not an e-mail address; give one like name@example.org or none.").At("email"))
	}
	return Person{LoginName: login, DisplayName: display, Email: email, Outside: p.Outside}, faults.Err()
}

// Check tells what is wrong with the data, all of it at once.
func (p Person) Check() error {
	_, err := p.clean()
	return err
}

// seal encrypts a person's data for its stream.
func seal(key []byte, stream es.StreamID, user uuid.UUID, p Person, random io.Reader) (Described, error) {
	plain, err := json.Marshal(p)
	if err != nil {
		return Described{}, fmt.Errorf("seal personal data: %w", err)
	}
	aead, err := gcm(key)
	if err != nil {
		return Described{}, err
	}
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(plain)+aead.Overhead())
	if _, err := io.ReadFull(random, nonce); err != nil {
		return Described{}, fmt.Errorf("seal personal data: %w", err)
	}
	return Described{User: user, Sealed: aead.Seal(nonce, nonce, plain, additional(stream))}, nil
}

// open decrypts what seal made.
func open(key []byte, stream es.StreamID, d Described) (Person, error) {
	aead, err := gcm(key)
	if err != nil {
		return Person{}, err
	}
	if len(d.Sealed) < aead.NonceSize() {
		return Person{}, errors.New("sealed personal data is cut short")
	}
	nonce, sealed := d.Sealed[:aead.NonceSize()], d.Sealed[aead.NonceSize():]
	plain, err := aead.Open(nil, nonce, sealed, additional(stream))
	if err != nil {
		return Person{}, fmt.Errorf("sealed personal data of %s does not open with the person's key: %w", stream, err)
	}
	var p Person
	if err := json.Unmarshal(plain, &p); err != nil {
		// The error of the decoder could repeat what it read.
		return Person{}, fmt.Errorf("personal data of %s is not what it should be", stream)
	}
	return p, nil
}

func gcm(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("key of a person: %w", err)
	}
	return cipher.NewGCM(block)
}

func additional(stream es.StreamID) []byte { return []byte(stream.String() + "\n" + describedName) }

// Describe opens a sealed event of a person's stream. When the key is gone the
// answer is an erased person, not an error.
func Describe(ctx context.Context, keys PersonKeys, env es.Envelope) (Person, error) {
	ev, ok := env.Event.(Described)
	if !ok {
		return Person{}, fmt.Errorf("event %s describes nobody", env.Name)
	}
	return describe(ctx, keys, env.Stream, ev)
}

func describe(ctx context.Context, keys PersonKeys, stream es.StreamID, ev Described) (Person, error) {
	id, err := stream.UUID()
	if err != nil {
		return Person{}, fmt.Errorf("stream %s belongs to nobody: %w", stream, err)
	}
	key, err := keys.Get(ctx, stream.Tenant, id)
	if errors.Is(err, ErrErased) {
		return Person{DisplayName: ErasedName, Erased: true}, nil
	}
	if err != nil {
		return Person{}, fmt.Errorf("key of a person: %w", err)
	}
	return open(key, stream, ev)
}

// fold makes login names that differ only in case the same.
func fold(login string) string { return strings.ToLower(login) }
