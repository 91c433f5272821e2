// Package algorithm is between the schema of algorithms and what serves it:
// the domain's handler for mutations, the read model for queries, the log for
// the past and for what is live.
package algorithm

import (
	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/algorithm"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
	proj "tallyard/projections/algorithm"
)

// Show is an algorithm of the read model.
func Show(s algorithm.State) *gqlmodel.Algorithm {
	return &gqlmodel.Algorithm{
		ID: relay.Of(relay.Algorithm, s.ID), Name: s.Name, Version: int32(s.Changes), //nolint:gosec // far below 2^31
		CreatedAt: s.Created, UpdatedAt: s.Updated, Folded: s,
	}
}

// ShowPast is an algorithm as it was folded from the log, with its versions
// cut to what the viewer sees; nil when that is nothing.
func ShowPast(s algorithm.State, g access.Grants) *gqlmodel.Algorithm {
	cut, ok := s.Cut(g)
	if !ok {
		return nil
	}
	a := Show(cut)
	a.Past = true
	return a
}

// VersionID is the opaque id of a version.
func VersionID(alg, version uuid.UUID) string {
	return relay.ID{Kind: relay.AlgorithmVersion, UUID: version, Parent: alg}.String()
}

// ShowVersion is a version of the read model.
func ShowVersion(v proj.Version) *gqlmodel.AlgorithmVersion {
	s := v.Settings
	m := &gqlmodel.AlgorithmVersion{
		ID: VersionID(v.Algorithm, v.ID), Label: v.Label, Version: int32(v.Changes), State: gqlmodel.AlgorithmVersionState(v.Status), //nolint:gosec // far below 2^31
		Problem: gqlmodel.NotEmpty(v.Problem), Description: s.Description,
		Image:      &gqlmodel.Image{Framework: gqlmodel.Framework(s.Image.Framework), Reference: s.Image.Reference},
		Source:     source(s.Source),
		Parameters: pairs(s.Parameters), Environment: pairs(s.Environment), Resources: resources(s),
		DeploymentType: gqlmodel.DeploymentType(s.Deployment),
		Visibility:     gqlmodel.NotEmpty(gqlmodel.Visibility(v.Visibility)), RequestedVisibility: gqlmodel.NotEmpty(gqlmodel.Visibility(v.Wanted)),
		Fingerprint: gqlmodel.NotEmpty(v.Fingerprint), PublishedAt: v.PublishedAt, UsedBy: []*gqlmodel.AlgorithmUse{},
		CreatedAt: v.Created, UpdatedAt: v.Updated, Row: v,
	}
	if s.Elastic != nil {
		m.Elastic = &gqlmodel.Elastic{MinWorkers: int32(s.Elastic.MinWorkers), MaxWorkers: int32(s.Elastic.MaxWorkers)} //nolint:gosec // at most 1500
	}
	if s.Model != nil {
		m.ModelID = relay.Maybe(relay.Model, *s.Model)
	}
	if v.Files != nil {
		m.FilesFingerprint, m.FileCount, m.FileBytes = &v.Files.Fingerprint, &v.Files.Count, &v.Files.Bytes
	}
	for _, u := range v.Uses {
		m.UsedBy = append(m.UsedBy, &gqlmodel.AlgorithmUse{Kind: u.By.Kind, Name: u.Name})
	}
	return m
}

// row is a version as the read model would have it.
func row(s algorithm.State, v algorithm.Version) proj.Version {
	return proj.Version{Version: v, Algorithm: s.ID, Tenant: s.Tenant, Project: s.Project, Owner: s.Owner, Name: s.Name}
}

// ShowPastVersion is a version as it was folded from the log.
func ShowPastVersion(s algorithm.State, id uuid.UUID, g access.Grants) *gqlmodel.AlgorithmVersion {
	v, ok := s.Version(id)
	if !ok || s.Deleted || !g.Sees(s.Thing(v)) {
		return nil
	}
	m := ShowVersion(row(s, v))
	m.Past = true
	return m
}

func source(s algorithm.Source) *gqlmodel.AlgorithmSource {
	if s.Script == nil {
		return &gqlmodel.AlgorithmSource{Command: &s.Command}
	}
	return &gqlmodel.AlgorithmSource{Script: &gqlmodel.AlgorithmScript{Directory: s.Script.Directory, Script: s.Script.Script}}
}

func pairs(list []algorithm.Pair) []*gqlmodel.Pair {
	out := make([]*gqlmodel.Pair, len(list))
	for i, p := range list {
		out[i] = &gqlmodel.Pair{Name: p.Name, Value: p.Value}
	}
	return out
}

func resources(s algorithm.Settings) *gqlmodel.AlgorithmResources {
	r := s.Resources
	out := &gqlmodel.AlgorithmResources{ //nolint:gosec // checked against limits far below 2^31
		Workers: int32(r.Workers), Servers: int32(r.Servers), CPUMillis: int32(r.CPUMillis), MemoryBytes: r.MemoryBytes,
	}
	if a := r.Accelerator; a != nil {
		out.Accelerator = &gqlmodel.AcceleratorRequest{Series: a.Series, Type: a.Type, Count: int32(a.Count)} //nolint:gosec // at most 1024
	}
	return out
}
