package transport

import (
	"net/http"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"tallyard/domain/fault"
)

// reason says why a request was refused before it ran.
type reason int

const (
	reasonMethod reason = iota + 1
	reasonOrigin
	reasonAccept
	reasonMediaType
	reasonTooLarge
	reasonSlowBody
	reasonMalformed
	reasonLimit
	reasonDocument
	reasonMutationByGet
	reasonSubscription
	reasonStopping
	reasonByCode // the errors' codes decide, see statusByCode
)

// statuses is the one table from reasons to HTTP statuses. The second status
// is for clients that accept application/json only: they learned to expect 200
// whenever the document itself is at fault.
var statuses = map[reason]struct{ status, plainJSON int }{
	reasonMethod:        {http.StatusMethodNotAllowed, http.StatusMethodNotAllowed},
	reasonOrigin:        {http.StatusForbidden, http.StatusForbidden},
	reasonAccept:        {http.StatusNotAcceptable, http.StatusNotAcceptable},
	reasonMediaType:     {http.StatusUnsupportedMediaType, http.StatusUnsupportedMediaType},
	reasonTooLarge:      {http.StatusRequestEntityTooLarge, http.StatusRequestEntityTooLarge},
	reasonSlowBody:      {http.StatusRequestTimeout, http.StatusRequestTimeout},
	reasonMalformed:     {http.StatusBadRequest, http.StatusBadRequest},
	reasonLimit:         {http.StatusBadRequest, http.StatusBadRequest},
	reasonDocument:      {http.StatusBadRequest, http.StatusOK},
	reasonMutationByGet: {http.StatusMethodNotAllowed, http.StatusMethodNotAllowed},
	reasonSubscription:  {http.StatusBadRequest, http.StatusBadRequest},
	reasonStopping:      {http.StatusServiceUnavailable, http.StatusServiceUnavailable},
}

// statusByCode is for refusals of the Authenticator and of extensions of the
// executor. An operation that ran is always 200.
var statusByCode = map[fault.Code]int{
	fault.CodeUnauthenticated: http.StatusUnauthorized,
	fault.CodeForbidden:       http.StatusForbidden,
	fault.CodeBadRequest:      http.StatusBadRequest,
	fault.CodeLimitExceeded:   http.StatusTooManyRequests,
	fault.CodeUnavailable:     http.StatusServiceUnavailable,
	fault.CodeStaleRead:       http.StatusServiceUnavailable,
	fault.CodeTimeout:         http.StatusGatewayTimeout,
	fault.CodeInternal:        http.StatusInternalServerError,
}

// refusal is an answer without data.
type refusal struct {
	reason reason
	errors gqlerror.List
	header http.Header
}

// refuse makes a refusal with one error of the request's own.
func refuse(why reason, code fault.Code, message string) *refusal {
	return &refusal{reason: why, errors: gqlerror.List{coded(code, message)}}
}

// with adds a header to the refusal.
func (r *refusal) with(name, value string) *refusal {
	if r.header == nil {
		r.header = http.Header{}
	}
	r.header.Set(name, value)
	return r
}

// status looks the refusal up.
func (r *refusal) status(media string) int {
	if r.reason == reasonByCode {
		for _, e := range r.errors {
			if status, known := statusByCode[codeOf(e)]; known {
				return status
			}
		}
		return http.StatusBadRequest
	}
	row := statuses[r.reason]
	if media == mediaJSON {
		return row.plainJSON
	}
	return row.status
}

// coded makes an error with a code.
func coded(code fault.Code, message string) *gqlerror.Error {
	return &gqlerror.Error{Message: message, Extensions: map[string]any{"code": string(code)}}
}

// codeOf reads an error's code; it is empty when there is none.
func codeOf(e *gqlerror.Error) fault.Code {
	switch code := e.Extensions["code"].(type) {
	case string:
		return fault.Code(code)
	case fault.Code:
		return code
	}
	return ""
}
