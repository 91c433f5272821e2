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

// strict makes commands that take no arguments refuse them: one that is
// overlooked is most often a flag without its dashes.
func strict(cmd *cli.Command) *cli.Command {
	for _, c := range cmd.Commands {
		strict(c)
	}
	if act := cmd.Action; act != nil && cmd.ArgsUsage == "" {
		cmd.Action = func(ctx context.Context, cmd *cli.Command) error {
			if cmd.Args().Present() {
				return fmt.Errorf("%q is no setting; settings begin with --", cmd.Args().First())
			}
			return act(ctx, cmd)
		}
	}
	return cmd
}

func root() *cli.Command {
	return &cli.Command{
		Name:    "tallyard",
		Usage:   "the control plane of an AI cluster",
		Version: version,
		Commands: []*cli.Command{
			devCommand(),
			serveCommand(),
			strict(bootstrapCommand()),
			strict(projectionsCommand()), strict(quotaCommand()),
			strict(eventsCommand()),
			graphqlCommand(),
			uploadCommand(),
		},
		HideHelpCommand: true,
		ExitErrHandler:  func(context.Context, *cli.Command, error) {}, // main prints it, once
	}
}
