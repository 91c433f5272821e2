package user

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// PermissionGranted gives a named permission (TEN-04).
type PermissionGranted struct {
	Permission access.Permission `json:"permission"`
}

// Changes implements es.Event.
func (e PermissionGranted) Changes() []es.Change {
	return []es.Change{es.Set("permissions", e.Permission)}
}

// PermissionRevoked takes a named permission.
type PermissionRevoked struct {
	Permission access.Permission `json:"permission"`
}

// Changes implements es.Event.
func (e PermissionRevoked) Changes() []es.Change {
	return []es.Change{{Field: "permissions", From: es.ValueOf(e.Permission)}}
}

// BusinessScopeSet says with which part of the platform a user works (TEN-08).
type BusinessScopeSet struct {
	From access.BusinessScope `json:"from"`
	To   access.BusinessScope `json:"to"`
}

// Changes implements es.Event.
func (e BusinessScopeSet) Changes() []es.Change {
	return []es.Change{es.Moved("businessScope", e.From, e.To)}
}

// GrantPermission is `grantPermission`. It works at the user's next request.
func (h *Handler) GrantPermission(ctx context.Context, cmd es.Command, id uuid.UUID, p access.Permission) (es.Result[Refs], error) {
	return h.changeState(ctx, cmd, id, grantPermission(p))
}

// RevokePermission is `revokePermission`. It works at the user's next request.
func (h *Handler) RevokePermission(ctx context.Context, cmd es.Command, id uuid.UUID, p access.Permission) (es.Result[Refs], error) {
	return h.changeState(ctx, cmd, id, revokePermission(p))
}

// SetBusinessScope is `setBusinessScope`.
func (h *Handler) SetBusinessScope(ctx context.Context, cmd es.Command, id uuid.UUID, to access.BusinessScope) (es.Result[Refs], error) {
	return h.changeState(ctx, cmd, id, setScope(to))
}

func grantPermission(p access.Permission) es.Decide[State] {
	return onKnown(func(s State) ([]es.Event, error) {
		switch {
		case !p.Valid():
			return nil, noPermission()
		case slices.Contains(s.Permissions, p):
			return nil, nil
		}
		return []es.Event{PermissionGranted{p}}, nil
	})
}

func revokePermission(p access.Permission) es.Decide[State] {
	return onKnown(func(s State) ([]es.Event, error) {
		switch {
		case !p.Valid():
			return nil, noPermission()
		case !slices.Contains(s.Permissions, p):
			return nil, nil
		}
		return []es.Event{PermissionRevoked{p}}, nil
	})
}

func noPermission() *fault.Fault {
	return fault.New(fault.Invalid, fault.CodeInvalidValue, "There is no such permission; choose one of the listed ones.").At("permission")
}

func setScope(to access.BusinessScope) es.Decide[State] {
	return onKnown(func(s State) ([]es.Event, error) {
		switch {
		case !to.Valid():
			return nil, fault.New(fault.Invalid, fault.CodeInvalidValue, "There is no such business scope; choose one of the listed ones.").At("businessScope")
		case s.BusinessScope() == to:
			return nil, nil
		}
		return []es.Event{BusinessScopeSet{From: s.BusinessScope(), To: to}}, nil
	})
}

// BusinessScope is with which part of the platform the user works.
func (s State) BusinessScope() access.BusinessScope {
	if s.Scope == "" {
		return access.TrainingAndInference
	}
	return s.Scope
}
