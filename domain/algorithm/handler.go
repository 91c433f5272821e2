package algorithm

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/text"
)

// Handler carries out the commands of the feature.
type Handler struct {
	Runtime     *es.Runtime
	Access      access.Source
	Projects    Projects
	Directories Directories
	Models      Models
	Settings    Approvals
}

// Projects tells which projects a tenant has.
type Projects interface {
	Exists(ctx context.Context, tenant, id uuid.UUID) (bool, error)
}

// Directories answers about the files that versions are made from.
type Directories interface {
	// Script checks that the directory and the script in it exist in the
	// owner's home and names them in their stored form. What is wrong comes as
	// faults on source.script.
	Script(ctx context.Context, tenant, owner uuid.UUID, directory, script string) (Script, error)
	// Free checks that the owner's home has nothing at a path yet, and gives
	// the home.
	Free(ctx context.Context, tenant, owner uuid.UUID, path string) (space uuid.UUID, err error)
}

// Models answers whether a user sees a model, from the log.
type Models interface {
	Model(ctx context.Context, g access.Grants, id uuid.UUID) (bool, error)
}

// Refs are what a command's answer is built from, now and when its key comes again.
type Refs struct {
	Algorithm uuid.UUID   `json:"algorithm,omitzero"`
	Version   uuid.UUID   `json:"version,omitzero"`
	At        es.Revision `json:"at"` // the stream's revision after the command
}

// Create makes an algorithm with its first version.
func (h *Handler) Create(ctx context.Context, cmd es.Command, in CreateInput) (es.Result[Refs], error) {
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
		ids := cmd.NewIDs(3)
		if out, done, err := es.Carried(ctx, h.Runtime, cmd, Aggregate, ids[0]); err != nil || done {
			return Refs{Algorithm: ids[0], Version: ids[1], At: out.Revision}, err
		}
		n, err := h.newVersion(ctx, g, ids[1], ids[2], g.User, in.Name, in.VersionInput, true)
		if err != nil {
			return Refs{}, err
		}
		name, _ := text.Name.Clean(in.Name) // checked by newVersion with all the rest
		holder := Aggregate.Stream(cmd.Tenant, ids[0])
		unique := nameOf(name, in.Project)
		if err := h.Runtime.Reserve(ctx, cmd, unique, holder); err != nil {
			return Refs{}, err
		}
		out, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, ids[0], decideCreate(name, g.User, in.Project, n))
		if err != nil {
			return Refs{}, err
		}
		return Refs{Algorithm: ids[0], Version: ids[1], At: out.Revision}, nil
	})
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

// CreateVersion adds a version to an algorithm.
func (h *Handler) CreateVersion(ctx context.Context, cmd es.Command, algorithm uuid.UUID, in VersionInput) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: Category, ID: algorithm}
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		g, s, err := h.load(ctx, &cmd, algorithm)
		if err != nil {
			return Refs{}, err
		}
		ids := cmd.NewIDs(2)
		if out, done, err := es.Carried(ctx, h.Runtime, cmd, Aggregate, algorithm); err != nil || done {
			return Refs{Algorithm: algorithm, Version: ids[0], At: out.Revision}, err
		}
		if err := mayChangeWhole(g, s); err != nil {
			return Refs{}, err
		}
		n, err := h.newVersion(ctx, g, ids[0], ids[1], s.Owner, s.Name, in, false)
		if err != nil {
			return Refs{}, err
		}
		out, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, algorithm, decideAddVersion(g, n))
		return Refs{Algorithm: algorithm, Version: ids[0], At: out.Revision}, err
	})
}

// UpdateVersion edits a version.
func (h *Handler) UpdateVersion(ctx context.Context, cmd es.Command, in UpdateInput) (es.Result[Refs], error) {
	cmd.Subject = versionRef(in.VersionRef)
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		g, s, err := h.load(ctx, &cmd, in.Algorithm)
		if err != nil {
			return Refs{}, err
		}
		if out, done, err := es.Carried(ctx, h.Runtime, cmd, Aggregate, in.Algorithm); err != nil || done {
			return Refs{Algorithm: in.Algorithm, Version: in.Version, At: out.Revision}, err
		}
		v, err := mayChange(g, s, in.Version)
		if err != nil {
			return Refs{}, err
		}
		e, err := h.edit(ctx, g, cmd.NewIDs(1)[0], s, v, in)
		if err != nil {
			return Refs{}, err
		}
		out, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, in.Algorithm, decideEdit(g, e))
		return Refs{Algorithm: in.Algorithm, Version: in.Version, At: out.Revision}, err
	})
}

