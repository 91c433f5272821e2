package operation

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// golden holds one event of every stored name. The files are never edited once
// released: a changed shape is a new version of the event.
var golden = map[string]es.Event{
	"operation.queued.v1":  OperationQueued(publication()),
	"operation.started.v1": OperationStarted{Attempt: 2},
	"operation.succeeded.v1": OperationSucceeded{
		Result: Result{Fingerprint: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Files: 3, Bytes: 4096},
		Amount: Amount{DoneBytes: 4096, TotalBytes: 4096},
	},
	"operation.failed.v1": OperationFailed{
		Failure: Failure{Code: fault.CodeNotFound, Message: "The directory \"code/train\" is not there any more; put it back and retry."},
		Amount:  Amount{DoneBytes: 1024, TotalBytes: 4096},
	},
	"operation.cancel_requested.v1": OperationCancelRequested{},
	"operation.cancelled.v1":        OperationCancelled{From: Running},
	"operation.retried.v1":          OperationRetried{From: Failed, Attempt: 2},
	"operation.dismissed.v1":        OperationDismissed{},
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
				Raw: es.Raw{Type: name, Data: want, Metadata: meta}, Stream: es.StreamOf(Category, tenant, opID).String(),
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
