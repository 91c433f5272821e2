package model

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// Handler carries out the commands of the feature.
type Handler struct {
	Runtime     *es.Runtime
	Access      access.Source
	Projects    Projects
	Directories Directories
	Users       Users
}

// Projects tells which projects a tenant has.
type Projects interface {
	Exists(ctx context.Context, tenant, id uuid.UUID) (bool, error)
}

// Directories answers about the files that models are imported from.
type Directories interface {
	// Model checks that the owner's home has the directory with something in it,
	// and the script inside when one is named. What is wrong comes as faults on
	// directory and script.
	Model(ctx context.Context, tenant, owner uuid.UUID, directory, script string) (Directory, error)
}

// Users tells what uses a model.
type Users interface {
	Using(ctx context.Context, tenant, model uuid.UUID) ([]Use, error)
}

// Refs are what a command's answer is built from, now and when its key comes again.
type Refs struct {
	Model   uuid.UUID   `json:"model,omitzero"`
	Version uuid.UUID   `json:"version,omitzero"`
	At      es.Revision `json:"at"` // the stream's revision after the command
}

// Import makes a version from a directory of the actor's home, and the model
// with it when they have none of the name yet.
func (h *Handler) Import(ctx context.Context, cmd es.Command, in ImportInput) (es.Result[Refs], error) {
	cmd.Project = in.Project
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		g, err := h.Access.Grants(ctx, cmd.Tenant, cmd.Actor.User)
		if err != nil {
			return Refs{}, err
		}
		if err := h.mustWorkIn(ctx, g, in.Project); err != nil {
			return Refs{}, err
		}
		if err := access.MustTrain(g); err != nil {
			return Refs{}, err
		}
		faults := in.clean()
		name := nameOf(in.Name, in.Project)
		ids := cmd.NewIDs(2)
		id, err := h.named(ctx, cmd, name, ids[0])
		if err != nil {
			return Refs{}, err
		}
		if out, done, err := es.Carried(ctx, h.Runtime, cmd, Aggregate, id); err != nil || done {
			return Refs{Model: id, Version: ids[1], At: out.Revision}, err
		}
		n := imported{id: ids[1], name: in.Name, project: in.Project, number: in.Number}
		if n.directory, err = h.directory(ctx, g.Tenant, g.User, in.Directory, in.Fields, &faults); err != nil {
			return Refs{}, err
		}
		if err := faults.Err(); err != nil {
			return Refs{}, err
		}
		n.details = in.Fields.Apply(Details{Origin: Local})
		if n.details.Origin == "" {
			n.details.Origin = Local
		}
		out, err := h.add(ctx, cmd, g, name, id, n)
		if err != nil {
			return Refs{}, err
		}
		return Refs{Model: out.State.ID, Version: ids[1], At: out.Revision}, nil
	})
}

// named gives the model that has the name, or the id of a new one. A model that
// was deleted has it no more, should its deletion have died before the name was
// freed.
func (h *Handler) named(ctx context.Context, cmd es.Command, name es.Name, fresh uuid.UUID) (uuid.UUID, error) {
	holder, taken, err := h.Runtime.Holder(ctx, cmd.Tenant, name)
	if err != nil || !taken {
		return fresh, err
	}
	id, err := holder.UUID()
	if err != nil {
		return uuid.Nil, err
	}
	l, err := es.Load(ctx, h.Runtime, Aggregate, cmd.Tenant, id)
	if err != nil || !l.State.Deleted {
		return id, err
	}
	return fresh, h.Runtime.Release(ctx, cmd, name, holder)
}

// add takes the name and imports the version. Who is the second of two at the
// same moment adds to the model of the first, which decides whether they may.
func (h *Handler) add(ctx context.Context, cmd es.Command, g access.Grants, name es.Name, id uuid.UUID, n imported) (es.Outcome[State], error) {
	l, err := es.Load(ctx, h.Runtime, Aggregate, cmd.Tenant, id)
	if err != nil {
		return es.Outcome[State]{}, err
	}
	if l.State.ID == uuid.Nil {
		err := h.Runtime.Reserve(ctx, cmd, name, Aggregate.Stream(cmd.Tenant, id))
		if fault.Is(err, fault.CodeNameTaken) {
			id, err = h.named(ctx, cmd, name, id)
		}
		if err != nil {
			return es.Outcome[State]{}, err
		}
	}
	return es.Execute(ctx, h.Runtime, cmd, Aggregate, id, decideImport(g, n))
}

// directory looks whether the files are there; faults are added to the others.
func (h *Handler) directory(ctx context.Context, tenant, owner uuid.UUID, path string, f Fields, faults *fault.List) (Directory, error) {
	if path == "" {
		return Directory{}, nil // told already
	}
	d, err := h.Directories.Model(ctx, tenant, owner, path, f.Script.Or(""))
	list, ok := fault.All(err)
	if err != nil && !ok {
		return Directory{}, err
	}
	faults.Add(list...)
	return d, nil
}

