package tenant

import (
	"strconv"
	"unicode"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/text"
)

// NameRule is the rule for the names of tenants.
var NameRule = text.Rule{
	Min: 1, Max: 64,
	Allowed: func(r rune) bool {
		return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
	},
	First: func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) },
	Says:  "letters of any script, digits, underscore and hyphen, beginning with a letter or digit",
}

// mustOperate refuses everybody but operators (TEN-11). Whoever isn't one is
// told so: that tenants exist is no secret, which ones is.
func mustOperate(g access.Grants) error {
	switch {
	case !g.Active:
		return access.Missing()
	case !g.Writes():
		return access.ReadOnly()
	case !g.Has(access.Operator):
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Only operators make and change tenants; ask one of them.")
	}
	return nil
}

func create(name string) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if s.Exists() {
			return nil, nil
		}
		return []es.Event{Created{Name: name}}, nil
	}
}

// update checks an update before anything is reserved and gives what decides it
// on the state it finds, and the name to reserve, if any. The expected version
// is left to the decision: a command that is finished after a crash finds its
// own change here.
func update(old State, in Update) (es.Decide[State], string, error) {
	if !old.Exists() {
		return nil, "", access.Missing()
	}
	name := ""
	if in.Name != nil {
		clean, bad := NameRule.Clean(*in.Name, "name")
		if bad != nil {
			return nil, "", bad
		}
		name = clean
	}
	decide := func(s State) ([]es.Event, error) {
		if err := expects(s, in.ExpectedVersion); err != nil {
			return nil, err
		}
		if name == "" || s.Name == name {
			return nil, nil
		}
		return []es.Event{Renamed{From: s.Name, To: name}}, nil
	}
	return decide, name, nil
}

func expects(s State, version *int) error {
	switch {
	case !s.Exists():
		return access.Missing()
	case version != nil && *version != s.Version:
		return fault.New(fault.Conflict, fault.CodeVersionConflict,
			"Somebody changed this tenant in between; read it again and repeat the change.").
			At("expectedVersion").With("currentVersion", strconv.Itoa(s.Version))
	}
	return nil
}
