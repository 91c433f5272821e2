package image

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/image"
	"tallyard/domain/workload"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
)

// Register is registerImage.
func (a *API) Register(ctx context.Context, in gqlmodel.RegisterImageInput) (*gqlmodel.RegisterImagePayload, error) {
	var faults fault.List
	usual := gqlmodel.VisibilityPrivate
	if in.Kind == gqlmodel.ImageKindPreset {
		usual = gqlmodel.VisibilityGlobal
	}
	input := image.Register{Settings: image.Settings{
		Kind: image.Kind(in.Kind), Name: in.Name, Framework: workload.Framework(gqlmodel.Or(in.Framework.Value(), gqlmodel.FrameworkOther)),
		FrameworkVersion: gqlmodel.Or(in.FrameworkVersion.Value(), ""), Reference: in.Reference, Scenario: image.Scenario(gqlmodel.Or(in.Scenario.Value(), "")),
		Accelerators: in.AcceleratorTypes.Value(), Scope: access.Visibility(gqlmodel.Or(in.Scope.Value(), usual)), Description: gqlmodel.Or(in.Description.Value(), ""),
	}}
	if id := in.ProjectID.Value(); id != nil {
		project, bad := relay.Expect(relay.Project, *id, "projectId")
		faults.Add(bad)
		input.Project = project.UUID
	}
	r, err := command.Carry(ctx, a.Commands, a.Runtime, command.Options{Key: in.IdempotencyKey.Value(), Reason: in.Reason.Value()}, faults,
		func(ctx context.Context, cmd es.Command) (es.Result[image.Refs], error) {
			return a.Handler.Register(ctx, cmd, input)
		},
		func(ctx context.Context, res es.Result[image.Refs]) (*gqlmodel.RegisteredImage, error) {
			v, err := authn.Must(ctx)
			if err != nil {
				return nil, err
			}
			l, err := es.LoadUntil(ctx, a.Runtime, image.Aggregate, v.Tenant, res.Refs.Image, res.Position)
			if err != nil || !l.State.Exists() {
				return nil, err
			}
			return Show(l.State), nil
		})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.RegisterImagePayload{RegisteredImage: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// Delete is deleteImage.
func (a *API) Delete(ctx context.Context, in gqlmodel.DeleteImageInput) (*gqlmodel.DeleteImagePayload, error) {
	var faults fault.List
	id, bad := relay.Expect(relay.Image, in.ID, "id")
	faults.Add(bad)
	var expected *int
	if n := in.ExpectedVersion.Value(); n != nil {
		version := int(*n)
		expected = &version
	}
	r, err := command.Carry(ctx, a.Commands, a.Runtime, command.Options{Key: in.IdempotencyKey.Value(), Reason: in.Reason.Value()}, faults,
		func(ctx context.Context, cmd es.Command) (es.Result[image.Refs], error) {
			return a.Handler.Remove(ctx, cmd, id.UUID, expected)
		},
		func(_ context.Context, res es.Result[image.Refs]) (uuid.UUID, error) { return res.Refs.Image, nil })
	if err != nil {
		return nil, err
	}
	return &gqlmodel.DeleteImagePayload{DeletedID: relay.Maybe(relay.Image, r.Entity), UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}
