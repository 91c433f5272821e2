package transport

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"

	"tallyard/domain/fault"
	"tallyard/graph/transport/guard"
)

// prepared is a request that is ready to run.
type prepared struct {
	params
	doc       *ast.QueryDocument
	op        *ast.OperationDefinition
	variables map[string]any // coerced
}

// prepare turns a request into something that can run, or says why not. The
// cheap refusals come first.
func (h *Handler) prepare(p params) (*prepared, *refusal) {
	doc, r := h.document(p.query)
	if r != nil {
		return nil, r
	}
	op := doc.Operations.ForName(p.operation)
	switch {
	case op == nil && p.operation == "":
		return nil, documentFault(`The document holds several operations: "operationName" must say which one.`)
	case op == nil:
		return nil, documentFault(`The document holds no operation with the name in "operationName".`)
	}
	variables, errs := coerceVariables(h.schema, op, p.variables, h.cfg.Limits.Errors)
	if len(errs) > 0 {
		return nil, &refusal{reason: reasonDocument, errors: errs}
	}
	if r := oneStream(op, variables); r != nil {
		return nil, r
	}
	return &prepared{params: p, doc: doc, op: op, variables: variables}, nil
}

func documentFault(message string) *refusal {
	return refuse(reasonDocument, fault.CodeBadRequest, message)
}

// document parses and validates a text, or finds it among those that passed before.
func (h *Handler) document(text string) (*ast.QueryDocument, *refusal) {
	if doc := h.documents.get(text); doc != nil {
		return doc, nil
	}
	limits := h.cfg.Limits.Document
	if g := guard.Scan(text, limits); g != nil {
		return nil, guardRefusal(g)
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, limits.Tokens+1)
	if err != nil {
		return nil, h.documentErrors(gqlerror.List{gqlerror.WrapIfUnwrapped(err)})
	}
	if len(doc.Operations) == 0 {
		return nil, documentFault("The document holds no operation.")
	}
	if g := guard.Document(doc, limits); g != nil {
		return nil, guardRefusal(g)
	}
	if errs := validate(h.schema, doc, h.rules, h.cfg.Limits.Errors); len(errs) > 0 {
		return nil, h.documentErrors(errs)
	}
	h.documents.add(text, doc)
	return doc, nil
}

func guardRefusal(g *guard.Refusal) *refusal {
	why, code := reasonLimit, fault.CodeLimitExceeded
	if g.Malformed {
		why, code = reasonDocument, fault.CodeBadRequest
	}
	r := refuse(why, code, g.Message)
	if g.Line > 0 {
		r.errors[0].Locations = []gqlerror.Location{{Line: g.Line, Column: g.Column}}
	}
	return r
}

// documentErrors gives the parser's and the validator's errors their code.
func (h *Handler) documentErrors(errs gqlerror.List) *refusal {
	out := make(gqlerror.List, 0, len(errs))
	for _, e := range errs {
		c := coded(fault.CodeBadRequest, e.Message)
		c.Locations = e.Locations
		out = append(out, c)
	}
	return &refusal{reason: reasonDocument, errors: out}
}

type documentKey struct{}

// contextCache hands the executor the document that was prepared for the
// operation, so that it never parses anything itself.
type contextCache struct{}

func (contextCache) Get(ctx context.Context, _ string) (*ast.QueryDocument, bool) {
	doc, ok := ctx.Value(documentKey{}).(*ast.QueryDocument)
	return doc, ok
}

func (contextCache) Add(context.Context, string, *ast.QueryDocument) {}

// operationContext asks the executor, and with it the extensions, to take the
// operation. An error refuses it before it runs.
func (h *Handler) operationContext(ctx context.Context, p *prepared) (_ *graphql.OperationContext, r *refusal) {
	ctx = graphql.StartOperationTrace(context.WithValue(ctx, documentKey{}, p.doc))
	defer func() {
		if v := recover(); v != nil {
			r = &refusal{reason: reasonByCode, errors: gqlerror.List{h.present(ctx, h.panicked(ctx, v))}}
		}
	}()
	opCtx, errs := h.exec.CreateOperationContext(ctx, &graphql.RawParams{
		Query: p.query, OperationName: p.op.Name, Variables: p.variables, Extensions: p.extensions,
	})
	if len(errs) > 0 {
		out := make(gqlerror.List, len(errs))
		for i, e := range errs {
			out[i] = h.present(ctx, e)
		}
		return nil, &refusal{reason: reasonByCode, errors: out}
	}
	opCtx.DisableIntrospection = !h.cfg.Introspection
	return opCtx, nil
}
