package storage

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// Files does the work on disk. Every call may be made again after a crash.
type Files interface {
	// MakeDirectory makes a directory and those above it; one that is there is fine.
	MakeDirectory(ctx context.Context, tenant, space uuid.UUID, path Path) error
	// Directory tells which directory stands at a path, so that it is known again;
	// empty when something else stands there, or nothing.
	Directory(ctx context.Context, tenant, space uuid.UUID, path Path) (string, error)
	// Delete removes what is no directory, and tells what it removed; nothing
	// there is no error.
	Delete(ctx context.Context, tenant, space uuid.UUID, path Path) (Deleted, error)
}

// Operations carries out what takes long.
type Operations interface {
	// RemoveDirectory queues the removal of a directory; queueing it again
	// changes nothing.
	RemoveDirectory(ctx context.Context, cmd es.Command, r Removal) error
	// Known tells whether an operation was queued.
	Known(ctx context.Context, tenant, id uuid.UUID) (bool, error)
}

// Removal is the removal of a directory with everything in it.
type Removal struct {
	Operation, Space, Project, Owner uuid.UUID
	Path, Directory                  string
}

// Deleted is what a deletion removed.
type Deleted struct{ Files, Bytes int64 }

// Upload is a file that has arrived whole and has its place.
type Upload struct {
	Path      Path
	SizeBytes int64
	SHA256    string
}

// Handler carries out the commands on spaces.
type Handler struct {
	Runtime    *es.Runtime
	Access     access.Source
	Files      Files
	Operations Operations
	Limits     Limits
}

// Refs is what a command on a space answers from.
type Refs struct {
	Space uuid.UUID `json:"space"`
	Path  string    `json:"path,omitempty"`
	// Operation does the rest, where that takes long.
	Operation uuid.UUID `json:"operation,omitzero"`
}

// Load gives a space as it stands in the log; a missing one is no error, its
// state does not Exist.
func (h *Handler) Load(ctx context.Context, tenant, id uuid.UUID) (State, error) {
	l, err := es.Load(ctx, h.Runtime, Aggregate, tenant, id)
	return l.State, err
}

// Readable gives a space to a user who may read in it, and refuses others as
// if it did not exist.
func (h *Handler) Readable(ctx context.Context, tenant, user, id uuid.UUID) (State, error) {
	return h.allowed(ctx, tenant, user, id, MustRead)
}

// Writable is [Handler.Readable] for who may change what the space holds.
func (h *Handler) Writable(ctx context.Context, tenant, user, id uuid.UUID) (State, error) {
	return h.allowed(ctx, tenant, user, id, MustWrite)
}

func (h *Handler) allowed(ctx context.Context, tenant, user, id uuid.UUID, rule func(access.Grants, State) error) (State, error) {
	g, err := h.Access.Grants(ctx, tenant, user)
	if err != nil {
		return State{}, err
	}
	s, err := h.Load(ctx, tenant, id)
	if err != nil {
		return State{}, err
	}
	if err := rule(g, s); err != nil {
		return State{}, err
	}
	return s, nil
}

// CreateDirectory is `createDirectory`. A directory that is there already is fine.
func (h *Handler) CreateDirectory(ctx context.Context, cmd es.Command, space uuid.UUID, path string) (es.Result[Refs], error) {
	return h.run(ctx, cmd, space, func(ctx context.Context, cmd es.Command) (Refs, error) {
		p, err := parsePath(path, "path")
		if err != nil {
			return Refs{}, err
		}
		return h.change(ctx, cmd, space, CreateDirectory, p, func(ctx context.Context) (es.Event, error) {
			err := h.Files.MakeDirectory(ctx, cmd.Tenant, space, p)
			return DirectoryCreated{Path: p.String()}, atPath(err)
		})
	})
}

// atPath says which field the disk's refusal is about.
func atPath(err error) error {
	var f *fault.Fault
	if errors.As(err, &f) && len(f.Field) == 0 {
		return f.At("path")
	}
	return err
}

// RequestUpload puts an upload on record before its first byte is taken: see
// [ChangeRequested] for why.
func (h *Handler) RequestUpload(ctx context.Context, cmd es.Command, space uuid.UUID, path Path) (es.Result[Refs], error) {
	return h.upload(ctx, cmd, space, path, ChangeRequested{Change: UploadFile, Path: path.String()})
}

// RecordUpload puts on record that an upload has its place.
func (h *Handler) RecordUpload(ctx context.Context, cmd es.Command, space uuid.UUID, u Upload) (es.Result[Refs], error) {
	return h.upload(ctx, cmd, space, u.Path, FileUploaded{Path: u.Path.String(), SizeBytes: u.SizeBytes, SHA256: u.SHA256})
}

func (h *Handler) upload(ctx context.Context, cmd es.Command, space uuid.UUID, path Path, e es.Event) (es.Result[Refs], error) {
	return h.run(ctx, cmd, space, func(ctx context.Context, cmd es.Command) (Refs, error) {
		g, err := h.Access.Grants(ctx, cmd.Tenant, cmd.Actor.User)
		if err != nil {
			return Refs{}, err
		}
		_, err = es.Execute(ctx, h.Runtime, cmd, Aggregate, space, permitted(cmd, g, e))
		return Refs{Space: space, Path: path.String()}, err
	})
}

func (h *Handler) run(ctx context.Context, cmd es.Command, space uuid.UUID, f func(context.Context, es.Command) (Refs, error)) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: Category, ID: space}
	return es.Run(ctx, h.Runtime, cmd, f)
}

// change touches files between two events: see [ChangeRequested] for why.
func (h *Handler) change(ctx context.Context, cmd es.Command, space uuid.UUID, kind ChangeKind, p Path, work func(context.Context) (es.Event, error)) (Refs, error) {
	g, err := h.Access.Grants(ctx, cmd.Tenant, cmd.Actor.User)
	if err != nil {
		return Refs{}, err
	}
	refs := Refs{Space: space, Path: p.String()}
	asked := ChangeRequested{Change: kind, Path: p.String()}
	if _, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, space, permitted(cmd, g, asked)); err != nil {
		return refs, err
	}
	done, err := work(ctx)
	if err != nil {
		return refs, err
	}
	// What is done goes on record even when the client has left meanwhile.
	_, err = es.Execute(context.WithoutCancel(ctx), h.Runtime, part(cmd, "done"), Aggregate, space, record(done))
	return refs, err
}

// part is a step of a command that appends to the same stream as another step:
// with one id for both, the second would be taken for done once the first is.
func part(cmd es.Command, step string) es.Command {
	cmd.ID = uuid.NewSHA1(cmd.ID, []byte(step))
	return cmd
}

func parsePath(text string, field ...string) (Path, error) {
	p, f := ParsePath(text)
	if f != nil {
		return Root, f.At(field...)
	}
	return p, nil
}
