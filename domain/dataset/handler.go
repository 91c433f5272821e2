package dataset

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/internal/naming"
)

// NameKind is the kind of the reservations of names.
const NameKind = "dataset"

// Projects tells which projects a tenant has.
type Projects interface {
	Exists(ctx context.Context, tenant, id uuid.UUID) (bool, error)
}

// Directories looks into spaces.
type Directories interface {
	// Look tells what a directory holds, for a user who may read there; the nil
	// space is their home. What is wrong comes as faults on spaceId and directory.
	Look(ctx context.Context, tenant, user, space uuid.UUID, directory string) (Content, error)
}

// Users tells what uses data sets.
type Users interface {
	Using(ctx context.Context, tenant, dataSet uuid.UUID) ([]Use, error)
}

// Operations carries out the steps of caches. Queueing one again changes nothing.
type Operations interface {
	Queue(ctx context.Context, cmd es.Command, s State, step Step, operation, by uuid.UUID) error
	// Clear removes the cache of a data set that is gone.
	Clear(ctx context.Context, cmd es.Command, dataSet, project, operation, by uuid.UUID) error
}

// Handler carries out the commands on data sets.
type Handler struct {
	Runtime     *es.Runtime
	Access      access.Source
	Projects    Projects
	Directories Directories
	Users       Users
	Operations  Operations
}

// Refs is what a command on a data set answers from.
type Refs struct {
	DataSet   uuid.UUID `json:"dataSet"`
	Operation uuid.UUID `json:"operation,omitzero"`
}

// Load gives a data set as it stands in the log.
func (h *Handler) Load(ctx context.Context, tenant, id uuid.UUID) (State, error) {
	l, err := es.Load(ctx, h.Runtime, Aggregate, tenant, id)
	return l.State, err
}

// Register is `registerDataSet`.
func (h *Handler) Register(ctx context.Context, cmd es.Command, in Register) (es.Result[Refs], error) {
	cmd.Project = in.Project
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		g, err := h.Access.Grants(ctx, cmd.Tenant, cmd.Actor.User)
		if err != nil {
			return Refs{}, err
		}
		if err := h.mustWorkIn(ctx, g, in.Project); err != nil {
			return Refs{}, err
		}
		id := cmd.NewIDs(1)[0]
		if _, done, err := es.Carried(ctx, h.Runtime, cmd, Aggregate, id); err != nil || done {
			return Refs{DataSet: id}, err
		}
		in, content, err := h.checked(ctx, cmd, in)
		if err != nil {
			return Refs{}, err
		}
		if err := h.Runtime.Reserve(ctx, cmd, reservation(in.Project, in.Name), Aggregate.Stream(cmd.Tenant, id)); err != nil {
			return Refs{}, err
		}
		_, err = es.Execute(ctx, h.Runtime, cmd, Aggregate, id, register(Registered{
			Project: in.Project, Owner: g.User, Name: in.Name, Description: in.Description, Visibility: in.Visibility, Content: content,
		}))
		return Refs{DataSet: id}, err
	})
}

// checked looks at the texts and the directory, and tells all faults at once.
func (h *Handler) checked(ctx context.Context, cmd es.Command, in Register) (Register, Content, error) {
	in, bad := in.clean()
	content, err := h.Directories.Look(ctx, cmd.Tenant, cmd.Actor.User, in.Space, in.Directory)
	faults, _ := fault.All(bad)
	more, refused := fault.All(err)
	if err != nil && !refused {
		return in, content, err
	}
	return in, content, fault.List(append(append([]*fault.Fault{}, faults...), more...)).Err()
}

func (h *Handler) mustWorkIn(ctx context.Context, g access.Grants, project uuid.UUID) error {
	if err := access.MustWorkIn(g, project); err != nil || g.In(project) {
		return err
	}
	there, err := h.Projects.Exists(ctx, g.Tenant, project)
	if err == nil && !there {
		return access.Missing().At("projectId")
	}
	return err
}

// load gives the grants of who acts and the data set; the command is on record
// in its project from then on.
func (h *Handler) load(ctx context.Context, cmd es.Command, id uuid.UUID) (access.Grants, State, error) {
	g, err := h.Access.Grants(ctx, cmd.Tenant, cmd.Actor.User)
	if err != nil {
		return g, State{}, err
	}
	s, err := h.Load(ctx, cmd.Tenant, id)
	if err == nil {
		cmd.In(s.Project)
	}
	return g, s, err
}

// Update is `updateDataSet`.
func (h *Handler) Update(ctx context.Context, cmd es.Command, id uuid.UUID, in Update) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: Category, ID: id}
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		g, s, err := h.load(ctx, cmd, id)
		if err != nil {
			return Refs{}, err
		}
		if _, done, err := es.Carried(ctx, h.Runtime, cmd, Aggregate, id); err != nil || done {
			return Refs{DataSet: id}, err
		}
		if err := mayChange(g, s, in.ExpectedVersion); err != nil {
			return Refs{}, err
		}
		in, err := in.clean()
		if err != nil {
			return Refs{}, err
		}
		var content *Content
		if in.Directory.Given {
			c, err := h.Directories.Look(ctx, cmd.Tenant, s.Owner, s.Content.Space, in.Directory.Or(""))
			if err != nil {
				return Refs{}, err
			}
			content = &c
		}
		execute := func() error {
			_, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, id, update(g, in, content))
			return err
		}
		if !in.Name.Given {
			return Refs{DataSet: id}, execute()
		}
		return Refs{DataSet: id}, h.mover(s.Project).To(ctx, cmd, Aggregate.Stream(cmd.Tenant, id), in.Name.Or(""), execute)
	})
}

