package files

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"tallyard/domain/fault"
	"tallyard/graph/transport"
)

const masked = "Something went wrong on our side. Give the request id to whoever runs this."

// statuses is the one table from faults to HTTP statuses.
var statuses = map[fault.Kind]int{
	fault.Internal:        http.StatusInternalServerError,
	fault.Invalid:         http.StatusBadRequest,
	fault.Forbidden:       http.StatusForbidden,
	fault.NotFound:        http.StatusNotFound,
	fault.Conflict:        http.StatusConflict,
	fault.State:           http.StatusConflict,
	fault.Quota:           http.StatusInsufficientStorage,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.Limit:           http.StatusTooManyRequests,
	fault.Timeout:         http.StatusGatewayTimeout,
	fault.Stale:           http.StatusServiceUnavailable,
	fault.Unavailable:     http.StatusServiceUnavailable,
}

// statusError is a fault of HTTP itself, whose status the table doesn't give.
type statusError struct {
	status int
	fault  *fault.Fault
}

func (e *statusError) Error() string { return e.fault.Error() }

func (e *statusError) Unwrap() error { return e.fault }

func badRequest(status int, message string) error {
	return &statusError{status: status, fault: fault.New(fault.Invalid, fault.CodeBadRequest, message)}
}

// headerUploadOffset tells at which byte an upload goes on.
const headerUploadOffset = "Upload-Offset"

// fail answers with an error: faults as they are, anything else masked and logged.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	id := transport.RequestInfoFrom(r.Context()).RequestID
	f, status := shown(err)
	if f.Kind == fault.Internal && r.Context().Err() == nil { // otherwise the client left
		h.cfg.Logger.LogAttrs(r.Context(), slog.LevelError, "serving a file failed",
			slog.String("requestId", id), slog.String("method", r.Method), slog.Any("error", err))
	}
	header := w.Header()
	for _, name := range []string{"Content-Disposition", "Content-Length", "ETag", "Last-Modified", "Accept-Ranges", "Repr-Digest"} {
		header.Del(name) // of the file that isn't sent
	}
	if at := f.Details[detailUploadOffset]; at != "" {
		header.Set(headerUploadOffset, at)
	}
	switch status {
	case http.StatusUnauthorized:
		header.Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		header.Set("Retry-After", "1")
	}
	answer(w, r, status, map[string]any{"error": map[string]string{
		"code": string(f.Code), "message": f.Message, "requestId": id,
	}})
}

// detailUploadOffset is the detail by which a store says where an upload goes on.
const detailUploadOffset = "uploadOffset"

func shown(err error) (*fault.Fault, int) {
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.Timeout, fault.CodeTimeout, "The transfer took too long and was stopped; go on from where it was."), http.StatusGatewayTimeout
	}
	faults, ok := fault.All(err)
	if !ok || faults[0].Kind == fault.Internal {
		return fault.New(fault.Internal, fault.CodeInternal, masked), http.StatusInternalServerError
	}
	var of *statusError
	if errors.As(err, &of) {
		return faults[0], of.status
	}
	status, ok := statuses[faults[0].Kind]
	if !ok {
		status = http.StatusInternalServerError
	}
	return faults[0], status
}

func answer(w http.ResponseWriter, r *http.Request, status int, content any) {
	body, err := json.Marshal(content)
	if err != nil { // maps of strings and numbers: can't be
		status, body = http.StatusInternalServerError, nil
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that left doesn't read it
	}
}
