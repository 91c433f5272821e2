package project

import (
	"strconv"
	"unicode"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/patch"
	"tallyard/domain/text"
)

// NameRule is the rule for the names of projects.
var NameRule = text.Rule{
	Min: 1, Max: 64,
	Allowed: func(r rune) bool {
		return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
	},
	First: func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) },
	Says:  "letters of any script, digits, underscore and hyphen, beginning with a letter or digit",
}

// Create is what a new project is made of.
type Create struct {
	Name        string
	Description string
}

func (c Create) clean() (Create, error) {
	var faults fault.List
	name, bad := NameRule.Clean(c.Name, "name")
	faults.Add(bad)
	description, bad := text.Description.Clean(c.Description, "description")
	faults.Add(bad)
	return Create{Name: name, Description: description}, faults.Err()
}

// Update is what an update of a project asks for.
type Update struct {
	Name            patch.Field[string]
	Description     patch.Field[string]
	ExpectedVersion *int
}

// clean checks what is given; the name can't be cleared.
func (u Update) clean() (Update, error) {
	var faults fault.List
	switch {
	case u.Name.Cleared():
		faults.Add(fault.New(fault.Invalid, fault.CodeNotClearable, "A project keeps a name; leave it out or give another one.").At("name"))
	case u.Name.Given:
		name, bad := NameRule.Clean(*u.Name.Value, "name")
		faults.Add(bad)
		u.Name = patch.To(name)
	}
	if u.Description.Given {
		description, bad := text.Description.Clean(u.Description.Or(""), "description")
		faults.Add(bad)
		u.Description = patch.To(description)
	}
	return u, faults.Err()
}

// mustAdminister refuses everybody but the admins of the tenant (TEN-11).
func mustAdminister(g access.Grants) error {
	switch {
	case !g.Active:
		return access.Missing()
	case !g.Writes():
		return access.ReadOnly()
	case !g.Admin():
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Only tenant admins make and change projects; ask one of them.")
	}
	return nil
}

// mustChange refuses who may not change this project, as missing when they may
// not see it either.
func mustChange(g access.Grants, project uuid.UUID) error {
	if !g.In(project) && !g.ReadsAll() {
		return access.Missing()
	}
	return mustAdminister(g)
}

func create(in Create) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if s.Exists() {
			return nil, nil
		}
		return []es.Event{Created(in)}, nil
	}
}

func update(in Update) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if err := s.expects(in.ExpectedVersion); err != nil {
			return nil, err
		}
		if s.Closed {
			return nil, fault.New(fault.State, fault.CodeInvalidState, "This project is closed; nothing can be changed any more.").At("id")
		}
		ev := Updated{Name: moved(in.Name, s.Name), Description: moved(in.Description, s.Description)}
		if ev == (Updated{}) {
			return nil, nil
		}
		return []es.Event{ev}, nil
	}
}

// expects refuses what is not there, and another version than the one that is
// expected.
func (s State) expects(version *int) error {
	switch {
	case !s.Exists():
		return access.Missing()
	case version != nil && *version != s.Version:
		return fault.New(fault.Conflict, fault.CodeVersionConflict,
			"Somebody changed this project in between; read it again and repeat the change.").
			At("expectedVersion").With("currentVersion", strconv.Itoa(s.Version))
	}
	return nil
}

func moved(f patch.Field[string], old string) *Moved {
	if f.Or(old) == old {
		return nil
	}
	return &Moved{From: old, To: f.Or(old)}
}
