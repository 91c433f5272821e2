package user

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/patch"
	"tallyard/domain/text"
)

// Quota bounds what all that runs for one user may hold together (RES-06); what
// is nil, or not in the map, has no bound of its own.
type Quota struct {
	CPUMillis    *int64           `json:"cpuMillis,omitempty"`
	MemoryBytes  *int64           `json:"memoryBytes,omitempty"`
	Accelerators map[string]int64 `json:"accelerators,omitempty"` // cards by type
}

// Limits of quotas.
const (
	maxQuotaAmount = 1 << 50
	maxQuotaTypes  = 50
)

var acceleratorType = text.Line(1, 64)

// QuotaSet bounds what a user may hold.
type QuotaSet struct {
	From Quota `json:"from"`
	To   Quota `json:"to"`
}

// Changes implements es.Event.
func (e QuotaSet) Changes() []es.Change {
	return []es.Change{es.Moved("quota", e.From, e.To)}
}

// NewQuota is what a change of a quota asks for; a field that is cleared has no
// bound any more, accelerators are given all at once.
type NewQuota struct {
	CPUMillis    patch.Field[int64]
	MemoryBytes  patch.Field[int64]
	Accelerators patch.Field[[]AcceleratorQuota]
}

// AcceleratorQuota bounds the cards of one type.
type AcceleratorQuota struct {
	Type  string
	Count int64
}

// SetQuota is `setUserQuota`.
func (h *Handler) SetQuota(ctx context.Context, cmd es.Command, id uuid.UUID, in NewQuota) (es.Result[Refs], error) {
	return h.changeState(ctx, cmd, id, setQuota(in))
}

func setQuota(in NewQuota) es.Decide[State] {
	return onKnown(func(s State) ([]es.Event, error) {
		to, err := in.on(s.Quota)
		if err != nil {
			return nil, err
		}
		if s.Quota.equal(to) {
			return nil, nil
		}
		return []es.Event{QuotaSet{From: s.Quota, To: to}}, nil
	})
}

// on gives the quota that a change makes of an old one, or all that is wrong.
func (in NewQuota) on(old Quota) (Quota, error) {
	var faults fault.List
	to := Quota{CPUMillis: amount(in.CPUMillis, old.CPUMillis, &faults, "cpuMillis"), MemoryBytes: amount(in.MemoryBytes, old.MemoryBytes, &faults, "memoryBytes")}
	if !in.Accelerators.Given {
		to.Accelerators = old.Accelerators
		return to, faults.Err()
	}
	list := in.Accelerators.Or(nil)
	if len(list) > maxQuotaTypes {
		faults.Add(fault.New(fault.Invalid, fault.CodeTooMany, fmt.Sprintf("Name at most %d types.", maxQuotaTypes)).At("accelerators"))
		return to, faults.Err()
	}
	for i, a := range list {
		place := fmt.Sprint(i)
		kind, bad := acceleratorType.Clean(a.Type, "accelerators", place, "type")
		faults.Add(bad)
		if a.Count < 0 || a.Count > maxQuotaAmount {
			faults.Add(outOfRange().At("accelerators", place, "count"))
		}
		if _, twice := to.Accelerators[kind]; twice && bad == nil {
			faults.Add(fault.New(fault.Invalid, fault.CodeDuplicate, "Name each type once.").At("accelerators", place, "type"))
		}
		if to.Accelerators == nil {
			to.Accelerators = map[string]int64{}
		}
		to.Accelerators[kind] = a.Count
	}
	return to, faults.Err()
}

func amount(in patch.Field[int64], old *int64, faults *fault.List, field string) *int64 {
	if !in.Given {
		return old
	}
	if in.Value != nil && (*in.Value < 0 || *in.Value > maxQuotaAmount) {
		faults.Add(outOfRange().At(field))
	}
	return in.Value
}

func outOfRange() *fault.Fault {
	return fault.New(fault.Invalid, fault.CodeOutOfRange, "A quota is zero or more; give null for no bound.")
}

func (q Quota) equal(o Quota) bool {
	same := func(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }
	return same(q.CPUMillis, o.CPUMillis) && same(q.MemoryBytes, o.MemoryBytes) && maps.Equal(q.Accelerators, o.Accelerators)
}

// Types are the types of accelerators that are bound, in order.
func (q Quota) Types() []string { return slices.Sorted(maps.Keys(q.Accelerators)) }
