package transport

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tallyard/domain/fault"
)

// present turns an error of an operation into what the client sees. It is the
// executor's error presenter, too.
func (h *Handler) present(ctx context.Context, err error) *gqlerror.Error {
	if op := operationFrom(ctx); op != nil {
		var end *CloseError
		if errors.As(err, &end) {
			op.end(end)
		}
	}
	return h.finish(ctx, h.shown(ctx, err))
}

func (h *Handler) shown(ctx context.Context, err error) (out *gqlerror.Error) {
	defer func() {
		// Presenting is what follows a panic, so it must not be one itself.
		if v := recover(); v != nil {
			_ = h.panicked(ctx, v)
			out = maskedError()
		}
	}()
	var end *CloseError
	switch {
	case errors.As(err, &end):
		err = end.asFault()
	case errors.Is(err, context.DeadlineExceeded):
		err = fault.New(fault.Timeout, fault.CodeTimeout, "The operation took too long and was stopped.")
	}
	out = h.cfg.Present(ctx, err)
	if out == nil {
		out = maskedError()
	}
	if out.Path == nil {
		out.Path = graphql.GetPath(ctx)
	}
	return out
}

// finish makes a copy of an error fit to leave: with the request's id, of
// bounded length, without suggestions where these would tell the schema.
func (h *Handler) finish(ctx context.Context, in *gqlerror.Error) *gqlerror.Error {
	out := *in
	out.Extensions = make(map[string]any, len(in.Extensions)+2)
	for k, v := range in.Extensions {
		out.Extensions[k] = v
	}
	delete(out.Extensions, "file")
	if codeOf(&out) == "" {
		out.Extensions["code"] = string(fault.CodeInternal)
	}
	if id := RequestInfoFrom(ctx).RequestID; id != "" {
		out.Extensions["requestId"] = id
	}
	if !h.cfg.Introspection {
		if i := strings.Index(out.Message, "Did you mean"); i >= 0 {
			out.Message = strings.TrimSpace(out.Message[:i])
		}
	}
	out.Message = shorten(out.Message, 400)
	return &out
}

func (h *Handler) finishAll(ctx context.Context, list gqlerror.List) gqlerror.List {
	list = list[:min(len(list), h.cfg.Limits.Errors)]
	out := make(gqlerror.List, len(list))
	for i, e := range list {
		out[i] = h.finish(ctx, e)
	}
	return out
}

// panicked counts and logs a panic, once, and returns what may be shown of it.
func (h *Handler) panicked(ctx context.Context, value any) error {
	h.metrics.panics.Add(1)
	info := RequestInfoFrom(ctx)
	h.cfg.Logger.LogAttrs(context.WithoutCancel(ctx), slog.LevelError, "an operation panicked",
		slog.String("requestId", info.RequestID), slog.String("trace", info.Trace), slog.Any("panic", value), slog.String("stack", string(debug.Stack())))
	return fault.New(fault.Internal, fault.CodeInternal, maskedMessage)
}

const maskedMessage = "Something went wrong on our side. Give the request id to whoever runs this."

func maskedError() *gqlerror.Error {
	return coded(fault.CodeInternal, maskedMessage)
}

// presentDefault shows faults, and the executor's own errors that carry a
// code, and masks the rest.
func presentDefault(_ context.Context, err error) *gqlerror.Error {
	out := &gqlerror.Error{}
	var own *gqlerror.Error
	if errors.As(err, &own) {
		out.Path, out.Locations = own.Path, own.Locations
	}
	if list, ok := fault.All(err); ok {
		out.Message = list[0].Message
		out.Extensions = map[string]any{"code": string(list[0].Code)}
		return out
	}
	if own != nil && codeOf(own) != "" {
		return own
	}
	out.Message, out.Extensions = maskedMessage, map[string]any{"code": string(fault.CodeInternal)}
	return out
}

// shorten cuts a text to a number of bytes, at a whole character.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}
