package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v3"

	"tallyard/infra/eventstore/embedded"
)

func eventsStatsCommand() *cli.Command {
	return &cli.Command{
		Name: "stats", Usage: "figures about the embedded event store, running or stopped",
		Flags: adminFlags(
			&cli.IntFlag{Name: "top", Value: 10, Usage: "how many of the largest streams and categories to name"},
			&cli.DurationFlag{Name: "limit", Value: 10 * time.Second, Usage: "how long streams may be counted; what is not counted by then is left out, and said"},
		),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			top, limit := cmd.Int("top"), cmd.Duration("limit")
			if top < 0 || top > 10000 || limit < 0 {
				return fmt.Errorf("--top %d --limit %v: give up to 10000 streams and a time that is not negative", top, limit)
			}
			var st embedded.Stats
			path := "/stats?limit=" + limit.String() + "&top=" + strconv.Itoa(top)
			err := eventsOf(ctx, cmd, http.MethodGet, path, nil, &st, func(dir string, _ func(howFar)) (err error) {
				st, err = embedded.StatsDir(ctx, dir, limit, top)
				return err
			})
			if err != nil {
				return err
			}
			if cmd.Bool("json") {
				return printJSON(st)
			}
			return printStats(os.Stdout, &st, top)
		},
	}
}

func printStats(out io.Writer, st *embedded.Stats, top int) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) } // Flush tells
	counted := ""
	if !st.Complete {
		counted = "  (the time was over: only the first streams by name were counted; give more with --limit)"
	}
	line("store\t%s", st.Store)
	line("events\t%d%s", st.Events, counted)
	line("streams\t%d%s", st.Streams, counted)
	if st.Last > 0 {
		line("positions\t%d to %d", st.First, st.Last)
		line("oldest event\t%s", st.Oldest.Format(time.RFC3339))
		line("newest event\t%s", st.Newest.Format(time.RFC3339))
	}
	line("on disk\t%s, of it write-ahead log %s", size(st.Bytes), size(st.LogBytes))
	line("compaction debt\t%s", size(st.Debt))
	line("disk\t%s free of %s", size(st.DiskFree), size(st.DiskSize))
	for _, l := range st.Levels {
		line("level %d\t%d files, %s", l.Level, l.Files, size(uint64(max(l.Bytes, 0))))
	}
	table := func(title string, groups []embedded.Group) {
		if len(groups) == 0 || top == 0 {
			return
		}
		line("\n%s\tevents\tstreams", title)
		for _, g := range groups[:min(len(groups), top)] {
			line("%q\t%d\t%d", g.Name, g.Events, g.Streams)
		}
		if n := len(groups) - top; n > 0 {
			line("and %d more", n)
		}
	}
	table("category", st.Categories)
	table("largest stream", st.Largest)
	return w.Flush()
}
