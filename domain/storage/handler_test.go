package storage_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/storage"
	"tallyard/infra/eventstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	acme  = uuid.MustParse("0198a000-0000-7000-8000-000000000001")
	alice = uuid.MustParse("0198a000-0000-7000-8000-00000000000a")
	bob   = uuid.MustParse("0198a000-0000-7000-8000-00000000000b")
)

type everybody struct{}

func (everybody) Grants(_ context.Context, tenant, user uuid.UUID) (access.Grants, error) {
	return access.Grants{Tenant: tenant, User: user, Active: true}, nil
}

// disk notes what it is asked to do, and what the log held then.
type disk struct {
	t    *testing.T
	rt   *es.Runtime
	mu   sync.Mutex
	done []string
	fail error

	directories map[string]bool
	queued      map[uuid.UUID]storage.Removal
}

func (d *disk) touch(what string, space uuid.UUID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if got := history(d.t, d.rt, space); !strings.HasSuffix(got, "change_requested") {
		d.t.Errorf("%s before its request was on record: %s", what, got)
	}
	if d.fail != nil {
		return d.fail
	}
	d.done = append(d.done, what)
	return nil
}

func (d *disk) MakeDirectory(_ context.Context, _, space uuid.UUID, p storage.Path) error {
	return d.touch("make "+p.String(), space)
}

func (d *disk) Directory(_ context.Context, _, _ uuid.UUID, p storage.Path) (string, error) {
	if d.directories[p.String()] {
		return "the one at " + p.String(), nil
	}
	return "", nil
}

func (d *disk) RemoveDirectory(_ context.Context, _ es.Command, r storage.Removal) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if got := history(d.t, d.rt, r.Space); !strings.HasSuffix(got, "directory_removal_requested") {
		d.t.Errorf("queued before its request was on record: %s", got)
	}
	if d.fail == nil {
		d.queued[r.Operation] = r
	}
	return d.fail
}

func (d *disk) Known(_ context.Context, _, id uuid.UUID) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.queued[id]
	return ok, nil
}

func (d *disk) Delete(_ context.Context, _, space uuid.UUID, p storage.Path) (storage.Deleted, error) {
	return storage.Deleted{Files: 2, Bytes: 30}, d.touch("delete "+p.String(), space)
}

func setup(t *testing.T) (*storage.Handler, *disk) {
	t.Helper()
	registry, err := es.NewRegistry(es.Types, storage.Types)
	if err != nil {
		t.Fatal(err)
	}
	rt := &es.Runtime{
		Log: storetest.Open(t), Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{},
		NameKey: []byte("a key for tests"), Refusals: es.NewRefusals(), Logger: slog.New(slog.DiscardHandler),
	}
	d := &disk{t: t, rt: rt, directories: map[string]bool{}, queued: map[uuid.UUID]storage.Removal{}}
	return &storage.Handler{Runtime: rt, Access: everybody{}, Files: d, Operations: d}, d
}

func command(h *storage.Handler, user uuid.UUID, key string) es.Command {
	return es.Command{
		ID: h.Runtime.IDs.New(), Action: "test", Tenant: acme, Key: key, Digest: []byte("same"),
		Actor: es.Actor{Kind: es.ActorUser, User: user},
	}
}

func history(t *testing.T, rt *es.Runtime, space uuid.UUID) string {
	t.Helper()
	var names []string
	for env, err := range es.Events(t.Context(), rt, storage.Aggregate.Stream(acme, space), 0) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(env.Name, "space."), ".v1"))
	}
	return strings.Join(names, " ")
}

