package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/urfave/cli/v3"

	"tallyard/infra/eventstore/embedded"
)

func eventsScavengeCommand() *cli.Command {
	return &cli.Command{
		Name: "scavenge", Usage: "remove from the embedded event store, running or stopped, what nobody can read any more",
		Description: "Gone are events of deleted streams, and what $maxAge, $maxCount and $tb hide. Streams\n" +
			"that say nothing of the kind lose nothing. Afterwards the bytes are in no file of the\n" +
			"store; backups keep theirs. What was cut off goes on where it was.",
		Flags: adminFlags(),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			var out embedded.Scavenged
			err := eventsOf(ctx, cmd, http.MethodPost, "/scavenge", nil, &out, func(dir string, tell func(howFar)) (err error) {
				out, err = embedded.ScavengeDir(ctx, dir, scavengeTold(tell))
				return err
			})
			if err != nil {
				return err
			}
			if cmd.Bool("json") {
				return printJSON(out)
			}
			printScavenged(&out)
			return nil
		},
	}
}

func (a eventsAdmin) scavenge(w http.ResponseWriter, r *http.Request) {
	a.answer(w, r, func(ctx context.Context, tell func(howFar)) (any, error) {
		return a.server.Scavenge(ctx, scavengeTold(tell))
	})
}

func scavengeTold(tell func(howFar)) func(embedded.ScavengeProgress) {
	return func(p embedded.ScavengeProgress) { tell(howFar{Step: p.Step, Done: p.Streams}) }
}

func printScavenged(out *embedded.Scavenged) {
	fmt.Printf("streams   %d looked at\nremoved   %d events, %s\nfiles     %s before, %s now\ntook      %v\n",
		out.Streams, out.Removed, size(out.RemovedBytes), size(out.BytesBefore), size(out.BytesAfter), out.Took.Round(time.Millisecond))
	if out.Resumed {
		fmt.Println("It went on with a scavenge that was cut off, which is counted here, too.")
	}
	if out.Lingering {
		fmt.Println("Some files with removed events are still read; they go when that ends.")
	}
}
