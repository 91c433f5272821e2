package setting

import (
	"slices"
	"strconv"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/patch"
	"tallyard/domain/text"
)

// PlatformID stands for the platform where others have an id of their own.
var PlatformID = uuid.MustParse("00000000-0000-0000-0000-000000000001")

// Target is what settings are of.
type Target struct {
	Scope Scope
	ID    uuid.UUID // of the tenant or project; PlatformID for the platform
}

// OfPlatform is the platform as a target.
func OfPlatform() Target { return Target{Platform, PlatformID} }

// OfTenant is a tenant as a target.
func OfTenant(id uuid.UUID) Target { return Target{Tenant, id} }

// OfProject is a project as a target.
func OfProject(id uuid.UUID) Target { return Target{Project, id} }

// Update is what a change of settings asks for; a field that is cleared unsets
// the setting, so that the wider scope's counts again.
type Update struct {
	Settings        map[Key]patch.Field[Value]
	ExpectedVersion *int
}

// MayRead tells whether somebody reads the settings of a target, as one of the
// named roles: the platform's its operators, a tenant's its admins and auditors,
// a project's those and its own admins.
func MayRead(g access.Grants, t Target) bool {
	switch t.Scope {
	case Platform:
		return g.Has(access.Operator)
	case Tenant:
		return g.ReadsAll() && g.Tenant == t.ID
	default:
		return g.ReadsAll() || g.Administers(t.ID)
	}
}

// MayChange tells whether somebody changes the settings of a target: the
// platform's an operator, all others a tenant admin.
func MayChange(g access.Grants, t Target) bool { return mustChange(g, t) == nil }

func mustChange(g access.Grants, t Target) error {
	switch {
	case !g.Active,
		t.Scope == Tenant && g.Tenant != t.ID,
		t.Scope == Project && !g.In(t.ID) && !g.ReadsAll():
		return access.Missing()
	case !g.Writes():
		return access.ReadOnly()
	case t.Scope == Platform && !g.Has(access.Operator):
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Only operators change the settings of the platform; ask one of them.")
	case t.Scope != Platform && !g.Admin():
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Only tenant admins change these settings; ask one of them.")
	}
	return nil
}

// clean finds all that is wrong with an update at once.
func (u Update) clean(in Scope) error {
	var faults fault.List
	for _, k := range slices.Sorted(keysOf(u.Settings)) {
		d, ok := defined(k)
		if !ok {
			faults.Add(fault.New(fault.Invalid, fault.CodeInvalidValue, "There is no such setting; leave it out.").At(string(k)))
			continue
		}
		if f := u.Settings[k]; f.Given && f.Value != nil {
			faults.Add(d.check(*f.Value, in))
		}
	}
	return faults.Err()
}

func keysOf(m map[Key]patch.Field[Value]) func(func(Key) bool) {
	return func(yield func(Key) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func update(in Scope, u Update) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if u.ExpectedVersion != nil && *u.ExpectedVersion != s.Version {
			return nil, fault.New(fault.Conflict, fault.CodeVersionConflict,
				"Somebody changed these settings in between; read them again and repeat the change.").
				At("expectedVersion").With("currentVersion", strconv.Itoa(s.Version))
		}
		ev := Changed{Scope: in}
		for _, k := range Keys() {
			f, given := u.Settings[k]
			if !given || !f.Given {
				continue
			}
			c := Change{Key: k, To: f.Value}
			if old, set := s.Values[k]; set {
				c.From = &old
			}
			if !same(c.From, c.To) {
				ev.Settings = append(ev.Settings, c)
			}
		}
		if len(ev.Settings) == 0 {
			return nil, nil
		}
		return []es.Event{ev}, nil
	}
}

func same(a, b *Value) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// cleanReason wants one: settings decide what others may do.
func cleanReason(reason string) (string, error) {
	rule := text.Reason
	rule.Min, rule.Says = 1, "the reason, it is kept in the audit"
	clean, bad := rule.Clean(reason, "reason")
	if bad != nil {
		return "", bad
	}
	return clean, nil
}
