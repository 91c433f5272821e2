package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
)

// answers tells whether somebody listens at a unix socket.
func answers(ctx context.Context, socket string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was said
	return true
}

// eventsOf does an operation on the event store that the flags speak of: by the
// program that runs on it, or with nobody there on the directory itself. It
// reads the result into the value.
func eventsOf(ctx context.Context, cmd *cli.Command, method, path string, body, into any, onDir func(dir string, tell func(howFar)) error) error {
	show := newShow(cmd)
	defer show.end()
	if socket := adminSocketOf(cmd); cmd.IsSet("admin-socket") || answers(ctx, socket) {
		return askEvents(ctx, socket, method, path, body, into, show.tell)
	}
	return onDir(eventsDir(cmd.String("data-dir")), show.tell)
}

// eventsDir is where a data directory has its event store.
func eventsDir(dataDir string) string { return filepath.Join(dataDir, "events") }

// askEvents asks a running program for a long operation.
func askEvents(ctx context.Context, socket, method, path string, body, into any, tell func(howFar)) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://tallyard/events"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	resp, err := adminClient(socket).Do(req)
	if err != nil {
		return fmt.Errorf("no running program answers at %s: %w", socket, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		return errors.New(strings.TrimSpace(string(text)))
	}
	for lines := json.NewDecoder(resp.Body); ; {
		var m eventsLine
		err := lines.Decode(&m)
		switch {
		case err != nil:
			return fmt.Errorf("the program ended before it was done: %w", err)
		case m.Progress != nil:
			tell(*m.Progress)
		case m.Error != "":
			return errors.New(m.Error)
		default:
			return json.Unmarshal(m.Result, into)
		}
	}
}

// show tells people on standard error how far an operation is: a line that is
// written over on a terminal, a line now and then elsewhere, nothing with --json.
type show struct {
	quiet    bool
	terminal bool
	step     string
	told     time.Time
}

func newShow(cmd *cli.Command) *show {
	info, err := os.Stderr.Stat()
	return &show{quiet: cmd.Bool("json"), terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

func (s *show) tell(p howFar) {
	every := 10 * time.Second
	if s.terminal {
		every = 200 * time.Millisecond
	}
	now := time.Now()
	if s.quiet || now.Sub(s.told) < every && p.Step == s.step {
		return
	}
	if s.told.IsZero() && !s.terminal {
		s.told, s.step = now, p.Step // what is quick needs no line
		return
	}
	s.told, s.step = now, p.Step
	text := fmt.Sprintf("%s: %d", p.Step, p.Done)
	if p.Total > 0 {
		text = fmt.Sprintf("%s: %d of %d (%d %%)", p.Step, p.Done, p.Total, 100*p.Done/p.Total)
	}
	if s.terminal {
		fmt.Fprintf(os.Stderr, "\r\x1b[K%s", text)
		return
	}
	fmt.Fprintln(os.Stderr, text)
}

func (s *show) end() {
	if s.terminal && !s.told.IsZero() {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}

// printJSON prints a result for programs.
func printJSON(v any) error {
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// size writes a number of bytes for people.
func size(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for ; f >= 1024 && i < len(units)-1; i++ {
		f /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}
