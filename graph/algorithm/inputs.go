package algorithm

import (
	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/algorithm"
	"tallyard/domain/fault"
	"tallyard/domain/patch"
	"tallyard/domain/workload"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
)

// versionFields are the settings that three inputs share.
type versionFields struct {
	description    graphql.Omittable[*string]
	image          graphql.Omittable[*gqlmodel.ImageInput]
	parameters     graphql.Omittable[[]*gqlmodel.PairInput]
	environment    graphql.Omittable[[]*gqlmodel.PairInput]
	resources      graphql.Omittable[*gqlmodel.AlgorithmResourcesInput]
	deploymentType graphql.Omittable[*gqlmodel.DeploymentType]
	elastic        graphql.Omittable[*gqlmodel.ElasticInput]
	modelID        graphql.Omittable[*string]
}

// fields turns them into an edit; what is wrong goes into faults.
func (in versionFields) fields(faults *fault.List) algorithm.Fields {
	f := algorithm.Fields{
		Description: field(in.description, func(s string) string { return s }),
		Image: field(in.image, func(i gqlmodel.ImageInput) workload.Image {
			return workload.Image{Framework: workload.Framework(gqlmodel.Deref(i.Framework.Value())), Reference: i.Reference}
		}),
		Parameters:  list(in.parameters),
		Environment: list(in.environment),
		Resources:   field(in.resources, resourcesOf),
		Deployment:  field(in.deploymentType, func(d gqlmodel.DeploymentType) workload.Deployment { return workload.Deployment(d) }),
		Elastic: field(in.elastic, func(e gqlmodel.ElasticInput) workload.Elastic {
			return workload.Elastic{MinWorkers: int(e.MinWorkers), MaxWorkers: int(e.MaxWorkers)}
		}),
	}
	if id, given := in.modelID.ValueOK(); given {
		f.Model = patch.Clear[uuid.UUID]()
		if id != nil {
			parsed, bad := relay.Expect(relay.Model, *id, "modelId")
			faults.Add(bad)
			f.Model = patch.To(parsed.UUID)
		}
	}
	return f
}

func resourcesOf(r gqlmodel.AlgorithmResourcesInput) workload.Resources {
	out := workload.Resources{
		Workers: int(gqlmodel.Deref(r.Workers.Value())), Servers: int(gqlmodel.Deref(r.Servers.Value())),
		CPUMillis: int(gqlmodel.Deref(r.CPUMillis.Value())), MemoryBytes: gqlmodel.Deref(r.MemoryBytes.Value()),
	}
	if a := r.Accelerator.Value(); a != nil {
		out.Accelerator = &workload.Accelerator{Series: a.Series, Type: a.Type, Count: int(a.Count)}
	}
	return out
}

func sourceOf(in graphql.Omittable[*gqlmodel.AlgorithmSourceInput]) *algorithm.SourceInput {
	s := in.Value()
	if s == nil {
		return nil
	}
	if script := s.Script.Value(); script != nil {
		return &algorithm.SourceInput{Directory: script.Directory, Script: script.Script}
	}
	return &algorithm.SourceInput{Command: gqlmodel.Deref(s.Command.Value())}
}

// versionRef reads the opaque id of a version.
func versionRef(text string, faults *fault.List, field string) algorithm.VersionRef {
	id, bad := relay.Expect(relay.AlgorithmVersion, text, field)
	faults.Add(bad)
	return algorithm.VersionRef{Algorithm: id.Parent, Version: id.UUID}
}

func base(id *string, faults *fault.List) *algorithm.VersionRef {
	if id == nil {
		return nil
	}
	ref := versionRef(*id, faults, "basedOnId")
	return &ref
}

func createInput(in gqlmodel.CreateAlgorithmInput, faults *fault.List) algorithm.CreateInput {
	project, bad := relay.Expect(relay.Project, in.ProjectID, "projectId")
	faults.Add(bad)
	out := algorithm.CreateInput{Project: project.UUID, Name: in.Name}
	out.Label, out.Source, out.BasedOn = in.Label, sourceOf(in.Source), base(in.BasedOnID.Value(), faults)
	out.Fields = versionFields{in.Description, unlessNull(in.Image), in.Parameters, in.Environment, unlessNull(in.Resources), in.DeploymentType, in.Elastic, in.ModelID}.fields(faults)
	return out
}

// unlessNull makes null absent: what is only being made has nothing to clear.
func unlessNull[T any](in graphql.Omittable[*T]) graphql.Omittable[*T] {
	if in.Value() == nil {
		return graphql.Omittable[*T]{}
	}
	return in
}

func versionInput(in gqlmodel.CreateAlgorithmVersionInput, faults *fault.List) algorithm.VersionInput {
	out := algorithm.VersionInput{Label: in.Label, Source: sourceOf(in.Source), BasedOn: base(in.BasedOnID.Value(), faults)}
	out.Fields = versionFields{in.Description, unlessNull(in.Image), in.Parameters, in.Environment, unlessNull(in.Resources), in.DeploymentType, in.Elastic, in.ModelID}.fields(faults)
	return out
}

func updateInput(in gqlmodel.UpdateAlgorithmVersionInput, faults *fault.List) algorithm.UpdateInput {
	out := algorithm.UpdateInput{VersionRef: versionRef(in.ID, faults, "id"), Source: sourceOf(in.Source), BasedOn: base(in.BasedOnID.Value(), faults), Expected: number(in.ExpectedVersion)}
	out.Fields = versionFields{in.Description, in.Image, in.Parameters, in.Environment, in.Resources, in.DeploymentType, in.Elastic, in.ModelID}.fields(faults)
	if s, given := in.Source.ValueOK(); given && s == nil {
		out.Fields.Source = patch.Clear[algorithm.Source]() // refused with its own words
	}
	return out
}

func number(n graphql.Omittable[*int32]) *int {
	if v := n.Value(); v != nil {
		i := int(*v)
		return &i
	}
	return nil
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

func list(in graphql.Omittable[[]*gqlmodel.PairInput]) patch.Field[[]algorithm.Pair] {
	v, given := in.ValueOK()
	if !given {
		return patch.Keep[[]algorithm.Pair]()
	}
	if v == nil {
		return patch.Clear[[]algorithm.Pair]()
	}
	pairs := make([]algorithm.Pair, len(v))
	for i, p := range v {
		pairs[i] = algorithm.Pair{Name: p.Name, Value: p.Value}
	}
	return patch.To(pairs)
}

// visibility reads the enum; the schema lets no other value through.
func visibility(v gqlmodel.Visibility) access.Visibility { return access.Visibility(v) }
