// Package model is between the schema of models and what serves it: the
// domain's handler for mutations, the read model for queries, the log for the
// past.
package model

import (
	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/model"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
	proj "tallyard/projections/model"
)

// Show is a model of the read model.
func Show(s model.State) *gqlmodel.Model {
	return &gqlmodel.Model{
		ID: relay.Of(relay.Model, s.ID), Name: s.Name, Version: int32(s.Changes), //nolint:gosec // far below 2^31
		CreatedAt: s.Created, UpdatedAt: s.Updated, Folded: s,
	}
}

// ShowPast is a model as it was folded from the log, with its versions cut to
// what the viewer sees; nil when that is nothing.
func ShowPast(s model.State, g access.Grants) *gqlmodel.Model {
	cut, ok := s.Cut(g)
	if !ok {
		return nil
	}
	m := Show(cut)
	m.Past = true
	return m
}

// VersionID is the opaque id of a version.
func VersionID(of, version uuid.UUID) string {
	return relay.ID{Kind: relay.ModelVersion, UUID: version, Parent: of}.String()
}

// ShowVersion is a version of the read model.
func ShowVersion(v proj.Version) *gqlmodel.ModelVersion {
	d := v.Details
	m := &gqlmodel.ModelVersion{
		ID: VersionID(v.Model, v.ID), Number: int32(v.Number), Version: int32(v.Changes), //nolint:gosec // checked to be below 2^31
		State: gqlmodel.ModelVersionState(v.Status), Visibility: gqlmodel.Visibility(v.Visibility),
		Scenario: d.Scenario, Data: d.Data, Image: d.Image, Script: d.Script, Directory: v.Directory.Path, Description: d.Description,
		Parameters: []*gqlmodel.Pair{}, Metrics: []*gqlmodel.ModelMetric{}, Origin: gqlmodel.ModelOrigin(d.Origin),
		CreatedAt: v.Created, UpdatedAt: v.Updated, Row: v,
	}
	for _, p := range d.Parameters {
		m.Parameters = append(m.Parameters, &gqlmodel.Pair{Name: p.Name, Value: p.Value})
	}
	for _, x := range d.Metrics {
		m.Metrics = append(m.Metrics, &gqlmodel.ModelMetric{Name: x.Name, Value: x.Value})
	}
	return m
}

// row is a version as the read model would have it.
func row(s model.State, v model.Version) proj.Version {
	return proj.Version{Version: v, Model: s.ID, Tenant: s.Tenant, Project: s.Project, Owner: s.Owner, Name: s.Name}
}

// ShowPastVersion is a version as it was folded from the log.
func ShowPastVersion(s model.State, id uuid.UUID, g access.Grants) *gqlmodel.ModelVersion {
	v, ok := s.Version(id)
	if !ok || !s.Exists() || !g.Sees(s.Thing(v)) {
		return nil
	}
	return ShowVersion(row(s, v))
}
