package image

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/text"
	"tallyard/domain/workload"
)

// NameRule is the rule for names of images (STO-06).
var NameRule = text.Rule{
	Min: 1, Max: 32,
	Allowed: func(r rune) bool {
		return strings.ContainsRune("/|-.", r) || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || unicode.Is(unicode.Han, r)
	},
	Says: "letters, Chinese characters, digits and / | - .",
}

const maxAccelerators = 20

// Register is what a registration asks for.
type Register struct {
	Project uuid.UUID // nil: of no project
	Settings
}

func (in Register) clean() (Register, error) {
	var faults fault.List
	var bad *fault.Fault
	in.Name, bad = NameRule.Clean(in.Name, "name")
	faults.Add(bad)
	image := workload.Image{Framework: in.Framework, Reference: in.Reference}
	faults.Add(image.Check()...)
	in.Framework, in.Reference = image.Framework, image.Reference
	in.FrameworkVersion, bad = text.Line(0, 32).Clean(in.FrameworkVersion, "frameworkVersion")
	faults.Add(bad)
	in.Description, bad = text.Description.Clean(in.Description, "description")
	faults.Add(bad)
	faults.Add(in.checkAccelerators()...)
	if in.Scenario != "" && !slices.Contains([]Scenario{Development, Training, Inference}, in.Scenario) {
		faults.Add(fault.New(fault.Invalid, fault.CodeInvalidValue, "Choose DEVELOPMENT, TRAINING or INFERENCE.").At("scenario"))
	}
	if !in.Scope.Valid() {
		faults.Add(fault.New(fault.Invalid, fault.CodeInvalidValue, "Choose PRIVATE, GROUP or GLOBAL.").At("scope"))
	}
	if in.Scope == access.Group && in.Project == uuid.Nil {
		faults.Add(fault.New(fault.Invalid, fault.CodeRequired, "Name the project whose members are to see it.").At("projectId"))
	}
	faults.Add(in.checkKind()...)
	return in, faults.Err()
}

// checkKind checks what each kind wants beside.
func (in Register) checkKind() fault.List {
	var faults fault.List
	switch in.Kind {
	case Preset:
		if in.FrameworkVersion == "" {
			faults.Add(fault.New(fault.Invalid, fault.CodeRequired, "A preset names the version of its framework.").At("frameworkVersion"))
		}
		if in.Scope.Valid() && in.Scope != access.Global {
			faults.Add(fault.New(fault.Invalid, fault.CodeInvalidValue, "A preset is for everybody of the tenant; choose GLOBAL.").At("scope"))
		}
	case Private:
		if in.Scenario == "" {
			faults.Add(fault.New(fault.Invalid, fault.CodeRequired, "A private image names what it is made to do.").At("scenario"))
		}
	case External:
	default:
		faults.Add(fault.New(fault.Invalid, fault.CodeInvalidValue, "Choose PRESET, EXTERNAL or PRIVATE.").At("kind"))
	}
	return faults
}

func (in *Register) checkAccelerators() fault.List {
	var faults fault.List
	if len(in.Accelerators) > maxAccelerators {
		faults.Add(fault.New(fault.Invalid, fault.CodeTooMany, fmt.Sprintf("Name at most %d types.", maxAccelerators)).At("acceleratorTypes"))
		return faults
	}
	clean := make([]string, 0, len(in.Accelerators))
	for i, a := range in.Accelerators {
		at := []string{"acceleratorTypes", strconv.Itoa(i)}
		name, bad := text.Line(1, 64).Clean(a, at...)
		if bad == nil && slices.Contains(clean, name) {
			bad = fault.New(fault.Invalid, fault.CodeDuplicate, "This type is named twice; name it once.").At(at...)
		}
		faults.Add(bad)
		clean = append(clean, name)
	}
	in.Accelerators = clean
	if len(clean) == 0 {
		in.Accelerators = nil
	}
	return faults
}

// mayRegister: presets are the tenant admins' to offer, all others are of who
// registers them.
func mayRegister(g access.Grants, in Register) error {
	switch {
	case !g.Active:
		return access.Missing()
	case in.Project != uuid.Nil:
		if err := access.MustWorkIn(g, in.Project); err != nil {
			return err
		}
	case !g.Writes():
		return access.ReadOnly()
	}
	if in.Kind == Preset && !g.Admin() {
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Only tenant admins offer presets; register an EXTERNAL image instead.").At("kind")
	}
	return nil
}

func register(e Registered) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if s.Exists() {
			return nil, nil
		}
		return []es.Event{e}, nil
	}
}

// Use is something that uses an image.
type Use struct {
	Kind string // for people: "training job"
	Name string
	Ref  es.Ref
}

// remove takes the image off the list, unless something uses it (W26).
func remove(g access.Grants, expected *int, uses []Use) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if !s.Exists() {
			return nil, access.Missing()
		}
		if err := access.MustChange(g, s.Thing()); err != nil {
			return nil, err
		}
		if expected != nil && *expected != s.Version {
			return nil, fault.New(fault.Conflict, fault.CodeVersionConflict, "The image is at another version; read it again.").
				At("expectedVersion").With("currentVersion", strconv.Itoa(s.Version))
		}
		if len(uses) > 0 {
			return nil, inUse(uses)
		}
		return []es.Event{Removed{Name: s.Name}}, nil
	}
}

func inUse(uses []Use) *fault.Fault {
	const most = 10
	var names []string
	for _, u := range uses[:min(len(uses), most)] {
		names = append(names, fmt.Sprintf("%s %q", u.Kind, u.Name))
	}
	if more := len(uses) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fault.New(fault.State, fault.CodeInUse, "The image is used: "+strings.Join(names, ", ")+". Stop or change that first.").
		At("id").With("users", strconv.Itoa(len(uses)))
}
