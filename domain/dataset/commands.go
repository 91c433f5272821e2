package dataset

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/patch"
	"tallyard/domain/text"
)

// NameRule is the rule for names of data sets (STO-08, W12).
var NameRule = text.Rule{
	Min: 1, Max: 64,
	Allowed: func(r rune) bool {
		return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
	},
	First: func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) },
	Says:  "letters of any script, digits, underscore and hyphen, beginning with a letter or digit",
}

// Register is what a registration asks for.
type Register struct {
	Project     uuid.UUID
	Name        string
	Description string
	Visibility  access.Visibility
	Space       uuid.UUID // nil: the home
	Directory   string
}

// Update is what an edit asks for.
type Update struct {
	Name        patch.Field[string]
	Description patch.Field[string]
	Visibility  patch.Field[access.Visibility]
	// Directory is looked at again also when it is the same one.
	Directory       patch.Field[string]
	ExpectedVersion *int
}

func (in Register) clean() (Register, error) {
	var faults fault.List
	var bad *fault.Fault
	in.Name, bad = NameRule.Clean(in.Name, "name")
	faults.Add(bad)
	in.Description, bad = text.Description.Clean(in.Description, "description")
	faults.Add(bad)
	faults.Add(checkVisibility(in.Visibility))
	return in, faults.Err()
}

func (in Update) clean() (Update, error) {
	var faults fault.List
	for _, f := range []struct {
		cleared bool
		name    string
	}{{in.Name.Cleared(), "name"}, {in.Visibility.Cleared(), "visibility"}, {in.Directory.Cleared(), "directory"}} {
		if f.cleared {
			faults.Add(fault.New(fault.Invalid, fault.CodeNotClearable, "A data set keeps this; leave it out or give another one.").At(f.name))
		}
	}
	if in.Name.Given && in.Name.Value != nil {
		name, bad := NameRule.Clean(*in.Name.Value, "name")
		faults.Add(bad)
		in.Name = patch.To(name)
	}
	if in.Description.Given {
		description, bad := text.Description.Clean(in.Description.Or(""), "description")
		faults.Add(bad)
		in.Description = patch.To(description)
	}
	if in.Visibility.Given && in.Visibility.Value != nil {
		faults.Add(checkVisibility(*in.Visibility.Value))
	}
	return in, faults.Err()
}

func checkVisibility(v access.Visibility) *fault.Fault {
	if v.Valid() {
		return nil
	}
	return fault.New(fault.Invalid, fault.CodeInvalidValue, "Choose PRIVATE, GROUP or GLOBAL.").At("visibility")
}

func register(e Registered) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if s.Exists() {
			return nil, nil
		}
		return []es.Event{e}, nil
	}
}

// mayChange is the rule for edits and removals: the owner's and tenant admins'.
func mayChange(g access.Grants, s State, expected *int) error {
	if !s.Exists() {
		return access.Missing()
	}
	if err := access.MustChange(g, s.Thing()); err != nil {
		return err
	}
	if expected != nil && *expected != s.Version {
		return fault.New(fault.Conflict, fault.CodeVersionConflict,
			"Somebody changed this data set in between; read it again and repeat the change.").
			At("expectedVersion").With("currentVersion", strconv.Itoa(s.Version))
	}
	return nil
}

// update applies an edit; content is what the directory holds, nil when it was
// not asked for.
func update(g access.Grants, in Update, content *Content) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if err := mayChange(g, s, in.ExpectedVersion); err != nil {
			return nil, err
		}
		ev := Updated{
			Name: moved(in.Name, s.Name), Description: moved(in.Description, s.Description),
			Visibility: moved(asText(in.Visibility), string(s.Visibility)),
		}
		if content != nil && *content != s.Content {
			if s.Cache.Step != "" {
				return nil, busy(s)
			}
			ev.Content = &MovedContent{From: s.Content, To: *content}
		}
		if ev == (Updated{}) {
			return nil, nil
		}
		return []es.Event{ev}, nil
	}
}

