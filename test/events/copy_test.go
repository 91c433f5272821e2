package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/infra/eventstore"
	"tallyard/infra/eventstore/embedded"
	"tallyard/infra/eventstore/storetest"
)

// openDir serves the store of a stopped data directory until the test or done ends it.
func openDir(t *testing.T, data string) (log *eventstore.Log, done func()) {
	t.Helper()
	server, err := embedded.Open(t.Context(), embedded.Config{Dir: filepath.Join(data, "events"), Socket: storetest.Socket(t), DiskReserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	if log, err = eventstore.Open(t.Context(), eventstore.Config{Address: server.Address()}); err != nil {
		t.Fatal(err)
	}
	return log, func() {
		t.Helper()
		if err := log.Close(); err != nil {
			t.Error(err)
		}
		if err := server.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// fill writes a history of n events and a little of everything into a data directory.
func fill(t *testing.T, data string, n int) {
	t.Helper()
	log, done := openDir(t, data)
	defer done()
	put := func(stream, kind, body string, count int) {
		t.Helper()
		events := make([]es.Raw, count)
		for i := range events {
			events[i] = es.Raw{ID: uuid.New(), Type: kind, Data: []byte(body), Metadata: []byte(`{"by":"ada"}`)}
		}
		if _, err := log.Append(t.Context(), stream, es.Any(), events...); err != nil {
			t.Fatal(err)
		}
	}
	for left := n; left > 0; left -= 4 {
		stream := fmt.Sprintf("thing-%d", rand.N(n/20+1))
		put(stream, "made", fmt.Sprintf(`{"n":%d,"text":%q}`, left, strings.Repeat("x", rand.N(300))), 1)
		put("much-1", "counted", `{}`, 3)
		if left%100 == 0 {
			if err := log.KeepLast(t.Context(), stream, 1+rand.N(5)); err != nil {
				t.Fatal(err)
			}
		}
		if left%180 == 0 {
			if err := log.Delete(t.Context(), stream, es.Any()); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("gone-1", "made", `{}`, 3)
	if err := log.Tombstone(t.Context(), "gone-1", es.Any()); err != nil {
		t.Fatal(err)
	}
	put("thing-0", "made", `{}`, 1)
}

// history lists the events of a stopped data directory; metadata that a server
// wrote, which known does not have, is left out.
func history(t *testing.T, data string, known map[uuid.UUID]bool) (lines []string, ids map[uuid.UUID]bool) {
	t.Helper()
	log, done := openDir(t, data)
	defer done()
	ids = map[uuid.UUID]bool{}
	for e, err := range log.ReadWhole(t.Context(), es.StartPosition) {
		if err != nil {
			t.Fatal(err)
		}
		if known != nil && e.Type == "$metadata" && !known[e.ID] {
			continue
		}
		id := e.ID.String()
		if e.Type == "$streamDeleted" {
			id = "tombstone"
		} else if ids[e.ID] {
			t.Errorf("%s is there twice", id)
		}
		ids[e.ID] = true
		revision := fmt.Sprint(e.Revision)
		if strings.HasPrefix(e.Stream, "$$") {
			revision = ""
		}
		lines = append(lines, fmt.Sprintf("%s %s@%s %s %s %q %q", id, revision, e.Stream, e.Type, e.ContentType, e.Data, e.Metadata))
	}
	return lines, ids
}

func sameHistory(t *testing.T, from, to string) int {
	t.Helper()
	a, ids := history(t, from, nil)
	b, _ := history(t, to, ids)
	if len(a) != len(b) {
		t.Errorf("%d events became %d", len(a), len(b))
	}
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("event %d was\n%s\nand became\n%s", i, a[i], b[i])
		}
	}
	return len(a)
}

// TestCopyIsKilledAndGoesOn kills a copy at twenty random moments. What is
// there at the end is the whole history, once; and it goes back as it came.
func TestCopyIsKilledAndGoesOn(t *testing.T) {
	w := newWorld(t)
	fill(t, w.at("a"), 6000)
	args := []string{"events", "copy", "--from", w.at("a"), "--to", w.at("b"), "--map", w.at("ab.map"), "--map-every", "50"}
	finished, progressed := 0, 0
	for i := range 20 {
		before := dirSize(w.at("b"))
		cmd := exec.Command(w.path, args...)
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("it ended by itself: %v\n%s", err, said.String())
			}
			finished++
		case <-time.After(100*time.Millisecond + rand.N(500*time.Millisecond)):
			_ = cmd.Process.Kill()
			<-ended
		}
		if dirSize(w.at("b")) > before {
			progressed++
		}
		if i%4 == 3 { // without its map it finds its place, too
			_ = os.Remove(w.at("ab.map"))
		}
	}
	out := w.run(append(args, "--json")...)
	var rep struct{ Copied, Found, Compared uint64 }
	if err := json.Unmarshal([]byte(out), &rep); err != nil {
		t.Fatal(err, out)
	}
	n := sameHistory(t, w.at("a"), w.at("b"))
	if rep.Compared != uint64(n) || rep.Copied+rep.Found != uint64(n) {
		t.Errorf("%s for %d events", out, n)
	}
	if progressed < 2 {
		t.Errorf("only %d of 20 runs brought something before they were killed", progressed)
	}
	t.Logf("20 kills: %d runs brought something, %d were done before; the last one found %d and copied %d of %d", progressed, finished, rep.Found, rep.Copied, n)
	w.run("events", "copy", "--from", w.at("b"), "--to", w.at("c"), "--map", w.at("bc.map"))
	sameHistory(t, w.at("a"), w.at("c"))
	w.run("events", "verify", "--data-dir", w.at("c"))
	w.fails("no copy of the source", "events", "copy", "--from", w.at("c"), "--to", w.at("a"), "--map", w.at("ca.map"))
}

func dirSize(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

// TestCopyMovesAProgram copies the history of a program that runs, brings what
// was written meanwhile, and starts a program on the copy: it answers alike.
func TestCopyMovesAProgram(t *testing.T) {
	w := newWorld(t)
	p := w.dev("old")
	for _, name := range []string{"resnet", "bert", "gpt"} {
		create(t, p, name)
	}
	eventually(t, p, "resnet", "bert", "gpt")
	args := []string{"events", "copy", "--from", w.at("old"), "--to", w.at("new")}
	if out := w.run(args...); !strings.Contains(out, "the target has each of them") {
		t.Errorf("%s", out)
	}
	create(t, p, "late")
	want := eventually(t, p, "late")
	w.stop(p)
	if out := w.run(args...); strings.Contains(out, "Copied 0 events") || strings.Contains(out, " 0 were there already") {
		t.Errorf("%s", out)
	}
	sameHistory(t, w.at("old"), w.at("new"))
	w.copyKey("old", "new")
	w.refusedWith("new", "no key of any person", "--accept-lost-people")
	p = w.dev("new", "--accept-lost-people")
	if got := eventually(t, p, "late"); got != want {
		t.Errorf("the program on the copy says\n%s\nwhere the old one said\n%s", got, want)
	}
	create(t, p, "newest")
	eventually(t, p, "newest")
	var report struct{ Equal bool }
	if out := w.run("projections", "verify", "--json", "--data-dir", w.at("new")); json.Unmarshal([]byte(out), &report) != nil || !report.Equal {
		t.Errorf("%s", out)
	}
	w.fails("no copy of the source", "events", "copy", "--from", w.at("old"), "--to", w.at("new"), "--map", "other.map")
}

// TestCopyUnderReadModels exchanges the store below a program's read models. A
// copy in which positions moved, since the source had been scavenged, is another
// store to them: the program refuses it, until it is told to build them anew.
func TestCopyUnderReadModels(t *testing.T) {
	w := newWorld(t)
	p := w.dev("data")
	create(t, p, "early")
	eventually(t, p, "early")
	w.stop(p)
	spend(t, w.at("data"))
	if out := w.run("events", "scavenge", "--data-dir", w.at("data")); strings.Contains(out, "removed   0 events") {
		t.Errorf("%s", out)
	}
	p = w.dev("data")
	create(t, p, "late")
	want := eventually(t, p, "early", "late")
	w.stop(p)
	w.run("events", "copy", "--from", w.at("data"), "--to", w.at("copy"))
	if err := errors.Join(
		os.Rename(filepath.Join(w.at("data"), "events"), w.at("aside")),
		os.Rename(filepath.Join(w.at("copy"), "events"), filepath.Join(w.at("data"), "events")),
	); err != nil {
		t.Fatal(err)
	}
	w.refused("data")
	w.run("projections", "rebuild", "--accept-new-store", "--data-dir", w.at("data"))
	p = w.dev("data")
	if got := eventually(t, p, "early", "late"); got != want {
		t.Errorf("on the copy it says\n%s\nand said\n%s", got, want)
	}
	create(t, p, "again")
	eventually(t, p, "again")
}

// spend writes a stream into a stopped data directory and deletes it.
func spend(t *testing.T, data string) {
	t.Helper()
	log, done := openDir(t, data)
	defer done()
	if _, err := log.Append(t.Context(), "spent-1", es.NoStream(), es.Raw{ID: uuid.New(), Type: "spent", Data: []byte(`{}`), Metadata: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	if err := log.Delete(t.Context(), "spent-1", es.Any()); err != nil {
		t.Fatal(err)
	}
}

// Passwords in addresses are printed nowhere.
func TestCopyPrintsNoPassword(t *testing.T) {
	w := newWorld(t)
	fill(t, w.at("a"), 20)
	for _, address := range []string{
		"esdb://admin:opensesame@127.0.0.1:1?tls=true",
		"esdb://admin:opensesame@127.0.0.1:1?tls=false",
		"esdb://admin:opensesame@127.0.0.1:1?tls=nonsense",
		"esdb://admin:open/sesame:opensesame@127.0.0.1",
	} {
		for _, args := range [][]string{{"--from", address, "--to", w.at("b")}, {"--from", w.at("a"), "--to", address}} {
			out, said, err := w.try(append([]string{"events", "copy"}, args...)...)
			if err == nil || strings.Contains(out+said, "sesame") {
				t.Errorf("%v: %v\n%s%s", args, err, out, said)
			}
		}
	}
}
