package user

import (
	"strconv"
	"testing"

	"tallyard/domain/access"
	"tallyard/domain/fault"
	"tallyard/domain/patch"
)

func TestQuota(t *testing.T) {
	w := newWorld(t)
	id := w.user("alice", access.Member)
	cards := func(list ...AcceleratorQuota) patch.Field[[]AcceleratorQuota] { return patch.To(list) }
	many := make([]AcceleratorQuota, maxQuotaTypes+1)
	for i := range many {
		many[i] = AcceleratorQuota{strconv.Itoa(i), 1}
	}
	n := func(v int64) *int64 { return &v }
	for _, c := range []struct {
		name string
		in   NewQuota
		code fault.Code
		want Quota
	}{
		{"RES-06_none_is_no_bound", NewQuota{}, "", Quota{}},
		{"RES-06_what_is_given_bounds", NewQuota{CPUMillis: patch.To[int64](4000), Accelerators: cards(AcceleratorQuota{"A100", 2})}, "", Quota{CPUMillis: n(4000), Accelerators: map[string]int64{"A100": 2}}},
		{"RES-06_what_is_absent_stays", NewQuota{MemoryBytes: patch.To[int64](1 << 30)}, "", Quota{CPUMillis: n(4000), MemoryBytes: n(1 << 30), Accelerators: map[string]int64{"A100": 2}}},
		{"RES-06_zero_is_a_bound", NewQuota{CPUMillis: patch.To[int64](0)}, "", Quota{CPUMillis: n(0), MemoryBytes: n(1 << 30), Accelerators: map[string]int64{"A100": 2}}},
		{"RES-06_null_clears", NewQuota{CPUMillis: patch.Clear[int64](), Accelerators: patch.Clear[[]AcceleratorQuota]()}, "", Quota{MemoryBytes: n(1 << 30)}},
		{"RES-06_below_zero", NewQuota{CPUMillis: patch.To[int64](-1)}, fault.CodeOutOfRange, Quota{MemoryBytes: n(1 << 30)}},
		{"RES-06_a_type_twice", NewQuota{Accelerators: cards(AcceleratorQuota{"A100", 2}, AcceleratorQuota{"A100", 3})}, fault.CodeDuplicate, Quota{MemoryBytes: n(1 << 30)}},
		{"RES-06_a_type_without_a_name", NewQuota{Accelerators: cards(AcceleratorQuota{"", 2})}, fault.CodeRequired, Quota{MemoryBytes: n(1 << 30)}},
		{"RES-06_too_many_types", NewQuota{Accelerators: cards(many...)}, fault.CodeTooMany, Quota{MemoryBytes: n(1 << 30)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := w.SetQuota(t.Context(), w.by(w.admin, "setUserQuota"), id, c.in)
			if (c.code == "") != (err == nil) || err != nil && !fault.Is(err, c.code) {
				t.Fatalf("got %v, want %q", err, c.code)
			}
			if got := w.state(id).Quota; !got.equal(c.want) {
				t.Fatalf("got %+v, want %+v", got, c.want)
			}
		})
	}
	t.Run("TEN-09_by_tenant_admins_alone", func(t *testing.T) {
		if _, err := w.SetQuota(t.Context(), w.by(id, "setUserQuota"), id, NewQuota{}); !fault.Is(err, fault.CodeForbidden) {
			t.Fatalf("%v", err)
		}
	})
}
