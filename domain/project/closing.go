package project

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// Closed ends a project: nothing is made in it any more, what happened in it
// stays to be read.
type Closed struct {
	Name string `json:"name"`
}

// Changes implements es.Event.
func (Closed) Changes() []es.Change { return []es.Change{es.Moved("state", "ACTIVE", "CLOSED")} }

// Reopened takes back a closing that met something on its way into the project.
type Reopened struct{}

// Changes implements es.Event.
func (Reopened) Changes() []es.Change { return []es.Change{es.Moved("state", "CLOSED", "ACTIVE")} }

// Content is something that lives in a project.
type Content struct {
	Ref  es.Ref
	Name string
}

// Contents tells what lives in a project, of every feature.
type Contents interface {
	// In gives what is in a project by all that the log had when it was asked.
	In(ctx context.Context, tenant, project uuid.UUID) ([]Content, error)
}

// maxTold is how many things a refusal names.
const maxTold = 50

// Close is `closeProject` (TEN-11). A project in which anything lives is not
// closed: the answer names it. What was on its way into the project is met by a
// second look, after which nothing can come.
func (h *Handler) Close(ctx context.Context, cmd es.Command, id uuid.UUID, expected *int) (es.Result[Refs], error) {
	cmd.Subject, cmd.Project = es.Ref{Kind: Category, ID: id}, id
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		rule := func(g access.Grants) error { return mustChange(g, id) }
		if err := h.may(ctx, cmd, rule); err != nil {
			return Refs{}, err
		}
		out, done, err := es.Carried(ctx, h.Runtime, cmd, Aggregate, id)
		if err != nil {
			return Refs{}, err
		}
		if !done {
			if err := h.isEmpty(ctx, cmd.Tenant, id); err != nil {
				return Refs{}, err
			}
			if out, err = es.Execute(ctx, h.Runtime, cmd, Aggregate, id, closing(expected)); err != nil {
				return Refs{}, err
			}
		}
		return Refs{Project: id}, h.settle(ctx, cmd, id, out.State)
	})
}

// settle looks once more into a project that was closed, and frees its name or
// opens it again.
func (h *Handler) settle(ctx context.Context, cmd es.Command, id uuid.UUID, s State) error {
	if err := h.isEmpty(ctx, cmd.Tenant, id); err != nil {
		if _, refused := fault.All(err); !refused {
			return err
		}
		again := cmd
		again.ID = uuid.NewSHA1(cmd.ID, []byte("reopen"))
		if _, back := es.Execute(ctx, h.Runtime, again, Aggregate, id, reopening); back != nil {
			return back
		}
		return err
	}
	return h.Runtime.Release(ctx, cmd, reservation(s.Name), Aggregate.Stream(cmd.Tenant, id))
}

func closing(expected *int) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if err := s.expects(expected); err != nil {
			return nil, err
		}
		if s.Closed {
			return nil, nil
		}
		return []es.Event{Closed{Name: s.Name}}, nil
	}
}

func reopening(s State) ([]es.Event, error) {
	if !s.Closed {
		return nil, nil
	}
	return []es.Event{Reopened{}}, nil
}

// isEmpty refuses while anything lives in a project, naming it.
func (h *Handler) isEmpty(ctx context.Context, tenant, id uuid.UUID) error {
	list, err := h.Contents.In(ctx, tenant, id)
	if err != nil {
		return err
	}
	var faults fault.List
	for i, c := range list {
		if i == maxTold {
			faults.Add(fault.New(fault.State, fault.CodeInUse,
				fmt.Sprintf("There are %d more things in the project; delete them first.", len(list)-maxTold)).At("id"))
			break
		}
		faults.Add(fault.New(fault.State, fault.CodeInUse, "“"+c.Name+"” still lives in the project; delete it first.").At("id").
			With("kind", c.Ref.Kind).With("id", c.Ref.ID.String()).With("name", c.Name))
	}
	return faults.Err()
}
