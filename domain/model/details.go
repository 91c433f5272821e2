package model

import (
	"encoding/json"
	"slices"
	"strings"

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
	differ(&set.Description, &was.Description, before.Description, after.Description)
	differ(&set.Scenario, &was.Scenario, before.Scenario, after.Scenario)
	differ(&set.Data, &was.Data, before.Data, after.Data)
	differ(&set.Image, &was.Image, before.Image, after.Image)
	differ(&set.Script, &was.Script, before.Script, after.Script)
	differ(&set.Parameters, &was.Parameters, before.Parameters, after.Parameters)
	differ(&set.Metrics, &was.Metrics, before.Metrics, after.Metrics)
	differ(&set.Origin, &was.Origin, before.Origin, after.Origin)
	return set, was
}

// differ compares by the stored form, which is what counts.
func differ[T any](set, was *patch.Field[T], before, after T) {
	if string(es.ValueOf(before)) != string(es.ValueOf(after)) {
		*set, *was = patch.To(after), patch.To(before)
	}
}

// changes renders an edit for the audit.
func changes(set, was Fields) []es.Change {
	var after, before map[string]json.RawMessage
	// Both were rendered from valid values a moment ago or read from the log.
	_ = json.Unmarshal(es.ValueOf(set), &after)
	_ = json.Unmarshal(es.ValueOf(was), &before)
	list := make([]es.Change, 0, len(after))
	for name, to := range after {
		list = append(list, es.Change{Field: name, From: notEmpty(before[name]), To: notEmpty(to)})
	}
	slices.SortFunc(list, func(a, b es.Change) int { return strings.Compare(a.Field, b.Field) })
	return list
}

func notEmpty(v json.RawMessage) json.RawMessage {
	if string(v) == "null" || string(v) == "[]" || string(v) == `""` {
		return nil
	}
	return v
}
