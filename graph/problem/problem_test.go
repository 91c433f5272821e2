package problem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

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
		"the read model is built":   {fmt.Errorf("list: %w", runner.ErrNotReady), fault.CodeUnavailable},
		"a fault is shown as it is": {fault.New(fault.Stale, fault.CodeStaleRead, "Ask again."), fault.CodeStaleRead},
		"the rest is masked":        {errors.New("SELECT secret FROM table"), fault.CodeInternal},
	} {
		out := present(t.Context(), c.err)
		if out.Extensions["code"] != string(c.code) || strings.Contains(out.Message, "secret") {
			t.Errorf("%s: %v %q, want %s", name, out.Extensions["code"], out.Message, c.code)
		}
	}
}
