package storage

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/es"
)

// golden holds one event of every stored name. The files are never edited once
// released: a changed shape is a new version of the event.
var golden = map[string]es.Event{
	"space.created.v1":           SpaceCreated{Kind: Personal, Owner: uuid.MustParse("0198a000-0000-7000-8000-00000000000a"), Zone: DefaultZone},
	"space.change_requested.v1":  ChangeRequested{Change: DeleteFiles, Path: "code/alt"},
	"space.directory_created.v1": DirectoryCreated{Path: "code/训练"},
	"space.files_deleted.v1":     FilesDeleted{Path: "code/alt", Files: 12, Bytes: 4096},
	"space.file_uploaded.v1": FileUploaded{
		Path: "code/train.py", SizeBytes: 42, SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
	},
}

func TestEventsKeepTheirShape(t *testing.T) {
	registry, err := es.NewRegistry(Types)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range registry.Names() {
		t.Run(name, func(t *testing.T) {
			event, ok := golden[name]
			if !ok {
				t.Fatal("no golden event")
			}
			file := filepath.Join("testdata", name+".json")
			raw, err := registry.Encode(event, es.Metadata{})
			if err != nil {
				t.Fatal(err)
			}
			if os.Getenv("TALLYARD_GOLDEN") == "write" {
				if _, err := os.Stat(file); os.IsNotExist(err) {
					if err := os.WriteFile(file, append(raw.Data, '\n'), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			want, err := os.ReadFile(file) //nolint:gosec // a file of the test's own
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(bytes.TrimSpace(want), raw.Data) {
				t.Errorf("written as %s, released as %s", raw.Data, want)
			}
			meta, _ := json.Marshal(es.Metadata{})
			env, err := registry.Decode(es.Recorded{
				Raw: es.Raw{Type: name, Data: want, Metadata: meta}, Stream: es.StreamOf(Category, uuid.Nil, uuid.Nil).String(),
			})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(env.Event, event) {
				t.Errorf("read as %+v, want %+v", env.Event, event)
			}
			for _, c := range event.Changes() {
				if c.Field == "" || (c.From == nil && c.To == nil) {
					t.Errorf("change %+v says nothing", c)
				}
			}
		})
	}
}
