package model

import (
	"tallyard/domain/es"
	"tallyard/domain/patch"
)

// Origin tells where a model came from.
type Origin string

// Origins.
const (
	TrainingJob Origin = "TRAINING_JOB"
	Local       Origin = "LOCAL"
	External    Origin = "EXTERNAL"
)

// Details is what describes a version and can be edited (MDL-10). Its JSON names
// are those of [Fields], so that an edit can be merged into it.
type Details struct {
	Description string   `json:"description"`
	Scenario    string   `json:"scenario"`
	Data        string   `json:"data"`
	Image       string   `json:"image"`
	Script      string   `json:"script"` // path in the directory
	Parameters  []Pair   `json:"parameters"`
	Metrics     []Metric `json:"metrics"`
	Origin      Origin   `json:"origin"`
}

// Pair is a parameter.
type Pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Metric is what a model was measured at.
type Metric struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// Fields are the details given by an edit: absent ones stay, null clears.
type Fields struct {
	Description patch.Field[string]   `json:"description,omitzero"`
	Scenario    patch.Field[string]   `json:"scenario,omitzero"`
	Data        patch.Field[string]   `json:"data,omitzero"`
	Image       patch.Field[string]   `json:"image,omitzero"`
	Script      patch.Field[string]   `json:"script,omitzero"`
	Parameters  patch.Field[[]Pair]   `json:"parameters,omitzero"`
	Metrics     patch.Field[[]Metric] `json:"metrics,omitzero"`
	Origin      patch.Field[Origin]   `json:"origin,omitzero"`
}

// Apply gives the details after the edit.
func (f Fields) Apply(d Details) Details {
	d.Description = f.Description.Or(d.Description)
	d.Scenario = f.Scenario.Or(d.Scenario)
	d.Data = f.Data.Or(d.Data)
	d.Image = f.Image.Or(d.Image)
	d.Script = f.Script.Or(d.Script)
	d.Parameters = f.Parameters.Or(d.Parameters)
	d.Metrics = f.Metrics.Or(d.Metrics)
	d.Origin = f.Origin.Or(d.Origin)
	// An empty list and none are the same, also in the log.
	if len(d.Parameters) == 0 {
		d.Parameters = nil
	}
	if len(d.Metrics) == 0 {
		d.Metrics = nil
	}
	return d
}

// Empty tells that no field is given.
func (f Fields) Empty() bool { return string(es.ValueOf(f)) == "{}" }

// between gives the fields in which two details differ, with the values after
// and before.
func between(before, after Details) (set, was Fields) {
	patch.Differ(&set.Description, &was.Description, before.Description, after.Description)
	patch.Differ(&set.Scenario, &was.Scenario, before.Scenario, after.Scenario)
	patch.Differ(&set.Data, &was.Data, before.Data, after.Data)
	patch.Differ(&set.Image, &was.Image, before.Image, after.Image)
	patch.Differ(&set.Script, &was.Script, before.Script, after.Script)
	patch.Differ(&set.Parameters, &was.Parameters, before.Parameters, after.Parameters)
	patch.Differ(&set.Metrics, &was.Metrics, before.Metrics, after.Metrics)
	patch.Differ(&set.Origin, &was.Origin, before.Origin, after.Origin)
	return set, was
}
