package npm_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tallyard/graph/transport"
	"tallyard/graph/transport/transporttest"
	"tallyard/test/npm"
)

// start serves the test schema and installs the clients.
func start(t *testing.T) (ctx context.Context, dir, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	t.Cleanup(cancel)
	dir, err := npm.Install(ctx)
	if errors.Is(err, npm.ErrNoNode) && !npm.InCI() {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	resolvers := &transporttest.Resolvers{End: func(ctx context.Context, code int) {
		transport.End(ctx, &transport.CloseError{Code: code, Reason: "cursor-17"})
	}}
	h, err := transport.New(transport.Config{
		Schema: resolvers.Schema(), Authenticator: &transporttest.Tokens{}, Introspection: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.Close()
		if err := h.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return ctx, dir, server.URL + "/graphql"
}

// G1
func TestAllAuditsOfGraphQLOverHTTPPass(t *testing.T) {
	ctx, dir, url := start(t)
	out, err := npm.Run(ctx, dir, "audit-http.mjs", url, "good")
	if err != nil || out != "61 passed, 0 failed" {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTheGraphQLWSClientSubscribes(t *testing.T) {
	ctx, dir, url := start(t)
	for _, c := range []struct {
		name, token, document, count, want string
		fails                              bool
	}{
		{"to the end", "good", "subscription { count(to: 3) }", "0", `{"data":{"count":1}}` + "\n" + `{"data":{"count":2}}` + "\n" + `{"data":{"count":3}}`, false},
		{"for a while", "good", "subscription { forever }", "2", `{"data":{"forever":1}}` + "\n" + `{"data":{"forever":2}}`, false},
		{"a query", "good", "{ hello }", "0", `{"data":{"hello":"Hello"}}`, false},
		{"a bad token", "bad", "{ hello }", "0", `{"closed":4403,"reason":"Forbidden"}`, true},
		{"closed by the server", "good", "subscription { closes(code: 4499) }", "0", `{"closed":4499,"reason":"cursor-17"}`, true},
	} {
		out, err := npm.Run(ctx, dir, "ws-client.mjs", url, c.token, c.document, c.count)
		if (err != nil) != c.fails || !strings.HasSuffix(out, c.want) {
			t.Errorf("%s: %v\n%s", c.name, err, out)
		}
	}
	out, err := npm.Run(ctx, dir, "ws-client.mjs", url, "good", "subscription { nothing }")
	if err == nil || !strings.HasPrefix(out, `{"errors":[{"message":"Cannot query field`) {
		t.Errorf("an error: %v\n%s", err, out)
	}
}