func home(t *testing.T, h *storage.Handler, user uuid.UUID) uuid.UUID {
	t.Helper()
	id, err := h.Home(t.Context(), command(h, user, ""), user)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestHome(t *testing.T) {
	t.Run("STO-01_one_for_each_user_however_many_ask_at_once", func(t *testing.T) {
		h, _ := setup(t)
		if _, found, err := h.FindHome(t.Context(), acme, alice); found || err != nil {
			t.Fatalf("found %v, %v, before it was made", found, err)
		}
		ids := make([]uuid.UUID, 16)
		var wg sync.WaitGroup
		for i := range ids {
			wg.Go(func() { ids[i] = home(t, h, alice) })
		}
		wg.Wait()
		for _, id := range ids {
			if id != ids[0] || id == uuid.Nil {
				t.Fatalf("several homes: %v", ids)
			}
		}
		if got := history(t, h.Runtime, ids[0]); got != "created" {
			t.Errorf("history %q", got)
		}
		if other := home(t, h, bob); other == ids[0] {
			t.Error("two users share a home")
		}
		if found, ok, err := h.FindHome(t.Context(), acme, alice); found != ids[0] || !ok || err != nil {
			t.Errorf("found %v, %v, %v", found, ok, err)
		}
	})
	t.Run("STO-01_made_under_the_name_of_a_command_that_died", func(t *testing.T) {
		h, _ := setup(t)
		id := h.Runtime.IDs.New()
		name := es.Name{Kind: "home", Value: alice.String() + "/" + storage.DefaultZone}
		if err := h.Runtime.Reserve(t.Context(), command(h, alice, ""), name, storage.Aggregate.Stream(acme, id)); err != nil {
			t.Fatal(err)
		}
		if got := home(t, h, alice); got != id {
			t.Errorf("home %v, the name holds %v", got, id)
		}
	})
}

func TestChanges(t *testing.T) {
	t.Run("AUD-01_the_request_is_on_record_before_files_are_touched", func(t *testing.T) {
		h, d := setup(t)
		space := home(t, h, alice)
		if _, err := h.CreateDirectory(t.Context(), command(h, alice, ""), space, "code/alt"); err != nil {
			t.Fatal(err)
		}
		r, err := h.DeleteFiles(t.Context(), command(h, alice, ""), space, []string{"code/alt", "../up", "x"})
		if err != nil || len(r.Items) != 3 || r.Items[0].Err != nil || !fault.Is(r.Items[1].Err, fault.CodeInvalidPath) || r.Items[2].Err != nil {
			t.Fatalf("%+v, %v", r, err)
		}
		if f, _ := fault.All(r.Items[1].Err); fmt.Sprint(f[0].Field) != "[paths 1]" {
			t.Errorf("field %v", f[0].Field)
		}
		if got := fmt.Sprint(d.done); got != "[make code/alt delete code/alt delete x]" {
			t.Errorf("disk: %s", got)
		}
		want := "created change_requested directory_created change_requested files_deleted change_requested files_deleted"
		if got := history(t, h.Runtime, space); got != want {
			t.Errorf("history %q", got)
		}
	})
	t.Run("STO-01_nobody_touches_the_files_of_another", func(t *testing.T) {
		h, d := setup(t)
		space := home(t, h, alice)
		if _, err := h.CreateDirectory(t.Context(), command(h, bob, ""), space, "code"); !fault.Is(err, fault.CodeNotFound) {
			t.Errorf("refused with %v", err)
		}
		if _, err := h.RequestUpload(t.Context(), command(h, bob, ""), space, storage.Root); !fault.Is(err, fault.CodeNotFound) {
			t.Errorf("refused with %v", err)
		}
		if _, err := h.Readable(t.Context(), acme, bob, space); !fault.Is(err, fault.CodeNotFound) {
			t.Errorf("refused with %v", err)
		}
		if len(d.done) != 0 || history(t, h.Runtime, space) != "created" {
			t.Errorf("disk %v, history %q", d.done, history(t, h.Runtime, space))
		}
	})
	t.Run("GEN-03_a_crash_in_between_is_finished_by_the_same_key_and_not_repeated", func(t *testing.T) {
		h, d := setup(t)
		space := home(t, h, alice)
		d.fail = errors.New("the machine went away")
		if _, err := h.DeleteFiles(t.Context(), command(h, alice, "key"), space, []string{"code"}); err == nil {
			t.Fatal("no error")
		}
		d.fail = nil
		for i := range 3 {
			r, err := h.DeleteFiles(t.Context(), command(h, alice, "key"), space, []string{"code"})
			if err != nil || r.Items[0].Err != nil || r.Replayed != (i > 0) {
				t.Fatalf("try %d: %+v, %v", i, r, err)
			}
		}
		if got := history(t, h.Runtime, space); got != "created change_requested files_deleted" || len(d.done) != 1 {
			t.Errorf("history %q, disk %v", got, d.done)
		}
	})
	t.Run("OPS-01_a_directory_is_removed_by_an_operation_that_a_crash_does_not_repeat", func(t *testing.T) {
		h, d := setup(t)
		space := home(t, h, alice)
		d.directories["code"] = true
		d.fail = errors.New("the machine went away")
		if _, err := h.DeleteFiles(t.Context(), command(h, alice, "key"), space, []string{"code"}); err == nil {
			t.Fatal("no error")
		}
		d.fail = nil
		r, err := h.DeleteFiles(t.Context(), command(h, alice, "key"), space, []string{"code", "file"})
		if err != nil || r.Items[0].Err != nil || r.Items[0].Operation == uuid.Nil || r.Items[1].Operation != uuid.Nil {
			t.Fatalf("%+v, %v", r, err)
		}
		want := storage.Removal{Operation: r.Items[0].Operation, Space: space, Owner: alice, Path: "code", Directory: "the one at code"}
		if d.queued[want.Operation] != want || len(d.queued) != 1 {
			t.Errorf("queued %+v", d.queued)
		}
		delete(d.directories, "code") // the operation has done its work
		again, err := h.DeleteFiles(t.Context(), command(h, alice, "key"), space, []string{"code", "file"})
		if err != nil || !again.Replayed || again.Items[0].Operation != want.Operation {
			t.Errorf("%+v, %v", again, err)
		}
		if got := history(t, h.Runtime, space); got != "created directory_removal_requested change_requested files_deleted" {
			t.Errorf("history %q", got)
		}
	})
	t.Run("STO-01_who_may_not_write_does_not_learn_what_there_is", func(t *testing.T) {
		h, d := setup(t)
		space := home(t, h, alice)
		d.directories["code"] = true
		r, err := h.DeleteFiles(t.Context(), command(h, bob, ""), space, []string{"code", "none"})
		if err != nil || !fault.Is(r.Items[0].Err, fault.CodeNotFound) || !fault.Is(r.Items[1].Err, fault.CodeNotFound) || len(d.queued) != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("STO-02_an_upload_is_on_record_from_its_first_byte", func(t *testing.T) {
		h, _ := setup(t)
		space := home(t, h, alice)
		p, _ := storage.ParsePath("code/train.py")
		if _, err := h.RequestUpload(t.Context(), command(h, alice, ""), space, p); err != nil {
			t.Fatal(err)
		}
		r, err := h.RecordUpload(t.Context(), command(h, alice, ""), space, storage.Upload{Path: p, SizeBytes: 3, SHA256: "ab"})
		if err != nil || r.Refs.Path != "code/train.py" || r.Position == 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		if got := history(t, h.Runtime, space); got != "created change_requested file_uploaded" {
			t.Errorf("history %q", got)
		}
	})
	t.Run("GEN-05_batches_have_a_size", func(t *testing.T) {
		h, _ := setup(t)
		space := home(t, h, alice)
		if _, err := h.DeleteFiles(t.Context(), command(h, alice, ""), space, nil); !fault.Is(err, fault.CodeRequired) {
			t.Errorf("refused with %v", err)
		}
		if _, err := h.DeleteFiles(t.Context(), command(h, alice, ""), space, make([]string, 101)); !fault.Is(err, fault.CodeTooMany) {
			t.Errorf("refused with %v", err)
		}
	})
}
