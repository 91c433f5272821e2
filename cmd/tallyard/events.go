package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"tallyard/infra/eventstore/embedded"
)

// eventsCommand is what operators do with the event store itself.
func eventsCommand() *cli.Command {
	return &cli.Command{
		Name: "events", Usage: "the event store",
		Commands: []*cli.Command{
			eventsBackupCommand(),
			eventsRestoreCommand(),
			eventsVerifyCommand(),
			eventsScavengeCommand(),
			eventsStatsCommand(),
			eventsCopyCommand(),
			eventsUserCommand(),
		},
	}
}

func eventsUserCommand() *cli.Command {
	return &cli.Command{
		Name:      "user",
		Usage:     "read a password from standard input and print a line for the file of --eventstore-users",
		ArgsUsage: "NAME",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "groups", Usage: "groups, separated by commas; members of $admins may do everything, those of $ops run persistent subscriptions"},
		},
		Action: func(_ context.Context, cmd *cli.Command) error {
			if cmd.Args().Len() != 1 {
				return errors.New("give one name: tallyard events user NAME [--groups GROUPS]")
			}
			return printUser(os.Stdin, os.Stdout, cmd.Args().First(), cmd.String("groups"))
		},
	}
}

// printUser reads the first line of in as a password. The line that it prints
// is tried before, so that no file is spoiled by it.
func printUser(in io.Reader, out io.Writer, name, groups string) error {
	password, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the password: %w", err)
	}
	hash, err := embedded.HashPassword(strings.TrimRight(password, "\r\n"))
	if err != nil {
		return err
	}
	line := name + ":" + hash + ":" + groups
	if strings.ContainsAny(name+groups, ":\r\n") {
		return errors.New("neither a name nor a group may have a colon or a line break in it")
	}
	if _, err := embedded.ParseUsers(strings.NewReader(line)); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, line)
	return err
}
