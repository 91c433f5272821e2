package problem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/projections/runner"
)

func TestPresenter(t *testing.T) {
	present := Presenter(slog.New(slog.DiscardHandler), func(context.Context) string { return "" })
	for name, c := range map[string]struct {
		err  error
		code fault.Code
	}{
		"the event store is away":   {fmt.Errorf("append to secret-stream: %w", es.ErrUnavailable), fault.CodeUnavailable},
		"the event store is full":   {fmt.Errorf("append to secret-stream: %w", es.ErrNoRoom), fault.CodeUnavailable},
		"the read model is built":   {fmt.Errorf("list: %w", runner.ErrNotReady), fault.CodeUnavailable},
		"Postgres was stopped":      {fmt.Errorf("list: %w", &pgconn.PgError{Code: "57P01", Message: "secret"}), fault.CodeUnavailable},
		"Postgres is gone":          {fmt.Errorf("list: %w", &net.OpError{Op: "write", Err: syscall.EPIPE}), fault.CodeUnavailable},
		"a statement is wrong":      {fmt.Errorf("list: %w", &pgconn.PgError{Code: "42601", Message: "secret"}), fault.CodeInternal},
		"a fault is shown as it is": {fault.New(fault.Stale, fault.CodeStaleRead, "Ask again."), fault.CodeStaleRead},
		"the rest is masked":        {errors.New("SELECT secret FROM table"), fault.CodeInternal},
	} {
		out := present(t.Context(), c.err)
		if out.Extensions["code"] != string(c.code) || strings.Contains(out.Message, "secret") {
			t.Errorf("%s: %v %q, want %s", name, out.Extensions["code"], out.Message, c.code)
		}
	}
}

// TestOutage: an entrance beside GraphQL answers an outage as one, and leaves
// every other error as it is.
func TestOutage(t *testing.T) {
	if err := Outage(fmt.Errorf("append: %w", es.ErrUnavailable)); !fault.Is(err, fault.CodeUnavailable) {
		t.Errorf("an outage: %v", err)
	}
	for _, err := range []error{nil, errors.New("a mistake of ours"), fault.New(fault.NotFound, fault.CodeNotFound, "It is gone.")} {
		if got := Outage(err); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
}
