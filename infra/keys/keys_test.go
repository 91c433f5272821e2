package keys

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/user"
)

func TestMasterKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master.key")
	t.Run("missing_is_said_with_what_to_do", func(t *testing.T) {
		if _, err := Load(path); err == nil || !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "openssl rand -hex 32") {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("of_many_that_make_it_at_once_all_use_the_same", func(t *testing.T) {
		var wg sync.WaitGroup
		keys := make([][]byte, 8)
		for i := range keys {
			wg.Go(func() {
				m, err := LoadOrCreate(path)
				if err != nil {
					t.Error(err)
					return
				}
				keys[i] = m.Derive(Names)
			})
		}
		wg.Wait()
		for _, k := range keys {
			if !bytes.Equal(k, keys[0]) || len(k) != Size {
				t.Fatal("two keys")
			}
		}
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(entries) != 1 {
			t.Fatalf("left behind: %v, %v", entries, err)
		}
	})
	t.Run("made_for_its_owner_only", func(t *testing.T) {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("got %v, %v", info.Mode(), err)
		}
	})
	t.Run("readable_by_others_is_refused", func(t *testing.T) {
		for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o666} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			for _, load := range []func(string) (*Master, error){Load, LoadOrCreate} {
				if _, err := load(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
					t.Fatalf("mode %o: %v", mode, err)
				}
			}
		}
	})
	t.Run("damaged_is_refused_and_not_shown_nor_replaced", func(t *testing.T) {
		good := hex.EncodeToString(bytes.Repeat([]byte{0xab}, Size))
		for _, text := range []string{"", good[:62], good + "ab", good[:62] + "zz", good + "\n\n" + good, strings.Repeat("x", 1000)} {
			other := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := LoadOrCreate(other)
			if err == nil || strings.Contains(err.Error(), "abab") {
				t.Fatalf("%q: %v", text, err)
			}
			if now, _ := os.ReadFile(other); string(now) != text {
				t.Fatal("the file was replaced")
			}
		}
	})
	t.Run("a_folder_is_no_key", func(t *testing.T) {
		if _, err := Load(t.TempDir()); err == nil {
			t.Fatal("accepted")
		}
	})
}

func TestDerive(t *testing.T) {
	m, err := New(bytes.Repeat([]byte{1}, Size))
	if err != nil {
		t.Fatal(err)
	}
	// These bytes are for ever: names' streams hang on them.
	if got := hex.EncodeToString(m.Derive(Names)); got != goldenNames {
		t.Errorf("the key of the names is %s, was %s", got, goldenNames)
	}
	if bytes.Equal(m.Derive(Names), m.Derive(Cursors)) {
		t.Error("two purposes have one key")
	}
	if _, err := New([]byte("short")); err == nil {
		t.Error("a short key is accepted")
	}
}

const goldenNames = "88caa81e61e1e05f39575625120f8836df947f47326ce5cf9389c6a152e3c89c"

// table is a Store in a map.
type table struct {
	mu   sync.Mutex
	rows map[uuid.UUID][]byte
}

func (s *table) Get(_ context.Context, _, person uuid.UUID) ([]byte, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.rows[person]
	return w, ok, nil
}

func (s *table) Put(_ context.Context, _, person uuid.UUID, wrapped []byte, _ time.Time) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w, ok := s.rows[person]; ok {
		return w, nil
	}
	s.rows[person] = wrapped
	return wrapped, nil
}

func (s *table) Delete(_ context.Context, _, person uuid.UUID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rows, person)
	return nil
}

func TestPersons(t *testing.T) {
	rows := &table{rows: map[uuid.UUID][]byte{}}
	persons := func(b byte) *Persons {
		m, err := New(bytes.Repeat([]byte{b}, Size))
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPersons(m, rows, es.SystemClock{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	ctx, p := t.Context(), persons(1)
	tenant, alice, bob := uuid.New(), uuid.New(), uuid.New()

	t.Run("AUD-06_of_many_that_make_a_key_at_once_all_get_the_same", func(t *testing.T) {
		var wg sync.WaitGroup
		keys := make([][]byte, 8)
		for i := range keys {
			wg.Go(func() {
				var err error
				if keys[i], err = p.Create(ctx, tenant, alice); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, k := range keys {
			if !bytes.Equal(k, keys[0]) || len(k) != Size {
				t.Fatal("two keys of one person")
			}
		}
		if bytes.Contains(rows.rows[alice], keys[0]) {
			t.Fatal("the key is stored as it is")
		}
	})
	t.Run("AUD-06_a_key_opens_for_its_person_only", func(t *testing.T) {
		rows.rows[bob] = rows.rows[alice]
		if _, err := p.Get(ctx, tenant, bob); err == nil || errors.Is(err, user.ErrErased) {
			t.Fatalf("got %v", err)
		}
		if _, err := p.Get(ctx, uuid.New(), alice); err == nil {
			t.Fatal("opens in another tenant")
		}
		delete(rows.rows, bob)
	})
	t.Run("AUD-06_another_master_key_is_said_and_is_no_erasure", func(t *testing.T) {
		for _, try := range []func(context.Context, uuid.UUID, uuid.UUID) ([]byte, error){persons(2).Get, persons(2).Create} {
			if _, err := try(ctx, tenant, alice); err == nil || errors.Is(err, user.ErrErased) || !strings.Contains(err.Error(), "master key") {
				t.Fatalf("got %v", err)
			}
		}
	})
	t.Run("AUD-06_destroyed_is_erased", func(t *testing.T) {
		for range 2 {
			if err := p.Destroy(ctx, tenant, alice); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.Get(ctx, tenant, alice); !errors.Is(err, user.ErrErased) {
			t.Fatalf("got %v", err)
		}
	})
}
