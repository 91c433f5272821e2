package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

func sameEvents(t *testing.T, got, want []event) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d events, not %d", len(got), len(want))
	}
	for i := range got {
		if fmt.Sprintf("%+v", got[i]) != fmt.Sprintf("%+v", want[i]) {
			t.Fatalf("event %d is %+v, not %+v", i, got[i], want[i])
		}
	}
}

// A backup taken while clients write holds the log up to one moment: all that
// was acknowledged before it, no half append, and what it says in its manifest.
func TestBackupWhileWriting(t *testing.T) {
	s := serve(t, Config{})
	c := connect(t, s)
	for i := range 50 {
		mustAppend(t, c, fmt.Sprintf("before-%d", i%5), esdb.Any{}, newEvents(3)...)
	}
	acknowledged := s.store.committed.Load()
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				stopped <- n
				return
			default:
			}
			mustAppend(t, c, "meanwhile", esdb.Any{}, newEvents(3)...)
			n++
		}
	}()
	dir := t.TempDir()
	for i := range 5 {
		backup := filepath.Join(dir, fmt.Sprint("backup-", i))
		m, err := s.Backup(context.Background(), backup, BackupOptions{Copy: i%2 == 1})
		if err != nil {
			t.Fatal(err)
		}
		if m.LastPosition < acknowledged || m.Store != s.store.id {
			t.Errorf("the backup ends at %d, behind which %d was acknowledged; %+v", m.LastPosition, acknowledged, m.Store)
		}
		if info, err := os.Stat(backup); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if _, err := CheckBackup(context.Background(), backup, nil); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	if n := <-stopped; n == 0 {
		t.Error("nothing was written meanwhile")
	}
	want := whole(t, s.store)
	for i := range 5 {
		to := filepath.Join(dir, fmt.Sprint("restored-", i))
		r, err := RestoreDir(context.Background(), filepath.Join(dir, fmt.Sprint("backup-", i)), to, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := serve(t, Config{Dir: to})
		log := whole(t, got.store)
		if uint64(len(log)) != r.Manifest.Events || len(log)%3 != 0 {
			t.Errorf("%d events, where the manifest says %d", len(log), r.Manifest.Events)
		}
		sameEvents(t, log, want[:len(log)])
		mustAppend(t, connect(t, got), "after", esdb.NoStream{}, newEvents(1)...)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// stoppedStore makes a store and gives its directory and its log.
func stoppedStore(t *testing.T, events int) (dir string, log []event) {
	t.Helper()
	dir = t.TempDir()
	s, err := Open(context.Background(), Config{Dir: dir, Socket: socketPath(t), DiskReserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, s)
	for range events {
		mustAppend(t, c, "s", esdb.Any{}, newEvents(1)...)
	}
	log = whole(t, s.store)
	closeServer(t, s)
	return dir, log
}

func TestBackupOfAStoppedStore(t *testing.T) {
	dir, log := stoppedStore(t, 10)
	backup := filepath.Join(t.TempDir(), "backup")
	missing := filepath.Join(filepath.Dir(backup), "not mounted", "backup")
	if _, err := BackupDir(context.Background(), dir, missing, BackupOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("to where nothing is: %v", err)
	}
	if _, err := BackupDir(context.Background(), dir, filepath.Join(dir, "x"), BackupOptions{}); err == nil || !strings.Contains(err.Error(), "inside the event store") {
		t.Errorf("into itself: %v", err)
	}
	m, err := BackupDir(context.Background(), dir, backup, BackupOptions{})
	if err != nil || m.Events != uint64(len(log)) || m.LastPosition != log[len(log)-1].position {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, err := BackupDir(context.Background(), dir, backup, BackupOptions{}); err == nil || !strings.Contains(err.Error(), "there already") {
		t.Errorf("a second one in its place: %v", err)
	}
	if _, err := BackupDir(context.Background(), t.TempDir(), backup+"2", BackupOptions{}); err == nil || !strings.Contains(err.Error(), "no event store") {
		t.Errorf("of nothing: %v", err)
	}
	// What a killed backup left is in nobody's way, unless it is at work yet.
	if err := os.MkdirAll(filepath.Join(backup+"3.partial", "events"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := BackupDir(context.Background(), dir, backup+"3", BackupOptions{}); err != nil {
		t.Error(err)
	}
	busy, err := claim(backup + "4.partial")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := BackupDir(context.Background(), dir, backup+"4", BackupOptions{}); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("two at once: %v", err)
	}
	if err := busy.release(); err != nil {
		t.Error(err)
	}
}

// A backup that is cut off leaves nothing.
func TestBackupCutOff(t *testing.T) {
	s := serve(t, Config{})
	mustAppend(t, connect(t, s), "s", esdb.Any{}, newEvents(5)...)
	for _, step := range []string{"copy", "count", "sum"} {
		ctx, cancel := context.WithCancel(context.Background())
		dir := t.TempDir()
		_, err := s.Backup(ctx, filepath.Join(dir, "b"), BackupOptions{Report: func(p BackupProgress) {
			if p.Step == step {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", step, err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: left %v", step, left)
		}
		cancel()
	}
}

// A store that is restored over goes aside, whole; without the word for it nothing happens.
func TestRestoreInThePlaceOfAStore(t *testing.T) {
	ctx := context.Background()
	source, log := stoppedStore(t, 7)
	backup := filepath.Join(t.TempDir(), "backup")
	if _, err := BackupDir(ctx, source, backup, BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	other, otherLog := stoppedStore(t, 3)
	if _, err := RestoreDir(ctx, backup, other, false, nil); !errors.Is(err, ErrOccupied) {
		t.Fatalf("over a store: %v", err)
	}
	running, err := Open(ctx, Config{Dir: other, Socket: socketPath(t), DiskReserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := RestoreDir(ctx, backup, other, true, nil); err == nil || !strings.Contains(err.Error(), "stop its program first") {
		t.Errorf("over an open store: %v", err)
	}
	closeServer(t, running)
	r, err := RestoreDir(ctx, backup, other, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	sameEvents(t, whole(t, serve(t, Config{Dir: other}).store), log)
	sameEvents(t, whole(t, serve(t, Config{Dir: r.Aside}).store), otherLog)
	// The backup can be used again.
	if _, err := RestoreDir(ctx, backup, filepath.Join(t.TempDir(), "again"), false, nil); err != nil {
		t.Error(err)
	}
}

func TestRestoreOfADamagedBackupIsRefused(t *testing.T) {
	ctx := context.Background()
	source, _ := stoppedStore(t, 20)
	table := func(t *testing.T, backup string) string {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(backup, "events", "*.sst"))
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		return names[0]
	}
	for _, c := range []struct {
		name string
		harm func(t *testing.T, backup string) error
		want string
	}{
		{"a bit flips", func(t *testing.T, b string) error {
			t.Helper()
			text, err := os.ReadFile(table(t, b))
			if err != nil {
				return err
			}
			text[len(text)/2] ^= 1
			return os.WriteFile(table(t, b), text, 0o600)
		}, "is damaged"},
		{"a file is cut short", func(t *testing.T, b string) error { t.Helper(); return os.Truncate(table(t, b), 3) }, "is damaged"},
		{"a file is missing", func(t *testing.T, b string) error { t.Helper(); return os.Remove(table(t, b)) }, "is missing"},
		{"a file too many", func(_ *testing.T, b string) error {
			return os.WriteFile(filepath.Join(b, "events", "000999.sst"), nil, 0o600)
		}, "does not know"},
		{"the manifest is changed", func(_ *testing.T, b string) error {
			text, err := os.ReadFile(filepath.Join(b, manifestFile))
			if err != nil {
				return err
			}
			changed := strings.Replace(string(text), `"events": 20`, `"events": 21`, 1)
			if changed == string(text) {
				return errors.New("nothing to change")
			}
			return os.WriteFile(filepath.Join(b, manifestFile), []byte(changed), 0o600)
		}, "its checksum does not match"},
		{"the manifest is missing", func(_ *testing.T, b string) error { return os.Remove(filepath.Join(b, manifestFile)) }, "no backup of an event store"},
		{"the manifest is something else", func(_ *testing.T, b string) error {
			return os.WriteFile(filepath.Join(b, manifestFile), []byte(`{"kind": "diary"}`), 0o600)
		}, "of something else"},
		{"it is of a later program", func(_ *testing.T, b string) error {
			m, err := ReadManifest(b)
			if err != nil {
				return err
			}
			m.Version++
			return errors.Join(os.Remove(filepath.Join(b, manifestFile)), m.write(b))
		}, "another version"},
		{"a name leads out of it", func(_ *testing.T, b string) error {
			m, err := ReadManifest(b)
			if err != nil {
				return err
			}
			m.Files[0].Name = "../" + m.Files[0].Name
			return errors.Join(os.Remove(filepath.Join(b, manifestFile)), m.write(b))
		}, "outside"},
		{"it is put together from two", func(_ *testing.T, b string) error {
			m, err := ReadManifest(b)
			if err != nil {
				return err
			}
			m.LastPosition++
			return errors.Join(os.Remove(filepath.Join(b, manifestFile)), m.write(b))
		}, "up to position"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			backup, to := filepath.Join(dir, "backup"), filepath.Join(dir, "to")
			if _, err := BackupDir(ctx, source, backup, BackupOptions{Copy: true}); err != nil {
				t.Fatal(err)
			}
			if err := c.harm(t, backup); err != nil {
				t.Fatal(err)
			}
			_, err := RestoreDir(ctx, backup, to, false, nil)
			if !errors.Is(err, ErrBadBackup) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			if left, _ := os.ReadDir(dir); len(left) != 1 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestStats(t *testing.T) {
	clock := newTestClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	s := serve(t, Config{Clock: clock.now})
	c := connect(t, s)
	ctx := context.Background()
	st, err := s.Stats(ctx, time.Minute, 5)
	if err != nil || st.Events != 0 || st.Streams != 0 || !st.Complete || st.Last != 0 || st.Store != s.store.id {
		t.Errorf("empty: %+v, %v", st, err)
	}
	first := clock.now()
	mustAppend(t, c, "order-1", esdb.Any{}, newEvents(4)...)
	mustAppend(t, c, "order-2", esdb.Any{}, newEvents(2)...)
	mustAppend(t, c, "plain", esdb.Any{}, newEvents(3)...)
	mustAppend(t, c, "gone-1", esdb.Any{}, newEvents(6)...)
	setMetadata(t, c, "plain", esdb.StreamMetadata{})
	if _, err := c.TombstoneStream(ctx, "gone-1", esdb.TombstoneStreamOptions{ExpectedRevision: esdb.Any{}}); err != nil {
		t.Fatal(err)
	}
	clock.add(time.Hour)
	mustAppend(t, c, "order-3", esdb.Any{}, newEvents(1)...)
	st, err = s.Stats(ctx, time.Minute, 2)
	if err != nil {
		t.Fatal(err)
	}
	want := []Group{{"gone", 1, 7}, {"order", 3, 7}, {"plain", 1, 3}, {metadataCategory, 1, 1}}
	if fmt.Sprint(st.Categories) != fmt.Sprint(want) {
		t.Errorf("categories %v", st.Categories)
	}
	if fmt.Sprint(st.Largest) != fmt.Sprint([]Group{{"gone-1", 1, 7}, {"order-1", 1, 4}}) {
		t.Errorf("largest %v", st.Largest)
	}
	log := whole(t, s.store)
	if st.Events != uint64(len(log)) || st.Streams != 6 || st.First != log[0].position || st.Last != log[len(log)-1].position {
		t.Errorf("%+v", st)
	}
	if !st.Oldest.Equal(first.Truncate(100)) || st.Newest.Sub(st.Oldest) != time.Hour {
		t.Errorf("from %v to %v, not from %v", st.Oldest, st.Newest, first)
	}
	if st.Bytes == 0 || st.DiskSize == 0 || st.DiskFree == 0 || !st.Complete {
		t.Errorf("%+v", st)
	}
	if _, err := StatsDir(ctx, t.TempDir(), time.Minute, 1); err == nil {
		t.Error("there was a store where none is")
	}
	if _, err := StatsDir(ctx, s.store.opt.dir, time.Minute, 1); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("of an open store: %v", err)
	}
}

// Counting ends when its time is over, and says so.
func TestStatsInLittleTime(t *testing.T) {
	s := serve(t, Config{})
	c := connect(t, s)
	for i := range 1100 {
		mustAppend(t, c, fmt.Sprintf("s-%04d", i), esdb.Any{}, newEvents(1)...)
	}
	st, err := s.Stats(context.Background(), 0, 3)
	if err != nil || st.Complete || st.Streams != 1024 {
		t.Errorf("%+v, %v", st, err)
	}
}
