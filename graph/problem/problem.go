// Package problem is the one table from faults to GraphQL: what becomes a user
// error of a payload, and what a top-level error with a code.
package problem

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sort"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
	"tallyard/projections/runner"
)

// mendable kinds are what the caller can mend; a mutation answers them as user errors.
var mendable = map[fault.Kind]bool{
	fault.Invalid: true, fault.Forbidden: true, fault.NotFound: true, fault.Conflict: true,
	fault.State: true, fault.Quota: true,
}

// UserErrors turns an error into user errors. What is none of them comes back
// as the error that the whole answer fails with.
func UserErrors(err error) ([]*gqlmodel.UserError, error) {
	if err == nil {
		return []*gqlmodel.UserError{}, nil
	}
	faults, ok := fault.All(err)
	if !ok {
		return nil, err
	}
	list := make([]*gqlmodel.UserError, len(faults))
	for i, f := range faults {
		if !mendable[f.Kind] {
			return nil, err
		}
		list[i] = UserError(f)
	}
	return list, nil
}

// UserError is one fault as a user error.
func UserError(f *fault.Fault) *gqlmodel.UserError {
	e := &gqlmodel.UserError{Code: gqlmodel.ErrorCode(f.Code), Message: f.Message, Field: f.Field, Details: []*gqlmodel.ErrorDetail{}}
	kind, thing := f.Details["kind"], f.Details["id"]
	for name, value := range f.Details {
		if name == "id" && kind != "" {
			value = opaque(kind, thing)
		}
		e.Details = append(e.Details, &gqlmodel.ErrorDetail{Name: name, Value: value})
	}
	sort.Slice(e.Details, func(i, j int) bool { return e.Details[i].Name < e.Details[j].Name })
	return e
}

// masked is all that clients see of faults of the platform.
const masked = "Something went wrong on our side. Give the request id to whoever runs this."

// awayFault is what clients see while a store is away. A command may have been
// carried out all the same: its key tells.
var awayFault = fault.New(fault.Unavailable, fault.CodeUnavailable,
	"A part of the platform can't be reached; try again in a moment, a command with the same idempotency key.")

// opaque is the id of a thing that a fault is about, as the API has it.
func opaque(kind, id string) string {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return id
	}
	if shown := relay.OfRef(es.Ref{Kind: kind, ID: parsed}); shown != nil {
		return *shown
	}
	return id
}

// fullFault is what clients see while the event store has no room.
var fullFault = fault.New(fault.Unavailable, fault.CodeUnavailable,
	"The event store is full and takes no changes; ask whoever runs this to make room.")

// outage is the fault for an error that passes: the event store is full, a store
// is away, or the read model is still being built. It is nil for all others.
func outage(err error) *fault.Fault {
	switch {
	case errors.Is(err, es.ErrNoRoom):
		return fullFault
	case errors.Is(err, es.ErrUnavailable), errors.Is(err, runner.ErrNotReady), postgresAway(err):
		return awayFault
	default:
		return nil
	}
}

// Outage turns an error that passes into the fault that says so, for entrances to
// the product beside GraphQL; every other error stays.
func Outage(err error) error {
	if _, ok := fault.All(err); ok {
		return err
	}
	if away := outage(err); away != nil {
		return away
	}
	return err
}

// postgresAway tells whether Postgres did not answer at all, or said that it
// stops, starts or has no connection left.
func postgresAway(err error) bool {
	var connect *pgconn.ConnectError
	var network *net.OpError
	if errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) {
		return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code {
	case "57P01", "57P02", "57P03", "53300":
		return true
	}
	return strings.HasPrefix(pg.Code, "08")
}

// Presenter shows faults with their codes and masks everything else, which is
// logged with the request's id.
func Presenter(logger *slog.Logger, requestID func(context.Context) string) func(context.Context, error) *gqlerror.Error {
	return func(ctx context.Context, err error) *gqlerror.Error {
		out := &gqlerror.Error{Path: graphql.GetPath(ctx)}
		var own *gqlerror.Error
		if errors.As(err, &own) {
			out.Path, out.Locations = own.Path, own.Locations
		}
		faults, ok := fault.All(err)
		if !ok {
			if away := outage(err); away != nil {
				logger.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn, "a part that is needed can't be used",
					slog.String("requestId", requestID(ctx)), slog.String("path", out.Path.String()), slog.Any("error", err))
				faults, ok = []*fault.Fault{away}, true
			}
		}
		if ok {
			f := faults[0]
			out.Message, out.Extensions = f.Message, map[string]any{"code": string(f.Code)}
			if len(f.Field) > 0 {
				out.Extensions["field"] = f.Field
			}
			return out
		}
		if own != nil && own.Unwrap() == nil {
			// The executor's own words about the request itself: they name what
			// the schema says and nothing of the inside.
			if own.Extensions["code"] == nil {
				own.Extensions = map[string]any{"code": string(fault.CodeBadRequest)}
			}
			return own
		}
		if !errors.Is(err, context.Canceled) {
			logger.LogAttrs(context.WithoutCancel(ctx), slog.LevelError, "operation failed",
				slog.String("requestId", requestID(ctx)), slog.String("path", out.Path.String()), slog.Any("error", err))
		}
		out.Message, out.Extensions = masked, map[string]any{"code": string(fault.CodeInternal)}
		return out
	}
}