// Remove is `deleteDataSet`.
func (h *Handler) Remove(ctx context.Context, cmd es.Command, id uuid.UUID, expected *int) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: Category, ID: id}
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		g, _, err := h.load(ctx, cmd, id)
		if err != nil {
			return Refs{}, err
		}
		uses, err := h.Users.Using(ctx, cmd.Tenant, id)
		if err != nil {
			return Refs{}, err
		}
		_, err = es.Execute(ctx, h.Runtime, cmd, Aggregate, id, remove(g, expected, uses, cmd.NewIDs(1)[0]))
		return Refs{DataSet: id}, err
	})
}

// Begin is `cacheDataSet`, `refreshDataSet` and `unzipDataSet`.
func (h *Handler) Begin(ctx context.Context, cmd es.Command, id uuid.UUID, step Step) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: Category, ID: id}
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		g, _, err := h.load(ctx, cmd, id)
		if err != nil {
			return Refs{}, err
		}
		uses, err := h.Users.Using(ctx, cmd.Tenant, id)
		if err != nil {
			return Refs{}, err
		}
		operation := cmd.NewIDs(1)[0]
		out, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, id, begin(g, step, uses, operation))
		s := out.State
		if err != nil || s.Cache.Operation != operation {
			return Refs{DataSet: id}, err // cached already
		}
		doing := s.Cache.Step
		if doing == "" {
			doing = s.Cache.Last // it has ended already, and this command comes again
		}
		return Refs{DataSet: id, Operation: operation}, h.Operations.Queue(ctx, cmd, s, doing, operation, g.User)
	})
}

// Retry brings the cache back into the step of an operation that is retried.
func (h *Handler) Retry(ctx context.Context, cmd es.Command, id uuid.UUID, step Step, operation uuid.UUID, after int) error {
	uses, err := h.Users.Using(ctx, cmd.Tenant, id)
	if err != nil {
		return err
	}
	_, err = es.Execute(ctx, h.Runtime, cmd, Aggregate, id, resume(step, operation, after, uses))
	return err
}

// MayRetry tells how Retry would decide, and changes nothing.
func (h *Handler) MayRetry(ctx context.Context, tenant, id uuid.UUID, step Step, operation uuid.UUID, after int) error {
	uses, err := h.Users.Using(ctx, tenant, id)
	if err != nil {
		return err
	}
	l, err := es.Load(ctx, h.Runtime, Aggregate, tenant, id)
	if err != nil {
		return err
	}
	_, err = resume(step, operation, after, uses)(l.State)
	return err
}

// Ended notes the end of a step of the cache.
func (h *Handler) Ended(ctx context.Context, cmd es.Command, id uuid.UUID, e CacheEnded) error {
	_, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, id, end(e))
	return err
}

// ReleaseName frees the name of a data set that is gone.
func (h *Handler) ReleaseName(ctx context.Context, cmd es.Command, id, project uuid.UUID, name string) error {
	return h.Runtime.Release(ctx, cmd, reservation(project, name), Aggregate.Stream(cmd.Tenant, id))
}

func (h *Handler) mover(project uuid.UUID) naming.Mover {
	return naming.Mover{
		Runtime: h.Runtime, Name: func(name string) es.Name { return reservation(project, name) },
		Current: func(ctx context.Context, stream es.StreamID) (string, error) {
			id, err := stream.UUID()
			if err != nil {
				return "", err
			}
			s, err := h.Load(ctx, stream.Tenant, id)
			return s.Name, err
		},
		Left: func(e es.Event) (string, bool) {
			if u, ok := e.(Updated); ok && u.Name != nil {
				return u.Name.From, true
			}
			return "", false
		},
	}
}

// Bearer tells the repair of names which ones data sets bear.
func (h *Handler) Bearer() es.Bearer {
	return es.Bearer{
		Bears: func(ctx context.Context, holder es.StreamID) (es.Name, bool, error) {
			id, err := holder.UUID()
			if err != nil {
				return es.Name{}, false, err
			}
			s, err := h.Load(ctx, holder.Tenant, id)
			return reservation(s.Project, s.Name), s.Exists(), err
		},
		Left: map[string]func(es.Envelope) (es.Name, bool){
			"dataset.updated.v1": func(env es.Envelope) (es.Name, bool) {
				if u, ok := env.Event.(Updated); ok && u.Name != nil {
					return reservation(env.Meta.Project, u.Name.From), true
				}
				return es.Name{}, false
			},
		},
	}
}

func reservation(project uuid.UUID, name string) es.Name {
	return es.Name{Kind: NameKind, Project: project, Value: name}
}