// mustWorkIn is access.MustWorkIn, and asks whether there is such a project: an
// admin may work in any, and one that was closed keeps its members.
func (h *Handler) mustWorkIn(ctx context.Context, g access.Grants, project uuid.UUID) error {
	if err := access.MustWorkIn(g, project); err != nil {
		return err
	}
	there, err := h.Projects.Exists(ctx, g.Tenant, project)
	switch {
	case err != nil || there:
		return err
	case g.In(project):
		return fault.New(fault.State, fault.CodeInvalidState, "This project is closed; choose another one.").At("projectId")
	}
	return access.Missing().At("projectId")
}

// UpdateVersion edits what describes a version.
func (h *Handler) UpdateVersion(ctx context.Context, cmd es.Command, in UpdateInput) (es.Result[Refs], error) {
	return h.on(ctx, cmd, in.VersionRef, func(ctx context.Context, cmd es.Command, g access.Grants, s State) (es.Decide[State], error) {
		v, err := mayChange(g, s, in.Version)
		if err != nil {
			return nil, err
		}
		faults := in.Fields.clean()
		if in.Fields.Script.Or("") != "" && in.Fields.Script.Or("") != v.Details.Script {
			if _, err := h.directory(ctx, s.Tenant, s.Owner, v.Directory.Path, in.Fields, &faults); err != nil {
				return nil, err
			}
		}
		return decideEdit(g, in), faults.Err()
	})
}

// Share shares one version as an item of a batch; every item is a command of its own.
func (h *Handler) Share(ctx context.Context, cmd es.Command, ref VersionRef, to access.Visibility) (es.Result[Refs], error) {
	return h.on(ctx, cmd, ref, func(_ context.Context, _ es.Command, g access.Grants, _ State) (es.Decide[State], error) {
		return decideShare(g, ref.Version, to), cleanVisibility(to)
	})
}

// Unshare takes one version back to its owner alone.
func (h *Handler) Unshare(ctx context.Context, cmd es.Command, ref VersionRef) (es.Result[Refs], error) {
	return h.on(ctx, cmd, ref, func(_ context.Context, _ es.Command, g access.Grants, _ State) (es.Decide[State], error) {
		return decideShare(g, ref.Version, access.Private), nil
	})
}

// Delete deletes one version as an item of a batch.
func (h *Handler) Delete(ctx context.Context, cmd es.Command, ref VersionRef) (es.Result[Refs], error) {
	return h.on(ctx, cmd, ref, func(ctx context.Context, cmd es.Command, g access.Grants, _ State) (es.Decide[State], error) {
		uses, err := h.Users.Using(ctx, cmd.Tenant, ref.Model)
		return decideDelete(g, ref.Version, uses), err
	})
}

// on runs a command on a version: prepare gathers the facts for the decision.
func (h *Handler) on(ctx context.Context, cmd es.Command, ref VersionRef, prepare func(context.Context, es.Command, access.Grants, State) (es.Decide[State], error)) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: VersionKind, ID: ref.Version, Parent: ref.Model}
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		g, err := h.Access.Grants(ctx, cmd.Tenant, cmd.Actor.User)
		if err != nil {
			return Refs{}, err
		}
		l, err := es.Load(ctx, h.Runtime, Aggregate, cmd.Tenant, ref.Model)
		if err != nil {
			return Refs{}, err
		}
		cmd.In(l.State.Project)
		if _, sees := l.State.Cut(g); sees {
			if err := access.MustTrain(g); err != nil {
				return Refs{}, err
			}
		}
		refs := Refs{Model: ref.Model, Version: ref.Version}
		if out, done, err := es.Carried(ctx, h.Runtime, cmd, Aggregate, ref.Model); err != nil || done {
			refs.At = out.Revision
			return refs, err
		}
		decide, err := prepare(ctx, cmd, g, l.State)
		if err != nil {
			return Refs{}, err
		}
		out, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, ref.Model, decide)
		if err != nil {
			return Refs{}, err
		}
		if out.State.Deleted {
			// The version is gone, which is the answer; a name that stays behind is
			// freed by whoever wants it next.
			if err := h.Runtime.Release(ctx, cmd, nameOf(out.State.Name, out.State.Project), Aggregate.Stream(cmd.Tenant, ref.Model)); err != nil {
				h.Runtime.Logger.WarnContext(ctx, "name of a deleted model not freed yet", "requestId", cmd.Request, "error", err)
			}
		}
		refs.At = out.Revision
		return refs, nil
	})
}

// Sees tells whether a user sees a model.
func (h *Handler) Sees(ctx context.Context, g access.Grants, id uuid.UUID) (bool, error) {
	l, err := es.Load(ctx, h.Runtime, Aggregate, g.Tenant, id)
	if err != nil {
		return false, err
	}
	_, sees := l.State.Cut(g)
	return sees, nil
}

func nameOf(name string, project uuid.UUID) es.Name {
	return es.Name{Kind: Category, Project: project, Value: name}
}
