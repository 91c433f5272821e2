// Command tallyard is the control plane of an AI cluster.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v3"
)

// version is set when the program is built.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	if err := root().Run(ctx, os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "tallyard:", explain(err))
		os.Exit(1)
	}
}

func root() *cli.Command {
	return &cli.Command{
		Name:    "tallyard",
		Usage:   "the control plane of an AI cluster",
		Version: version,
		Commands: []*cli.Command{
			devCommand(),
			serveCommand(),
			bootstrapCommand(),
			projectionsCommand(), quotaCommand(),
			eventsCommand(),
			graphqlCommand(),
			uploadCommand(),
		},
		HideHelpCommand: true,
		ExitErrHandler:  func(context.Context, *cli.Command, error) {}, // main prints it, once
	}
}
