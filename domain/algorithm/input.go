package algorithm

import (
	"fmt"
	"regexp"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/fault"
	"tallyard/domain/text"
	"tallyard/domain/workload"
)

// SourceInput is the source as a person gives it: a script in a directory of
// their home, or a command.
type SourceInput struct {
	Directory string
	Script    string
	Command   string
}

// VersionInput is what a person gives for a new version. What is absent is
// taken from the published version it is based on, when there is one.
type VersionInput struct {
	Label   string
	Fields  Fields       // without Source
	Source  *SourceInput // nil: that of the published version
	BasedOn *VersionRef
}

// VersionRef names a version inside its algorithm.
type VersionRef struct {
	Algorithm uuid.UUID
	Version   uuid.UUID
}

// CreateInput is what a person gives for a new algorithm.
type CreateInput struct {
	Project uuid.UUID
	Name    string
	VersionInput
}

// UpdateInput is what a person gives to edit a version.
type UpdateInput struct {
	VersionRef
	Fields   Fields       // without Source
	Source   *SourceInput // nil: stays
	BasedOn  *VersionRef  // take over the files of a published version
	Expected *int         // the version's counter, when the person wants to be told of others' edits
}

// PublishInput asks for a publication.
type PublishInput struct {
	VersionRef
	Visibility access.Visibility
	Expected   *int
}

// template is a published version that another one is made from.
type template struct {
	ref   VersionRef
	state State
	v     Version
}

func (t *template) origin() *Origin {
	return &Origin{Algorithm: t.ref.Algorithm, Version: t.ref.Version, Fingerprint: t.v.Fingerprint}
}

// envName is what every shell takes for the name of a variable.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

const (
	maxPairs      = 200
	maxValue      = 4096
	maxCommand    = 4096
	maxScriptPath = 4096
)

// clean checks fields one by one and brings texts into NFC. Whether they fit
// together is for checkSettings.
func (f *Fields) clean() fault.List {
	var faults fault.List
	if f.Description.Value != nil {
		d, bad := text.Description.Clean(*f.Description.Value, "description")
		faults.Add(bad)
		f.Description.Value = &d
	}
	for name, cleared := range map[string]bool{
		"image": f.Image.Cleared(), "source": f.Source.Cleared(), "resources": f.Resources.Cleared(),
	} {
		if cleared {
			faults.Add(fault.New(fault.Invalid, fault.CodeNotClearable, "This can't be empty; leave it out to keep it, or give a new value.").At(name))
		}
	}
	if f.Image.Value != nil {
		faults = append(faults, f.Image.Value.Check("image")...)
	}
	if f.Resources.Value != nil {
		faults = append(faults, f.Resources.Value.Check("resources")...)
	}
	if f.Parameters.Value != nil {
		faults = append(faults, cleanPairs(*f.Parameters.Value, "parameters", func(n string) bool { return n != "" })...)
	}
	if f.Environment.Value != nil {
		faults = append(faults, cleanPairs(*f.Environment.Value, "environment", envName.MatchString)...)
	}
	return faults
}

func cleanPairs(pairs []Pair, field string, nameOK func(string) bool) fault.List {
	var faults fault.List
	if len(pairs) > maxPairs {
		faults.Add(fault.New(fault.Invalid, fault.CodeTooMany, fmt.Sprintf("There are too many; give at most %d.", maxPairs)).At(field))
		return faults
	}
	names := map[string]bool{}
	for i := range pairs {
		at := func(name string) []string { return []string{field, fmt.Sprint(i), name} }
		var bad *fault.Fault
		pairs[i].Name, bad = text.Line(1, 128).Clean(pairs[i].Name, at("name")...)
		faults.Add(bad)
		if bad == nil && !nameOK(pairs[i].Name) {
			faults.Add(fault.New(fault.Invalid, fault.CodeInvalidCharacters,
				"A variable's name has letters, digits and underscore and does not begin with a digit; change it.").At(at("name")...))
		}
		rule := text.Rule{Max: maxValue, Lines: true, Says: "any text without control characters"}
		pairs[i].Value, bad = rule.Clean(pairs[i].Value, at("value")...)
		faults.Add(bad)
		if names[pairs[i].Name] {
			faults.Add(fault.New(fault.Invalid, fault.CodeDuplicate, "This name is given twice; keep one of them.").At(at("name")...))
		}
		names[pairs[i].Name] = true
	}
	return faults
}

// clean checks that the source is one of the two kinds.
func (s *SourceInput) clean() fault.List {
	var faults fault.List
	script := s.Directory != "" || s.Script != ""
	switch {
	case script && s.Command != "":
		faults.Add(fault.New(fault.Invalid, fault.CodeInvalidValue, "Give a script with its directory, or a command, not both.").At("source"))
	case !script && s.Command == "":
		faults.Add(fault.New(fault.Invalid, fault.CodeRequired, "Give a script with its directory, or a command.").At("source"))
	case script:
		if s.Directory == "" {
			faults.Add(fault.New(fault.Invalid, fault.CodeRequired, "Name the directory that the script lies in.").At("source", "script", "directory"))
		}
		if s.Script == "" {
			faults.Add(fault.New(fault.Invalid, fault.CodeRequired, "Name the script inside the directory.").At("source", "script", "script"))
		}
	default:
		var bad *fault.Fault
		s.Command, bad = text.Rule{Min: 1, Max: maxCommand, Lines: true, Says: "any text without control characters"}.Clean(s.Command, "source", "command")
		faults.Add(bad)
	}
	return faults
}

// checkSettings checks what belongs together and fills the deployment in when
// none was chosen.
func checkSettings(s *Settings) fault.List {
	var faults fault.List
	if s.Image.Reference == "" {
		faults.Add(fault.New(fault.Invalid, fault.CodeRequired, "Name the image to run in.").At("image"))
		return faults
	}
	if s.Resources.Workers == 0 {
		s.Resources.Workers = 1
	}
	if s.Deployment == "" {
		s.Deployment = workload.Default(s.Image.Framework, s.Resources.Workers)
	}
	return append(faults, workload.CheckShape(s.Image.Framework, s.Deployment, s.Resources, s.Elastic)...)
}
