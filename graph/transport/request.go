package transport

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"tallyard/domain/fault"
)

// announcedRoom is how much memory is taken for a body that is only announced.
const announcedRoom = 128 << 10

// readPost reads the body of a POST: all of it, in time, and not too much.
func (h *Handler) readPost(w http.ResponseWriter, r *http.Request) (params, *refusal) {
	limits := h.cfg.Limits
	tooLarge := refuse(reasonTooLarge, fault.CodeLimitExceeded, "The body is too large.")
	if r.ContentLength > limits.BodyBytes {
		return params{}, tooLarge.with("Connection", "close")
	}
	control := http.NewResponseController(w)
	// Not every writer can do this (a recorder in a test can't); the server's
	// own timeouts remain then.
	_ = control.SetReadDeadline(time.Now().Add(limits.BodyTimeout))
	var body bytes.Buffer
	if r.ContentLength > 0 {
		body.Grow(int(min(r.ContentLength, announcedRoom)) + bytes.MinRead)
	}
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, limits.BodyBytes))
	_ = control.SetReadDeadline(time.Time{})
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return params{}, tooLarge.with("Connection", "close")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return params{}, refuse(reasonSlowBody, fault.CodeTimeout, "The body did not arrive in time.").with("Connection", "close")
	case err != nil:
		return params{}, malformed("The body was cut.").with("Connection", "close")
	}
	return decodeParams(body.Bytes(), limits.Document)
}

// readGet reads the query string of a GET.
func (h *Handler) readGet(r *http.Request) (params, *refusal) {
	if int64(len(r.URL.RawQuery)) > h.cfg.Limits.BodyBytes {
		return params{}, refuse(reasonTooLarge, fault.CodeLimitExceeded, "The address is too long.")
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return params{}, malformed("The query string is not well formed.")
	}
	one := map[string]string{}
	for _, name := range []string{"query", "operationName", "variables", "extensions"} {
		if len(values[name]) > 1 {
			return params{}, malformed("%q comes more than once in the query string.", name)
		}
		one[name] = values.Get(name)
	}
	p := params{query: one["query"], operation: one["operationName"]}
	if p.query == "" {
		return params{}, malformed(`"query" is missing from the query string.`)
	}
	for name, into := range map[string]*map[string]any{"variables": &p.variables, "extensions": &p.extensions} {
		text := strings.TrimSpace(one[name])
		if text == "" || text == "null" {
			continue
		}
		if _, r := decodeObject([]byte(text), h.cfg.Limits.Document, `"`+name+`"`); r != nil {
			return params{}, r
		}
		if err := decodeNumbers([]byte(text), into); err != nil {
			return params{}, malformed("%q must be a JSON object.", name)
		}
	}
	return p, nil
}

// bearerToken reads the Authorization header's token; it is empty when there
// is none, and ok is false when the header is something else.
func bearerToken(header string) (token string, ok bool) {
	header = strings.TrimSpace(header)
	if header == "" {
		return "", true
	}
	scheme, token, found := strings.Cut(header, " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	token = strings.TrimSpace(token)
	return token, token != "" && len(token) <= 4096 && !strings.ContainsAny(token, " \t")
}
