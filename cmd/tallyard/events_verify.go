package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/urfave/cli/v3"

	"tallyard/infra/eventstore/embedded"
)

func eventsVerifyCommand() *cli.Command {
	return &cli.Command{
		Name: "verify", Usage: "look for damage in the embedded event store, running or stopped, or in a backup",
		ArgsUsage: "[BACKUP]",
		Description: "Everything is read: the checksums of files and records, the log against the index\n" +
			"of the streams and the other way round, heads, what scavenging has removed. Of a\n" +
			"backup the files are compared with its manifest, too. Damage is exit status 1.",
		Flags: adminFlags(),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			var rep embedded.VerifyReport
			var err error
			if cmd.Args().Len() > 1 {
				return fmt.Errorf("give one backup, or none: %q", cmd.Args().Get(1))
			}
			if backup := cmd.Args().First(); backup != "" {
				rep, err = verifyBackup(ctx, cmd, backup)
			} else {
				err = eventsOf(ctx, cmd, http.MethodPost, "/verify", nil, &rep, func(dir string, tell func(howFar)) (err error) {
					rep, err = embedded.VerifyDir(ctx, dir, verifyTold(tell))
					return err
				})
			}
			if err != nil {
				return err
			}
			if cmd.Bool("json") {
				err = printJSON(rep)
			} else {
				printVerified(&rep)
			}
			if err == nil && rep.Damaged > 0 {
				err = fmt.Errorf("the event store is damaged in %d places; restore a backup", rep.Damaged)
			}
			return err
		},
	}
}

// verifyBackup compares a backup with its manifest and looks at the store in it.
func verifyBackup(ctx context.Context, cmd *cli.Command, backup string) (embedded.VerifyReport, error) {
	show := newShow(cmd)
	defer show.end()
	m, err := embedded.CheckBackup(ctx, backup, bytesTold(show.tell))
	if err != nil {
		return embedded.VerifyReport{}, err
	}
	rep, err := embedded.VerifyDir(ctx, filepath.Join(backup, "events"), verifyTold(show.tell))
	if err == nil && rep.Damaged == 0 && rep.Events != m.Events {
		err = fmt.Errorf("the backup holds %d events, where its manifest says %d", rep.Events, m.Events)
	}
	return rep, err
}

func printVerified(rep *embedded.VerifyReport) {
	for _, d := range rep.Damage {
		fmt.Printf("damaged: %s: %s\n", d.Where, d.What)
	}
	if n := rep.Damaged - uint64(len(rep.Damage)); n > 0 {
		fmt.Printf("and %d more\n", n)
	}
	fmt.Printf("events    %d, %s; %d more were scavenged\nstreams   %d\nfiles     %d\n", rep.Events, size(rep.Bytes), rep.Removed, rep.Streams, rep.Files)
	if rep.Damaged == 0 {
		fmt.Println("No damage was found.")
	}
}
