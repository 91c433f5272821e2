package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v3"

	"tallyard/infra/eventstore/embedded"
)

func eventsBackupCommand() *cli.Command {
	return &cli.Command{
		Name: "backup", Usage: "write the embedded event store, running or stopped, into a new directory",
		ArgsUsage: "DIR",
		Description: "The backup holds the log up to one moment and is there completely or not at all.\n" +
			"In one file system it shares unchanging files with the store (hard links): quick\n" +
			"and small, but what damages the one damages the other. Carry it elsewhere, or --copy.",
		Flags: adminFlags(&cli.BoolFlag{Name: "copy", Usage: "copy all files, also where they could be shared"}),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			if cmd.Args().Len() != 1 {
				return errors.New("give the directory to make: tallyard events backup DIR")
			}
			dir, err := filepath.Abs(cmd.Args().First())
			if err != nil {
				return err
			}
			var m embedded.Manifest
			in := backupInput{Dir: dir, Copy: cmd.Bool("copy")}
			err = eventsOf(ctx, cmd, http.MethodPost, "/backup", in, &m, func(events string, tell func(howFar)) (err error) {
				m, err = embedded.BackupDir(ctx, events, dir, embedded.BackupOptions{Copy: in.Copy, Report: bytesTold(tell)})
				return err
			})
			if err != nil {
				return err
			}
			if cmd.Bool("json") {
				return printJSON(m)
			}
			fmt.Printf("Backup %s\n%s", dir, manifestText(&m))
			return nil
		},
	}
}

// manifestText says what a backup holds.
func manifestText(m *embedded.Manifest) string {
	return fmt.Sprintf("store     %s\nevents    %d, up to position %d\ntaken     %s\nfiles     %d, %s\n",
		m.Store, m.Events, m.LastPosition, m.Taken.Format(time.RFC3339), len(m.Files), size(uint64(max(m.Bytes, 0))))
}

func eventsRestoreCommand() *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "make the event store of a data directory out of a backup, with the program stopped",
		ArgsUsage: "BACKUP",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "data-dir", Value: defaultDataDir(), Sources: env("data-dir"), Usage: "data directory whose event store is restored"},
			&cli.BoolFlag{Name: "replace", Usage: "take the place of the event store that is there, which is moved aside"},
			&cli.BoolFlag{Name: "yes", Usage: "really: what --replace would do is only said otherwise"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		},
		Action: func(ctx context.Context, cmd *cli.Command) error {
			if cmd.Args().Len() != 1 {
				return errors.New("give the backup: tallyard events restore BACKUP --data-dir DIR")
			}
			return restore(ctx, cmd, cmd.Args().First())
		},
	}
}

func restore(ctx context.Context, cmd *cli.Command, backup string) error {
	dir := eventsDir(cmd.String("data-dir"))
	if cmd.Bool("replace") && !cmd.Bool("yes") {
		m, err := embedded.ReadManifest(backup)
		if err != nil {
			return err
		}
		return fmt.Errorf("this would move the event store at %s aside and put there store %s with %d events, taken %s; say --yes as well to do it",
			dir, m.Store, m.Events, m.Taken.Format(time.RFC3339))
	}
	// As a program makes it: the user that Postgres runs as passes through.
	if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil { //nolint:gosec // G301: see above
		return err
	}
	show := newShow(cmd)
	r, err := embedded.RestoreDir(ctx, backup, dir, cmd.Bool("replace"), bytesTold(show.tell))
	show.end()
	if errors.Is(err, embedded.ErrOccupied) {
		return fmt.Errorf("%w; restore into another --data-dir, or say --replace to move it aside", err)
	}
	if err != nil {
		return err
	}
	if cmd.Bool("json") {
		return printJSON(r)
	}
	fmt.Printf("Restored %s\n%s", dir, manifestText(&r.Manifest))
	if r.Aside != "" {
		fmt.Printf("What was there lies at %s\n", r.Aside)
	}
	fmt.Print("If read models are there that have seen more than this, the program refuses to start on them;\n" +
		"tallyard projections rebuild --accept-new-store builds them from what was restored.\n")
	return nil
}
