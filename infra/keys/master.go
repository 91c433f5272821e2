// Package keys keeps the installation's master key and what hangs on it: keys
// derived for single purposes and the wrapped keys of persons.
package keys

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Size is the size of every key in bytes.
const Size = 32

// Purposes that keys are derived for. A purpose never gets another meaning:
// what was made with its key would be void.
const (
	Names   = "names"       // streams of reserved names
	Cursors = "cursors"     // cursors and positions that are handed out
	persons = "person-keys" // wraps the keys of persons
)

// Master is the key that all others hang on.
type Master struct{ key []byte }

// Derive makes the key for one purpose.
func (m *Master) Derive(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, m.key, nil, "tallyard/v1/"+purpose, Size)
	if err != nil {
		// The only error is a length over the hash's limit, which Size is not.
		panic(err)
	}
	return key
}

// New uses a key that was obtained elsewhere.
func New(key []byte) (*Master, error) {
	if len(key) != Size {
		return nil, fmt.Errorf("the master key has %d bytes, it needs %d", len(key), Size)
	}
	return &Master{key: append([]byte(nil), key...)}, nil
}

// Load reads the key from a file of 64 hexadecimal digits that nobody but its
// owner may read.
func Load(path string) (*Master, error) {
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no master key at %s; make one with: (umask 077; openssl rand -hex 32 > %s): %w", path, path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("master key: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("master key: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("the master key %s is not a plain file", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("the master key %s may be read or written by others (mode %04o); run: chmod 600 %s", path, mode, path)
	}
	text := make([]byte, 2*Size+8)
	n, err := f.Read(text)
	if err != nil {
		return nil, fmt.Errorf("master key %s: %w", path, err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text[:n])))
	if err != nil || len(key) != Size {
		// The error of the decoder would show a part of the key.
		return nil, fmt.Errorf("the master key %s must hold %d hexadecimal digits and nothing else", path, 2*Size)
	}
	return &Master{key: key}, nil
}

// LoadOrCreate is Load, and makes the key first when there is none. A crash
// leaves no key or a whole one, and of two programs both use the same.
func LoadOrCreate(path string) (*Master, error) {
	if _, err := os.Lstat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return Load(path)
	}
	if err := create(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the master key: %w", err)
	}
	return Load(path)
}

func create(path string) (err error) {
	key := make([]byte, Size)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, ".master-key-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // the link below is what stays
	_, err = tmp.WriteString(hex.EncodeToString(key) + "\n")
	if err == nil {
		err = tmp.Sync()
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	// A link, not a rename: it never replaces a key that is there.
	if err := os.Link(tmp.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir) //nolint:gosec // the folder of the file above
	if err != nil {
		return err
	}
	defer d.Close() //nolint:errcheck // only synced
	return d.Sync()
}