func asText(f patch.Field[access.Visibility]) patch.Field[string] {
	if !f.Given || f.Value == nil {
		return patch.Field[string]{}
	}
	return patch.To(string(*f.Value))
}

func moved(f patch.Field[string], old string) *Moved {
	if f.Or(old) == old {
		return nil
	}
	return &Moved{From: old, To: f.Or(old)}
}

// Use is something that uses a data set.
type Use struct {
	Kind string // for people: "training job"
	Name string
	Ref  es.Ref
	// Cached: it runs on the cache.
	Cached bool
}

// remove takes the data set away, unless something uses it (STO-08, W26).
func remove(g access.Grants, expected *int, uses []Use, operation uuid.UUID) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if err := mayChange(g, s, expected); err != nil {
			return nil, err
		}
		if s.Cache.Step != "" {
			return nil, busy(s)
		}
		if len(uses) > 0 {
			return nil, inUse("The data set is used", uses)
		}
		e := Removed{Name: s.Name, Project: s.Project}
		if s.Cache.Operation != uuid.Nil {
			e.Cached, e.Operation = true, operation
		}
		return []es.Event{e}, nil
	}
}

// begin puts a step of the cache in line (STO-04, STO-05): for who sees the data
// set, since who runs something on it wants it there.
func begin(g access.Grants, step Step, uses []Use, operation uuid.UUID) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if !s.Exists() {
			return nil, access.Missing()
		}
		if err := access.MustSee(g, s.Thing()); err != nil {
			return nil, err
		}
		switch {
		case !g.Writes():
			return nil, access.ReadOnly()
		case s.Cache.Step != "":
			return nil, busy(s)
		case step == Fill && s.Cache.Ready:
			return nil, nil
		case step == Unzip && !s.Cache.Ready:
			return nil, fault.New(fault.State, fault.CodeInvalidState, "Archives are unpacked in the node cache only; cache the data set first.").At("id")
		}
		if running := cached(uses); len(running) > 0 {
			return nil, inUse("The cache is used by what runs", running)
		}
		if step == Refresh && !s.Cache.Ready {
			step = Fill // what is not cached yet is fetched whole
		}
		return []es.Event{CacheBegun{Step: step, Operation: operation}}, nil
	}
}

func cached(uses []Use) (running []Use) {
	for _, u := range uses {
		if u.Cached {
			running = append(running, u)
		}
	}
	return running
}

// resume brings the cache back into the step that a retried operation is for.
func resume(step Step, operation uuid.UUID, after int, uses []Use) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		c := s.Cache
		switch {
		case !s.Exists() || c.Operation != operation || step == Unzip && !c.Ready:
			return nil, fault.New(fault.State, fault.CodeInvalidState, "The data set has moved on; begin anew instead of retrying this.").At("id")
		case c.Step == step:
			return nil, nil
		case c.Step != "":
			return nil, busy(s)
		}
		if running := cached(uses); len(running) > 0 {
			return nil, inUse("The cache is used by what runs", running)
		}
		return []es.Event{CacheBegun{Step: step, Operation: operation, After: after}}, nil
	}
}

// end notes the end of the operation that the cache waits for.
func end(e CacheEnded) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if !s.Exists() || s.Cache.Step != e.Step || s.Cache.Operation != e.Operation {
			return nil, nil
		}
		return []es.Event{e}, nil
	}
}

func busy(s State) *fault.Fault {
	return fault.New(fault.State, fault.CodeInvalidState, "An operation works on the cache of this data set; wait for its end, or cancel it.").
		At("id").With("step", string(s.Cache.Step))
}

// inUse names what uses the thing, the first few.
func inUse(what string, uses []Use) *fault.Fault {
	const most = 10
	var names []string
	for _, u := range uses[:min(len(uses), most)] {
		names = append(names, fmt.Sprintf("%s %q", u.Kind, u.Name))
	}
	if more := len(uses) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fault.New(fault.State, fault.CodeInUse, what+": "+strings.Join(names, ", ")+". Stop or change that first.").
		At("id").With("users", strconv.Itoa(len(uses)))
}
