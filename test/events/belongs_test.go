package events

import (
	"os"
	"path/filepath"
	"testing"
)

// A store whose key or database was lost or exchanged is not served as if
// nothing had happened: with another key nobody could sign in, and without the
// keys of persons everybody would be an erased person.
func TestWhatBelongsTogether(t *testing.T) {
	w := newWorld(t)
	p := w.dev("data")
	create(t, p, "early")
	want := eventually(t, p, "early")
	w.stop(p)
	key := filepath.Join(w.at("data"), "keys", "master.key")
	held, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	w.refusedWith("data", "key is not the one", key)
	if err := os.WriteFile(key, held, 0o600); err != nil {
		t.Fatal(err)
	}
	database, aside := filepath.Join(w.at("data"), "postgres"), w.at("postgres")
	if err := os.Rename(database, aside); err != nil {
		t.Fatal(err)
	}
	w.refusedWith("data", "no key of any person", "--accept-lost-people")
	if err := os.RemoveAll(database); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, database); err != nil {
		t.Fatal(err)
	}
	p = w.dev("data")
	if got := eventually(t, p, "early"); got != want {
		t.Errorf("it says\n%s\nand said\n%s", got, want)
	}
}
