package algorithm

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/patch"
	"tallyard/domain/workload"
)

// Settings is everything about a version that its owner writes. Its JSON names
// are those of [Fields], so that an edit can be merged into it.
type Settings struct {
	Description string              `json:"description"`
	Image       workload.Image      `json:"image"`
	Source      Source              `json:"source"`
	Parameters  []Pair              `json:"parameters"`
	Environment []Pair              `json:"environment"`
	Resources   workload.Resources  `json:"resources"`
	Deployment  workload.Deployment `json:"deployment"`
	Elastic     *workload.Elastic   `json:"elastic"`
	Model       *uuid.UUID          `json:"model"`
}

// Source is what is run: a script in a directory, or a command.
type Source struct {
	Script  *Script `json:"script,omitempty"`
	Command string  `json:"command,omitempty"`
}

// Script is a script inside the directory that it is executed in. Before
// publication the directory lies in a storage space; what is published is a
// read-only copy of it.
type Script struct {
	Space     uuid.UUID `json:"space"`
	Directory string    `json:"directory"` // path in the space
	Script    string    `json:"script"`    // path in the directory
}

// Pair is a parameter or an environment variable.
type Pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Fields are the settings given by an edit: absent ones stay, null clears.
type Fields struct {
	Description patch.Field[string]              `json:"description,omitzero"`
	Image       patch.Field[workload.Image]      `json:"image,omitzero"`
	Source      patch.Field[Source]              `json:"source,omitzero"`
	Parameters  patch.Field[[]Pair]              `json:"parameters,omitzero"`
	Environment patch.Field[[]Pair]              `json:"environment,omitzero"`
	Resources   patch.Field[workload.Resources]  `json:"resources,omitzero"`
	Deployment  patch.Field[workload.Deployment] `json:"deployment,omitzero"`
	Elastic     patch.Field[workload.Elastic]    `json:"elastic,omitzero"`
	Model       patch.Field[uuid.UUID]           `json:"model,omitzero"`
}

// Apply gives the settings after the edit.
func (f Fields) Apply(s Settings) Settings {
	s.Description = f.Description.Or(s.Description)
	s.Image = f.Image.Or(s.Image)
	s.Source = f.Source.Or(s.Source)
	s.Parameters = f.Parameters.Or(s.Parameters)
	s.Environment = f.Environment.Or(s.Environment)
	s.Resources = f.Resources.Or(s.Resources)
	s.Deployment = f.Deployment.Or(s.Deployment)
	if f.Elastic.Given {
		s.Elastic = f.Elastic.Value
	}
	if f.Model.Given {
		s.Model = f.Model.Value
	}
	// An empty list and none are the same, also in the log.
	if len(s.Parameters) == 0 {
		s.Parameters = nil
	}
	if len(s.Environment) == 0 {
		s.Environment = nil
	}
	return s
}

// between gives the fields in which two settings differ, with the values after
// and before.
func between(before, after Settings) (set, was Fields) {
	patch.Differ(&set.Description, &was.Description, before.Description, after.Description)
	patch.Differ(&set.Image, &was.Image, before.Image, after.Image)
	patch.Differ(&set.Source, &was.Source, before.Source, after.Source)
	patch.Differ(&set.Parameters, &was.Parameters, before.Parameters, after.Parameters)
	patch.Differ(&set.Environment, &was.Environment, before.Environment, after.Environment)
	patch.Differ(&set.Resources, &was.Resources, before.Resources, after.Resources)
	patch.Differ(&set.Deployment, &was.Deployment, before.Deployment, after.Deployment)
	patch.DifferPointer(&set.Elastic, &was.Elastic, before.Elastic, after.Elastic)
	patch.DifferPointer(&set.Model, &was.Model, before.Model, after.Model)
	return set, was
}

// Empty tells that no field is given.
func (f Fields) Empty() bool { return f == Fields{} || string(es.ValueOf(f)) == "{}" }

// FingerprintOf is the fingerprint of a published version: SHA-256 over its
// settings and the fingerprint of its files (empty in command mode), so that
// neither can be exchanged. The description does not count: it stays editable.
func FingerprintOf(s Settings, files string) string {
	s.Description = ""
	if s.Source.Script != nil {
		// Where the files came from does not count, what they are does.
		s.Source.Script = &Script{Script: s.Source.Script.Script}
	}
	sum := sha256.Sum256(es.ValueOf(struct {
		Settings Settings `json:"settings"`
		Files    string   `json:"files"`
	}{s, files}))
	return "sha256:" + hex.EncodeToString(sum[:])
}
