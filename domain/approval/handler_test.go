package approval

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/infra/eventstore/storetest"
)

// answers stands for all that a handler asks of others.
type answers struct {
	digest string
	alone  bool
}

func (answers) Grants(_ context.Context, tenant, user uuid.UUID) (access.Grants, error) {
	if g, ok := people[user]; ok && g.Tenant == tenant {
		return g, nil
	}
	return access.Grants{Tenant: tenant, User: user}, nil
}

func (a answers) OnlyAdmin(context.Context, uuid.UUID, uuid.UUID) (bool, error) { return a.alone, nil }

func (answers) ApprovalExpiry(context.Context, uuid.UUID) (time.Duration, error) {
	return 30 * 24 * time.Hour, nil
}

func (a answers) Digest(context.Context, uuid.UUID, uuid.UUID, Subject) (string, error) {
	return a.digest, nil
}

func newHandler(t *testing.T) *Handler {
	t.Helper()
	registry, err := es.NewRegistry(es.Types, Types)
	if err != nil {
		t.Fatal(err)
	}
	a := answers{digest: subject.Digest}
	h := &Handler{Access: a, Admins: a, Settings: a, Subjects: a, Runtime: &es.Runtime{
		Log: storetest.Open(t), Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{}, NameKey: []byte("k"),
		Logger: slog.New(slog.DiscardHandler), Refusals: es.NewRefusals(),
	}}
	cmd := es.System(uuid.New(), "test", "test", acme)
	if err := h.Open(t.Context(), cmd, New{ID: request, Subject: subject, Requester: alice, Project: vision}); err != nil {
		t.Fatal(err)
	}
	return h
}

func by(user uuid.UUID) es.Command {
	return es.Command{ID: uuid.New(), Action: "test", Tenant: people[user].Tenant, Actor: es.Actor{Kind: es.ActorUser, User: user}}
}

// TestManyDecideAtOnce holds APR-03 with fifty decisions at the same moment.
func TestManyDecideAtOnce(t *testing.T) {
	h := newHandler(t)
	const n = 50
	got := make([]string, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			do, who := h.Approve, admin
			if i%2 == 1 {
				do, who = h.Reject, boss
			}
			_, err := do(t.Context(), by(who), request)
			got[i] = outcome(nil, err)
		})
	}
	all.Wait()
	counts := map[string]int{}
	for _, g := range got {
		counts[g]++
	}
	if counts["nothing"] != 1 || counts["INVALID_STATE"] != n-1 {
		t.Errorf("APR-03: the answers are %v", counts)
	}
	ends := 0
	for env, err := range es.Events(t.Context(), h.Runtime, Aggregate.Stream(acme, request), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, first := env.Event.(Requested); !first {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("APR-03: it ended %d times", ends)
	}
}

// TestDecidedOnceThenMovedOn: a decision that is given again, after its subject
// moved on because of it, is answered as before.
func TestDecidedOnceThenMovedOn(t *testing.T) {
	h := newHandler(t)
	cmd := by(admin)
	cmd.Key, cmd.Digest = "k", []byte("d")
	for range 2 {
		if r, err := h.Approve(t.Context(), cmd, request); err != nil || r.Refs.Approval != request {
			t.Fatal(r, err)
		}
		h.Subjects = answers{}
	}
}
