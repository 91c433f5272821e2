package model

import (
	"github.com/99designs/gqlgen/graphql"

	"tallyard/domain/fault"
	"tallyard/domain/model"
	"tallyard/domain/patch"
	"tallyard/domain/text"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
	proj "tallyard/projections/model"
	"tallyard/projections/page"
)

func importInput(in gqlmodel.ImportModelInput, faults *fault.List) model.ImportInput {
	project, bad := relay.Expect(relay.Project, in.ProjectID, "projectId")
	faults.Add(bad)
	return model.ImportInput{
		Project: project.UUID, Name: in.Name, Number: int(in.Version), Directory: in.Directory,
		Fields: model.Fields{
			Scenario: patch.To(in.Scenario), Description: field(in.Description, same), Data: field(in.Data, same),
			Image: field(in.Image, same), Script: field(in.Script, same),
			Parameters: list(in.Parameters, pair), Metrics: list(in.Metrics, metric), Origin: field(in.Origin, origin),
		},
	}
}

func updateInput(in gqlmodel.UpdateModelVersionInput, faults *fault.List) model.UpdateInput {
	out := model.UpdateInput{VersionRef: versionRef(in.ID, faults, "id"), Fields: model.Fields{
		Scenario: field(in.Scenario, same), Description: field(in.Description, same), Data: field(in.Data, same),
		Image: field(in.Image, same), Script: field(in.Script, same),
		Parameters: list(in.Parameters, pair), Metrics: list(in.Metrics, metric), Origin: field(in.Origin, origin),
	}}
	if v := in.ExpectedVersion.Value(); v != nil {
		expected := int(*v)
		out.Expected = &expected
	}
	return out
}

// versionRef reads the opaque id of a version.
func versionRef(id string, faults *fault.List, name string) model.VersionRef {
	parsed, bad := relay.Expect(relay.ModelVersion, id, name)
	faults.Add(bad)
	return model.VersionRef{Model: parsed.Parent, Version: parsed.UUID}
}

func same(s string) string                       { return s }
func origin(o gqlmodel.ModelOrigin) model.Origin { return model.Origin(o) }
func pair(p *gqlmodel.PairInput) model.Pair      { return model.Pair{Name: p.Name, Value: p.Value} }
func metric(m *gqlmodel.ModelMetricInput) model.Metric {
	return model.Metric{Name: m.Name, Value: m.Value}
}

// field turns an optional input field into a field of an edit.
func field[I, D any](in graphql.Omittable[*I], convert func(I) D) patch.Field[D] {
	switch v, given := in.ValueOK(); {
	case !given:
		return patch.Keep[D]()
	case v == nil:
		return patch.Clear[D]()
	default:
		return patch.To(convert(*v))
	}
}

func list[I, D any](in graphql.Omittable[[]I], convert func(I) D) patch.Field[[]D] {
	v, given := in.ValueOK()
	if !given {
		return patch.Keep[[]D]()
	}
	if v == nil {
		return patch.Clear[[]D]()
	}
	out := make([]D, len(v))
	for i, item := range v {
		out[i] = convert(item)
	}
	return patch.To(out)
}

func filter(in *gqlmodel.ModelFilter) (proj.Filter, error) {
	if in == nil {
		return proj.Filter{}, nil
	}
	var faults fault.List
	search, bad := text.Line(0, 100).Clean(gqlmodel.Deref(in.Search.Value()), "filter", "search")
	faults.Add(bad)
	return proj.Filter{
		Project: relay.Optional(relay.Project, in.ProjectID.Value(), &faults, "filter", "projectId"),
		Owner:   relay.Optional(relay.User, in.OwnerID.Value(), &faults, "filter", "ownerId"),
		Search:  search, Status: model.Status(gqlmodel.Deref(in.State.Value())),
		From: gqlmodel.Deref(in.ImportedFrom.Value()), To: gqlmodel.Deref(in.ImportedTo.Value()),
	}, faults.Err()
}

func order(in *gqlmodel.ModelOrder) page.Order {
	return page.Order{
		Column: proj.ByCreated, IDColumn: "t.id",
		Descending: in == nil || in.Direction == gqlmodel.OrderDirectionDesc,
	}
}
