package algorithm

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/patch"
)

// TestRandomHistories: whatever people and processes do in whatever order, an
// algorithm stays one that the rules allow.
func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := &random{t: rt, purposes: map[uuid.UUID]Purpose{}}
		h.apply(alice, decideCreate("sort", alice, vision, newVersion{id: h.new(), label: "0", settings: settings()}))
		for range rapid.IntRange(0, 40).Draw(rt, "length") {
			if h.s.Deleted {
				break
			}
			h.step()
		}
	})
}

type random struct {
	t      *rapid.T
	s      State
	at     es.Revision
	ids    uint32
	byUser int
	// purposes tells what each operation is for.
	purposes map[uuid.UUID]Purpose
}

func (h *random) new() uuid.UUID {
	h.ids++
	return uuid.NewSHA1(acme, fmt.Append(nil, h.ids))
}

func (h *random) step() {
	v := rapid.SampledFrom(h.s.Versions).Draw(h.t, "version")
	who := rapid.SampledFrom([]uuid.UUID{alice, alice, alice, bob, admin, audra}).Draw(h.t, "who")
	g, ref, op := people[who], VersionRef{theAlgorithm, v.ID}, h.new()
	ended := rapid.SampledFrom([]uuid.UUID{v.Operation, v.Operation, op}).Draw(h.t, "operation")
	label := rapid.SampledFrom([]string{"0", "1", "2", "3"}).Draw(h.t, "label")
	added := newVersion{id: h.new(), operation: op, label: label, settings: settings()}
	if rapid.Bool().Draw(h.t, "copied") {
		added.copyFrom = v2
	} else {
		added.settings.Source = Source{Command: "ls"}
	}
	system := uuid.Nil
	switch rapid.IntRange(0, 18).Draw(h.t, "what") {
	case 0:
		h.apply(who, decideAddVersion(g, added))
	case 1:
		h.apply(who, decideEdit(g, edit{ref: ref, fields: Fields{Description: patch.To(rapid.StringMatching("[a-c]").Draw(h.t, "text"))}}))
	case 2:
		h.apply(who, decideEdit(g, edit{ref: ref, fields: Fields{Source: patch.To(added.settings.Source)}}))
	case 3:
		h.apply(who, decideEdit(g, edit{ref: ref, origin: &Origin{Version: v2}, copyFrom: v2, operation: op}))
	case 4, 5:
		h.apply(who, decidePublish(g, PublishInput{VersionRef: ref, Visibility: rapid.SampledFrom([]access.Visibility{access.Private, access.Group, access.Global}).Draw(h.t, "visibility")}, publishing{id: op, approval: rapid.Bool().Draw(h.t, "approval")}))
	case 6:
		h.apply(who, decideDelete(g, v.ID, op, nil, rapid.Bool().Draw(h.t, "batch")))
	case 7:
		h.apply(who, decideUse(g, ref, Use{By: es.Ref{Kind: "workflow", ID: op1}, Name: "w"}))
	case 8:
		h.apply(who, decideRelease(ref, es.Ref{Kind: "workflow", ID: op1}))
	case 9, 10:
		h.apply(system, rapid.SampledFrom([]es.Decide[State]{decidePrepared(v.ID, ended), decidePublished(v.ID, ended, alice, Files{"f", 1, 2}), decideRemoved(v.ID, ended)}).Draw(h.t, "succeeds"))
	case 11, 12:
		h.apply(system, rapid.SampledFrom([]es.Decide[State]{decidePreparationFailed(v.ID, ended, "p"), decidePublicationFailed(v.ID, ended, "p"), decideDeletionFailed(v.ID, ended, "p")}).Draw(h.t, "fails"))
	case 13:
		h.apply(system, decidePublicationCancelled(v.ID, ended))
	case 14, 15:
		asked := op
		if v.Approval != nil {
			asked = v.Approval.Request
		}
		h.apply(system, rapid.SampledFrom([]es.Decide[State]{decideApproved(v.ID, asked, op), decideNotApproved(v.ID, asked, "p")}).Draw(h.t, "decided"))
	default:
		h.apply(who, decideRetry(g, v.ID, ended, 1, h.purposes[ended]))
	}
}

