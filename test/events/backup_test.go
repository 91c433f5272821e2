package events

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tallyard/infra/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestE11RestoreOfAnOlderBackup goes through a backup drill: what was written
// after the backup is gone with the restore, the read models that know it are
// refused, and built anew from what is there.
func TestE11RestoreOfAnOlderBackup(t *testing.T) {
	w := newWorld(t)
	p := w.dev("data")
	data := []string{"--data-dir", w.at("data")}
	create(t, p, "early")
	eventually(t, p, "early")
	out := w.run(append([]string{"events", "backup", "backup", "--json"}, data...)...)
	var m struct{ Events, LastPosition uint64 }
	if err := json.Unmarshal([]byte(out), &m); err != nil || m.Events == 0 {
		t.Fatalf("%v\n%s", err, out)
	}
	w.fails("is there already", append([]string{"events", "backup", "backup"}, data...)...)
	create(t, p, "late")
	eventually(t, p, "early", "late")

	if out := w.run(append([]string{"events", "verify"}, data...)...); !strings.Contains(out, "No damage was found.") {
		t.Errorf("running: %s", out)
	}
	if out := w.run("events", "verify", "backup"); !strings.Contains(out, "No damage was found.") {
		t.Errorf("the backup: %s", out)
	}
	var st struct {
		Events, LastPosition uint64
		Complete             bool
		Categories           []struct {
			Name    string
			Streams uint64
		}
	}
	stats := w.run(append([]string{"events", "stats", "--json"}, data...)...)
	if err := json.Unmarshal([]byte(stats), &st); err != nil || !st.Complete || st.Events <= m.Events || st.LastPosition <= m.LastPosition {
		t.Errorf("%v\n%s", err, stats)
	}
	for _, c := range st.Categories {
		if c.Name == "algorithm" && c.Streams != 2 {
			t.Errorf("%d streams of algorithms", c.Streams)
		}
	}
	w.fails("stop its program first", append([]string{"events", "restore", "backup", "--replace", "--yes"}, data...)...)
	w.stop(p)

	w.fails("say --replace", append([]string{"events", "restore", "backup"}, data...)...)
	w.fails("say --yes as well", append([]string{"events", "restore", "backup", "--replace"}, data...)...)
	w.run(append([]string{"events", "stats"}, data...)...)
	if out := w.run(append([]string{"events", "verify"}, data...)...); !strings.Contains(out, "No damage was found.") {
		t.Errorf("stopped: %s", out)
	}
	if out := w.run(append([]string{"events", "restore", "backup", "--replace", "--yes"}, data...)...); !strings.Contains(out, "events.replaced-") {
		t.Errorf("%s", out)
	}

	w.refused("data")
	w.run(append([]string{"projections", "rebuild", "--accept-new-store"}, data...)...)
	p = w.dev("data")
	if text := eventually(t, p, "early"); strings.Contains(text, `"late"`) {
		t.Errorf("what was written after the backup is there: %s", text)
	}
	create(t, p, "again")
	eventually(t, p, "early", "again")

	// The store that was replaced is whole, where it lies now.
	aside, err := filepath.Glob(filepath.Join(w.at("data"), "events.replaced-*"))
	if err != nil || len(aside) != 1 {
		t.Fatal(aside, err)
	}
	if err := os.Mkdir(w.at("old"), 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside[0], filepath.Join(w.at("old"), "events")); err != nil {
		t.Fatal(err)
	}
	if out := w.run("events", "verify", "--data-dir", w.at("old")); !strings.Contains(out, "No damage was found.") {
		t.Errorf("%s", out)
	}
}

// Damage is told in words and by exit status 1.
func TestDamageIsSaid(t *testing.T) {
	w := newWorld(t)
	fill(t, w.at("data"), 300)
	w.run("events", "backup", "backup", "--copy", "--data-dir", w.at("data"))
	for _, dir := range []string{filepath.Join(w.at("backup"), "events"), filepath.Join(w.at("data"), "events")} {
		tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
		if err != nil || len(tables) == 0 {
			t.Fatal(tables, err)
		}
		text, err := os.ReadFile(tables[0])
		if err != nil {
			t.Fatal(err)
		}
		text[len(text)/3] ^= 1
		if err := os.WriteFile(tables[0], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.fails("is damaged", "events", "verify", "backup")
	w.fails("is damaged", "events", "restore", "backup", "--data-dir", w.at("new"))
	if _, err := os.Stat(filepath.Join(w.at("new"), "events")); !os.IsNotExist(err) {
		t.Errorf("a damaged backup left something: %v", err)
	}
	if out := w.fails("damaged in", "events", "verify", "--data-dir", w.at("data")); !strings.Contains(out, "damaged: ") {
		t.Errorf("%s", out)
	}
	w.fails("no backup of an event store", "events", "restore", w.dir, "--data-dir", w.at("new"))
	w.fails("no event store", "events", "verify", "--data-dir", w.at("nowhere"))
	w.fails("no event store", "events", "stats", "--data-dir", w.at("nowhere"))
	w.fails("no event store", "events", "backup", "other", "--data-dir", w.at("nowhere"))
	w.fails("no running program answers", "events", "stats", "--admin-socket", w.at("none.sock"))
}

// A backup that is killed at any moment is there completely or not at all, and
// what it leaves is in nobody's way.
func TestBackupIsKilled(t *testing.T) {
	w := newWorld(t)
	fill(t, w.at("data"), 2000)
	began := time.Now()
	w.run("events", "backup", "whole", "--copy", "--data-dir", w.at("data"))
	took := time.Since(began)
	complete := 0
	for range 12 {
		cmd := exec.Command(w.path, "events", "backup", w.at("killed"), "--copy", "--data-dir", w.at("data"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		killAt := time.Time{} // once it has begun to write
		for done := false; !done; {
			if _, err := os.Stat(w.at("killed.partial")); err == nil && killAt.IsZero() {
				killAt = time.Now().Add(rand.N(took / 4))
			}
			select {
			case <-ended:
				done = true
			case <-time.After(time.Millisecond):
				if !killAt.IsZero() && !time.Now().Before(killAt) {
					_ = cmd.Process.Kill()
				}
			}
		}
		if _, err := os.Stat(w.at("killed")); err == nil {
			complete++
			w.run("events", "verify", "killed")
			if err := os.RemoveAll(w.at("killed")); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d of 12 were complete; a whole one takes %d ms", complete, took.Milliseconds())
	w.run("events", "backup", "killed", "--data-dir", w.at("data"))
	w.run("events", "verify", "killed")
	if left, err := filepath.Glob(w.at("*.partial")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
