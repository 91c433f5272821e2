package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tallyard/domain/fault"
)

// serveHTTP answers one POST or GET.
func (h *Handler) serveHTTP(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	media, acceptable := negotiate(r.Header.Values("Accept"))
	switch r.Method {
	case http.MethodOptions:
		w.Header().Set("Allow", "GET, POST, OPTIONS")
		w.WriteHeader(http.StatusNoContent)
		return
	case http.MethodGet, http.MethodPost:
	default:
		h.writeRefusal(ctx, w, media, refuse(reasonMethod, fault.CodeBadRequest, "Only GET and POST are served here.").with("Allow", "GET, POST, OPTIONS"))
		return
	}
	response, refused := h.answer(ctx, w, r, acceptable)
	if refused != nil {
		h.writeRefusal(ctx, w, media, refused)
		return
	}
	if ctx.Err() != nil {
		return // nobody is there to read it
	}
	h.write(w, media, http.StatusOK, response)
}

// answer reads, prepares and runs one request.
func (h *Handler) answer(ctx context.Context, w http.ResponseWriter, r *http.Request, acceptable bool) (*graphql.Response, *refusal) {
	if !acceptable {
		return nil, refuse(reasonAccept, fault.CodeBadRequest, "Answers are "+mediaGraphQL+" or "+mediaJSON+".")
	}
	get := r.Method == http.MethodGet
	if !get && (!acceptableBody(r.Header.Get("Content-Type")) || r.Header.Get("Content-Encoding") != "") {
		return nil, refuse(reasonMediaType, fault.CodeBadRequest, "The body must be "+mediaJSON+" in UTF-8, not compressed.")
	}
	// For all of it; an operation has its own deadline besides.
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Limits.BodyTimeout+h.cfg.Limits.OperationTimeout)
	defer cancel()
	ctx, refused := h.authenticate(ctx, r.Header.Get("Authorization"))
	if refused != nil {
		return nil, refused
	}
	var p params
	if get {
		p, refused = h.readGet(r)
	} else {
		p, refused = h.readPost(w, r)
	}
	if refused != nil {
		return nil, refused
	}
	prep, refused := h.prepare(p)
	if refused != nil {
		return nil, refused
	}
	switch {
	case prep.op.Operation == ast.Subscription:
		return nil, refuse(reasonSubscription, fault.CodeBadRequest, "Subscriptions are served over WebSocket, with the subprotocol graphql-transport-ws.")
	case prep.op.Operation == ast.Mutation && get:
		return nil, refuse(reasonMutationByGet, fault.CodeBadRequest, "Mutations must be sent by POST.").with("Allow", "POST")
	}
	return h.runOnce(ctx, prep)
}

// authenticate puts the actor into the context.
func (h *Handler) authenticate(ctx context.Context, header string) (context.Context, *refusal) {
	token, ok := bearerToken(header)
	if !ok {
		return nil, refuse(reasonByCode, fault.CodeUnauthenticated, "The Authorization header must be: Bearer, a space, and a token.").
			with("WWW-Authenticate", `Bearer error="invalid_request"`)
	}
	actor, err := h.cfg.Authenticator.Authenticate(ctx, token)
	if err != nil {
		r := &refusal{reason: reasonByCode, errors: gqlerror.List{h.present(ctx, err)}}
		if codeOf(r.errors[0]) == fault.CodeUnauthenticated {
			r.with("WWW-Authenticate", "Bearer")
		}
		return nil, r
	}
	return actor, nil
}

// runOnce runs a query or a mutation.
func (h *Handler) runOnce(ctx context.Context, p *prepared) (*graphql.Response, *refusal) {
	if p.op.Operation == ast.Mutation {
		// Accepted is accepted: the command runs to its end, whether or not
		// somebody waits for the answer.
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Limits.OperationTimeout)
	defer cancel()
	ctx = withOperation(ctx, &operation{cancel: cancel})
	opCtx, refused := h.operationContext(ctx, p)
	if refused != nil {
		return nil, refused
	}
	defer h.count(p.op.Operation)()
	return h.dispatch(ctx, opCtx), nil
}

// dispatch runs an operation that has one answer. Panics of resolvers are
// caught nearer to them; this one is for the rest.
func (h *Handler) dispatch(ctx context.Context, opCtx *graphql.OperationContext) (response *graphql.Response) {
	defer func() {
		if v := recover(); v != nil {
			response = &graphql.Response{Errors: gqlerror.List{h.present(ctx, h.panicked(ctx, v))}}
		}
	}()
	responses, inner := h.exec.DispatchOperation(ctx, opCtx)
	if response = responses(inner); response == nil {
		// The executor gives no answer once the context has ended.
		return &graphql.Response{Errors: gqlerror.List{h.present(ctx, context.DeadlineExceeded)}}
	}
	return response
}

// count counts an operation as started and running; the result ends it.
func (h *Handler) count(kind ast.Operation) (done func()) {
	switch kind {
	case ast.Mutation:
		h.metrics.mutations.Add(1)
	case ast.Subscription:
		h.metrics.subscriptions.Add(1)
	default:
		h.metrics.queries.Add(1)
	}
	h.metrics.running.Add(1)
	return func() { h.metrics.running.Add(-1) }
}

func (h *Handler) writeRefusal(ctx context.Context, w http.ResponseWriter, media string, r *refusal) {
	h.metrics.refused.Add(1)
	for name, values := range r.header {
		w.Header()[name] = values
	}
	h.write(w, media, r.status(media), &graphql.Response{Errors: h.finishAll(ctx, r.errors)})
}

// slowestReader is how many bytes of a long answer a client must read in a
// second, on the average.
const slowestReader = 128 << 10

// write sends an answer, within the time that a client is given to read it: a
// long answer has more.
func (h *Handler) write(w http.ResponseWriter, media string, status int, response *graphql.Response) {
	var body bytes.Buffer
	h.encode(&body, response)
	header := w.Header()
	header.Set("Content-Type", media+"; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	control := http.NewResponseController(w)
	long := time.Duration(body.Len()) * time.Second / slowestReader
	_ = control.SetWriteDeadline(time.Now().Add(h.cfg.Limits.WriteTimeout + long))
	w.WriteHeader(status)
	if _, err := w.Write(body.Bytes()); err != nil {
		return // the client has left; there is nobody to tell
	}
	_ = control.Flush()
	_ = control.SetWriteDeadline(time.Time{}) // the connection may be used again
}

// encode writes a response without a data member where nothing ran, and
// without going over the data again.
func (h *Handler) encode(b *bytes.Buffer, response *graphql.Response) {
	b.Grow(len(response.Data) + 64)
	separator := byte('{')
	member := func(name string, value []byte) {
		b.WriteByte(separator)
		separator = ','
		b.WriteString(`"` + name + `":`)
		b.Write(value)
	}
	if n := min(len(response.Errors), h.cfg.Limits.Errors); n > 0 {
		member("errors", marshal(response.Errors[:n]))
	}
	if response.Data != nil {
		member("data", response.Data)
	}
	if len(response.Extensions) > 0 {
		member("extensions", marshal(response.Extensions))
	}
	if separator == '{' {
		b.WriteByte('{')
	}
	b.WriteByte('}')
}

// marshal encodes errors and extensions, which are made of what can be encoded.
func marshal(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return out
}
