package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"tallyard/test/program"
)

// TestScavenge/AUD-06: an erased person's sealed data is in no file of the event
// store after a scavenge of the running program, and nothing else is missing.
func TestScavenge(t *testing.T) {
	t.Run("AUD-06_an_erased_person_is_in_no_file", func(t *testing.T) {
		w := newWorld(t)
		p := w.dev("data")
		data := []string{"--data-dir", w.at("data")}
		create(t, p, "kept")
		text := eventually(t, p, "kept")
		stream, sealed := deletePerson(t, filepath.Join(w.at("data"), "run", "events.sock"))
		if n := filesWith(t, filepath.Join(w.at("data"), "events"), sealed); n == 0 {
			t.Fatal("the sealed data is nowhere even before")
		}
		var out struct{ Removed, BytesBefore, BytesAfter uint64 }
		printed := w.run(append([]string{"events", "scavenge", "--json"}, data...)...)
		if err := json.Unmarshal([]byte(printed), &out); err != nil || out.Removed == 0 || out.BytesAfter == 0 {
			t.Fatalf("%v\n%s", err, printed)
		}
		if n := filesWith(t, filepath.Join(w.at("data"), "events"), sealed); n != 0 {
			t.Errorf("%d files have the sealed data of %s", n, stream)
		}
		if got := eventually(t, p, "kept"); got != text {
			t.Errorf("the API says %s, before %s", got, text)
		}
		if out := w.run(append([]string{"events", "verify"}, data...)...); !strings.Contains(out, "No damage was found.") {
			t.Errorf("%s", out)
		}
		if text := page(t, p, "/metrics"); !strings.Contains(text, "tallyard_eventstore_bytes ") || !strings.Contains(text, "tallyard_eventstore_space_level 0") {
			t.Errorf("the metrics don't tell of the room: %s", text)
		}
		if text := page(t, p, "/readyz"); text != "ready\n" {
			t.Errorf("/readyz says %q", text)
		}
		w.stop(p)
		if out := w.run(append([]string{"events", "scavenge"}, data...)...); !strings.Contains(out, "removed   0 events") {
			t.Errorf("stopped: %s", out)
		}
		w.fails("no event store", "events", "scavenge", "--data-dir", w.at("nowhere"))
	})
}

// deletePerson does to a person's stream what erasing does, and gives a piece
// of what was in it.
func deletePerson(t *testing.T, socket string) (stream string, sealed []byte) {
	t.Helper()
	c, err := esdb.NewClient(&esdb.Configuration{Address: "unix:" + socket, DisableTLS: true, MaxDiscoverAttempts: 1, GossipTimeout: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // the test is over with it
	read, err := c.ReadAll(t.Context(), esdb.ReadAllOptions{From: esdb.Start{}}, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	for {
		e, err := read.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if r := e.OriginalEvent(); strings.HasPrefix(r.StreamID, "person-") {
			stream, sealed = r.StreamID, longest(r.Data)
		}
	}
	if len(sealed) < 24 {
		t.Fatalf("%s has %q", stream, sealed)
	}
	if _, err := c.DeleteStream(t.Context(), stream, esdb.DeleteStreamOptions{ExpectedRevision: esdb.Any{}}); err != nil {
		t.Fatal(err)
	}
	return stream, sealed[:24]
}

// longest is the longest string in JSON: what was sealed.
func longest(text []byte) (out []byte) {
	for _, part := range bytes.Split(text, []byte{'"'}) {
		if len(part) > len(out) {
			out = part
		}
	}
	return out
}

// filesWith counts the files of a directory that have some bytes in them.
func filesWith(t *testing.T, dir string, text []byte) (n int) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if bytes.Contains(b, text) {
			n++
		}
	}
	return n
}

// page gets a page of the program.
func page(t *testing.T, p *program.Program, path string) string {
	t.Helper()
	resp, err := http.Get(p.Base + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