// PublishVersion publishes a version.
func (h *Handler) PublishVersion(ctx context.Context, cmd es.Command, in PublishInput) (es.Result[Refs], error) {
	cmd.Subject = versionRef(in.VersionRef)
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		if !in.Visibility.Valid() {
			return Refs{}, fault.New(fault.Invalid, fault.CodeInvalidValue, "There is no such visibility; choose PRIVATE, GROUP or GLOBAL.").At("visibility")
		}
		g, s, err := h.load(ctx, &cmd, in.Algorithm)
		if err != nil {
			return Refs{}, err
		}
		f := publishing{id: cmd.NewIDs(1)[0]}
		if in.Visibility == access.Global {
			if f.approval, err = h.Settings.GlobalAlgorithmApprovalRequired(ctx, cmd.Tenant, s.Project); err != nil {
				return Refs{}, err
			}
		}
		out, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, in.Algorithm, decidePublish(g, in, f))
		return Refs{Algorithm: in.Algorithm, Version: in.Version, At: out.Revision}, err
	})
}

// DeleteVersion deletes one version, published or not.
func (h *Handler) DeleteVersion(ctx context.Context, cmd es.Command, ref VersionRef, expected *int) (es.Result[Refs], error) {
	return h.delete(ctx, cmd, ref, expected, false)
}

// DeleteInBatch deletes one version as an item of a batch, which published
// ones can't be; every item is a command of its own.
func (h *Handler) DeleteInBatch(ctx context.Context, cmd es.Command, ref VersionRef) (es.Result[Refs], error) {
	return h.delete(ctx, cmd, ref, nil, true)
}

func (h *Handler) delete(ctx context.Context, cmd es.Command, ref VersionRef, expected *int, batch bool) (es.Result[Refs], error) {
	cmd.Subject = versionRef(ref)
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		g, _, err := h.load(ctx, &cmd, ref.Algorithm)
		if err != nil {
			return Refs{}, err
		}
		out, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, ref.Algorithm, decideDelete(g, ref.Version, cmd.NewIDs(1)[0], expected, batch))
		if err != nil {
			return Refs{}, err
		}
		if err := h.releaseName(ctx, cmd, out.State); err != nil {
			// The version is gone, which is the answer; the name follows by the
			// process that watches for that.
			h.Runtime.Logger.WarnContext(ctx, "name of a deleted algorithm not freed yet", "requestId", cmd.Request, "error", err)
		}
		return Refs{Algorithm: ref.Algorithm, Version: ref.Version, At: out.Revision}, nil
	})
}

// releaseName frees the name of an algorithm that is gone; a process does it
// too, should this one die before.
func (h *Handler) releaseName(ctx context.Context, cmd es.Command, s State) error {
	if !s.Deleted {
		return nil
	}
	return h.Runtime.Release(ctx, cmd, nameOf(s.Name, s.Project), Aggregate.Stream(cmd.Tenant, s.ID))
}

// load gives the rights of who acts and the algorithm as it stands; the command
// is one in its project from then on, also when it is refused.
func (h *Handler) load(ctx context.Context, cmd *es.Command, algorithm uuid.UUID) (access.Grants, State, error) {
	g, err := h.Access.Grants(ctx, cmd.Tenant, cmd.Actor.User)
	if err != nil {
		return g, State{}, err
	}
	l, err := es.Load(ctx, h.Runtime, Aggregate, cmd.Tenant, algorithm)
	cmd.In(l.State.Project)
	if _, sees := l.State.Cut(g); err == nil && sees {
		err = access.MustTrain(g)
	}
	return g, l.State, err
}

func nameOf(name string, project uuid.UUID) es.Name {
	return es.Name{Kind: Category, Project: project, Value: name}
}

func versionRef(r VersionRef) es.Ref {
	return es.Ref{Kind: VersionKind, ID: r.Version, Parent: r.Algorithm}
}
