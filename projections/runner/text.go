package runner

import (
	"fmt"
	"sort"
	"strings"
	"text/tabwriter"
	"time"
)

// table writes aligned columns.
func table(b *strings.Builder, rows func(line func(format string, args ...any))) {
	w := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	rows(func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) })
	_ = w.Flush() // a strings.Builder takes everything
}

// Text implements Texter.
func (s Status) Text() string {
	var b strings.Builder
	table(&b, func(line func(string, ...any)) {
		line("GENERATION\tSTATE\tDONE\tDIGEST\tCREATED")
		for _, g := range s.Generations {
			digest := g.Digest[:min(12, len(g.Digest))]
			if !g.Ours {
				digest += " (another program's)"
			}
			line("%d\t%s\t%.1f%%\t%s\t%s", g.ID, g.State, g.Percent, digest, g.CreatedAt.UTC().Format(time.RFC3339))
		}
	})
	b.WriteString("\n")
	table(&b, func(line func(string, ...any)) {
		line("PROJECTION\tPOSITION\tBEHIND\tAGE\tPARKED\tSTATE")
		for _, p := range s.Projections {
			state := "running"
			if p.Halted != "" {
				state = "HALTED: " + p.Halted
			}
			line("%s\t%d\t%s\t%.1fs\t%d\t%s", p.Name, p.Position, p.Lag.count(), p.Lag.Seconds, p.Parked, state)
		}
	})
	if s.Trouble != "" {
		fmt.Fprintf(&b, "\nNothing moves now: %s\n", s.Trouble)
	}
	if len(s.Parked) > 0 {
		b.WriteString("\n")
		table(&b, func(line func(string, ...any)) {
			line("PARKED STREAM\tPROJECTION\tREVISION\tEVENT\tTRIES\tERROR")
			for _, p := range s.Parked {
				line("%s\t%s\t%d\t%s\t%d\t%s", p.Stream, p.Projection, p.Revision, p.EventType, p.Attempts, p.Error)
			}
		})
	}
	for _, r := range s.Requests {
		fmt.Fprintf(&b, "\n%s asked for at %s is not done yet\n", r.Kind, r.RequestedAt.UTC().Format(time.RFC3339))
	}
	return b.String()
}

func (l Lag) count() string {
	if l.More {
		return fmt.Sprintf("more than %d", l.Events)
	}
	return fmt.Sprint(l.Events)
}

// Text implements Texter.
func (r RebuildReport) Text() string {
	var b strings.Builder
	if !r.Events {
		fmt.Fprintf(&b, "Generation %d is live; the log has no events.\n", r.Generation)
	} else {
		fmt.Fprintf(&b, "Generation %d is live at position %d.\n", r.Generation, r.Position)
	}
	if r.Halted > 0 || r.Parked > 0 {
		fmt.Fprintf(&b, "Projections halted: %d, streams parked: %d; see `tallyard projections status`.\n", r.Halted, r.Parked)
	}
	return b.String()
}

// Text implements Texter.
func (r VerifyReport) Text() string {
	var b strings.Builder
	table(&b, func(line func(string, ...any)) {
		line("TABLE\tLIVE\tREBUILT\tMISSING\tEXTRA\tSAMPLES")
		for _, t := range r.Tables {
			var samples []string
			for _, k := range t.MissingSamples {
				samples = append(samples, "missing "+k)
			}
			for _, k := range t.ExtraSamples {
				samples = append(samples, "extra "+k)
			}
			line("%s\t%d\t%d\t%d\t%d\t%s", t.Table, t.Live, t.Rebuilt, t.Missing, t.Extra, strings.Join(samples, ", "))
		}
	})
	verdict := "EQUAL"
	if !r.Equal {
		verdict = "DIFFERENT"
	}
	fmt.Fprintf(&b, "%s at position %d\n", verdict, r.Position)
	names := make([]string, 0, len(r.Halted)+len(r.Parked))
	for name, reason := range r.Halted {
		names = append(names, fmt.Sprintf("%s is halted: %s\n", name, reason))
	}
	for name, n := range r.Parked {
		names = append(names, fmt.Sprintf("%s has %d parked streams\n", name, n))
	}
	sort.Strings(names)
	b.WriteString(strings.Join(names, ""))
	return b.String()
}

// Text implements Texter.
func (r ReplayReport) Text() string {
	var b strings.Builder
	table(&b, func(line func(string, ...any)) {
		line("STREAM\tPROJECTION\tEVENTS\tOUTCOME")
		for _, s := range r.Streams {
			outcome := "replayed"
			if s.Error != "" {
				outcome = "still parked: " + s.Error
			}
			line("%s\t%s\t%d\t%s", s.Stream, s.Projection, s.Events, outcome)
		}
	})
	fmt.Fprintf(&b, "%d streams\n", len(r.Streams))
	return b.String()
}