// apply decides, folds what follows, and holds the rules against it.
func (h *random) apply(who uuid.UUID, decide es.Decide[State]) {
	before := es.ValueOf(h.s)
	events, err := decide(h.s)
	if string(es.ValueOf(h.s)) != string(before) {
		h.t.Fatal("a decision changed the state")
	}
	if err != nil {
		if len(events) > 0 {
			h.t.Fatalf("refused with events: %v", err)
		}
		return
	}
	old := h.s
	actor := es.Actor{Kind: es.ActorSystem}
	if who != uuid.Nil {
		actor = es.Actor{Kind: es.ActorUser, User: who}
	}
	for i, e := range events {
		h.s = evolve(h.s, es.Envelope{
			Stream: Aggregate.Stream(acme, theAlgorithm), Revision: h.at, Event: e,
			Meta: es.Metadata{Tenant: acme, Actor: actor, Index: i, Time: at.Add(time.Duration(h.at) * time.Second)},
		})
		h.at++
		switch ev := e.(type) {
		case VersionAdded:
			h.note(ev.Copy)
		case VersionEdited:
			h.note(ev.Copy)
		case PublicationStarted:
			h.purposes[ev.Operation] = Publish
		case DeletionStarted:
			h.purposes[ev.Operation] = Remove
		}
	}
	if string(es.ValueOf(old)) != string(before) {
		h.t.Fatal("the fold changed a state that others may hold")
	}
	if who != uuid.Nil && len(events) > 0 {
		h.byUser++
		if who == bob && names(events) != "use_registered" && names(events) != "use_released" || who == audra && names(events) != "use_registered" && names(events) != "use_released" {
			h.t.Fatalf("somebody who may not left %s", names(events))
		}
	}
	h.hold(old)
}

func (h *random) note(c *Copy) {
	if c != nil {
		h.purposes[c.Operation] = Prepare
	}
}

func (h *random) hold(old State) {
	if h.s.Changes != h.byUser {
		h.t.Fatalf("%d changes are counted, people made %d", h.s.Changes, h.byUser)
	}
	if h.s.Deleted != (len(h.s.Versions) == 0) {
		h.t.Fatalf("deleted %v with %d versions", h.s.Deleted, len(h.s.Versions))
	}
	labels := map[string]bool{}
	for _, v := range h.s.Versions {
		if labels[v.Label] {
			h.t.Fatalf("label %s twice", v.Label)
		}
		labels[v.Label] = true
		switch {
		case v.Status.Transitional() && v.Operation == uuid.Nil:
			h.t.Fatalf("%s waits for no operation", v.Status)
		case v.Status == Published && (v.Visibility == "" || v.Fingerprint == ""):
			h.t.Fatalf("published without visibility or fingerprint: %+v", v)
		case (v.Status == CreateFailed || v.Status == PublishFailed) && v.Problem == "":
			h.t.Fatalf("%s without a problem", v.Status)
		case len(v.Uses) > 0 && v.Status == Deleting:
			h.t.Fatal("deleted while in use")
		}
		was, ok := old.Version(v.ID)
		if ok && was.Status == Published && v.Status == Published {
			was.Settings.Description = v.Settings.Description
			if !same(was.Settings, v.Settings) || was.Fingerprint != v.Fingerprint || was.Visibility != v.Visibility || !same(was.BasedOn, v.BasedOn) {
				h.t.Fatalf("a published version changed from %+v to %+v", was, v)
			}
		}
		if ok && v.Changes < was.Changes || v.Changes < 1 {
			h.t.Fatalf("changes went from %d to %d", was.Changes, v.Changes)
		}
	}
}
