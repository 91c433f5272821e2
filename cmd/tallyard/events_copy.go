package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"tallyard/infra/eventstore"
	"tallyard/infra/eventstore/embedded"
	"tallyard/infra/eventstore/transfer"
)

func eventsCopyCommand() *cli.Command {
	return &cli.Command{
		Name: "copy", Usage: "copy the whole history of an event store into another, and go on with a copy that was cut off",
		Description: "Each side is an address (esdb://…, esdb+discover://…, unix:/…) or a data directory, whose\n" +
			"embedded store is used, through its program where one runs. Addresses with passwords are\n" +
			"better given by TALLYARD_COPY_FROM and TALLYARD_COPY_TO, where other users don't see them.\n" +
			"The target must be empty, or hold what an earlier run of this copy has brought.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "from", Sources: env("copy-from"), Required: true, Usage: "the source: address or data directory"},
			&cli.StringFlag{Name: "to", Sources: env("copy-to"), Required: true, Usage: "the target: address or data directory"},
			&cli.StringFlag{Name: "map", Value: "tallyard-copy.map", Usage: "file that says which position became which; a run that goes on reads it"},
			&cli.UintFlag{Name: "map-every", Value: 1000, Usage: "how many events lie between two lines of it"},
			&cli.BoolFlag{Name: "compare", Value: true, Usage: "compare both stores event by event at the end, unless --compare=false"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		},
		Action: copyEvents,
	}
}

func copyEvents(ctx context.Context, cmd *cli.Command) (err error) {
	if cmd.Uint("map-every") == 0 {
		return errors.New("--map-every 0: give at least 1")
	}
	if samePlace(cmd.String("from"), cmd.String("to")) {
		return errors.New("--from and --to are the same event store; a copy needs another one")
	}
	from, err := openPlace(ctx, cmd.String("from"), false)
	if err != nil {
		return fmt.Errorf("--from %s: %w", shown(cmd.String("from")), err)
	}
	defer func() { err = errors.Join(err, from.close()) }()
	to, err := openPlace(ctx, cmd.String("to"), true)
	if err != nil {
		return fmt.Errorf("--to %s: %w", shown(cmd.String("to")), err)
	}
	defer func() { err = errors.Join(err, to.close()) }()
	show := newShow(cmd)
	rep, err := transfer.Run(ctx, transfer.Config{
		From: from.log, To: to.log, MapPath: cmd.String("map"), MapEvery: uint64(cmd.Uint("map-every")), Compare: cmd.Bool("compare"),
		Progress: func(p transfer.Progress) {
			show.tell(howFar{Step: p.Step, Done: uint64(p.Source), Total: uint64(p.End)})
		},
	})
	show.end()
	if err != nil {
		return fmt.Errorf("%w; %d events were copied by this run, the next one goes on behind them", err, rep.Copied)
	}
	if cmd.Bool("json") {
		return printJSON(rep)
	}
	printCopy(&rep, cmd.String("map"))
	return nil
}

func printCopy(rep *transfer.Report, mapPath string) {
	fmt.Printf("Copied %d events; %d were there already.\n", rep.Copied, rep.Found)
	if rep.Compared > 0 {
		fmt.Printf("Compared %d events: the target has each of them, in the same order.\n", rep.Compared)
	}
	if rep.Skipped > 0 {
		fmt.Printf("Left out %d events that belong to the source's server itself (streams \"$…\").\n", rep.Skipped)
	}
	if rep.Moved > 0 {
		fmt.Printf("%d streams count their revisions otherwise than before: their beginnings had been scavenged, or the target's server wrote metadata of its own.\n", rep.Moved)
	}
	if rep.Retyped > 0 {
		fmt.Printf("%d events had a content type that can't be sent; they are %s now.\n", rep.Retyped, eventstore.ContentBinary)
	}
	if rep.Last.Events > 0 {
		fmt.Printf("Position %d became %d; the others are in %s.\n", rep.Last.Source, rep.Last.Target, mapPath)
	}
}

// place is one side of a copy.
type place struct {
	log    *eventstore.Log
	server *embedded.Server // nil where somebody else serves
	temp   string
}

// openPlace opens an address or the embedded store of a data directory. What
// is made in a directory is made only where make is set.
func openPlace(ctx context.Context, text string, create bool) (_ *place, err error) {
	p := &place{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	address := text
	if !isAddress(text) {
		if address, err = p.serve(ctx, text, create); err != nil {
			return nil, err
		}
	}
	if p.log, err = eventstore.Open(ctx, eventstore.Config{Address: address}); err != nil {
		return nil, err
	}
	return p, nil
}

// serve finds the address of a data directory's store, and serves it where no
// program does.
func (p *place) serve(ctx context.Context, dataDir string, create bool) (address string, err error) {
	if dataDir, err = filepath.Abs(dataDir); err != nil {
		return "", err
	}
	if socket := filepath.Join(socketsOf(dataDir), "events.sock"); answers(ctx, socket) {
		return "unix:" + socket, nil
	}
	dir := eventsDir(dataDir)
	if _, err := os.Stat(dir); err != nil {
		if !create {
			return "", fmt.Errorf("there is no event store in this data directory: %w", err)
		}
		// As a program would make it: the user that Postgres runs as passes through.
		if err := os.MkdirAll(dataDir, 0o711); err != nil { //nolint:gosec // G301: see above
			return "", err
		}
	}
	if p.temp, err = os.MkdirTemp("", "tallyard-"); err != nil {
		return "", err
	}
	p.server, err = embedded.Open(ctx, embedded.Config{Dir: dir, Socket: filepath.Join(p.temp, "events.sock"), Logger: newLogger("text")})
	if err != nil {
		return "", err
	}
	return p.server.Address(), nil
}

func (p *place) close() (err error) {
	if p.log != nil {
		err = p.log.Close()
	}
	if p.server != nil {
		err = errors.Join(err, within(20*time.Second, p.server.Close))
	}
	if p.temp != "" {
		err = errors.Join(err, os.RemoveAll(p.temp))
	}
	return err
}

// samePlace tells whether two places are one event store, as far as their names say.
func samePlace(a, b string) bool {
	if isAddress(a) || isAddress(b) {
		return a == b
	}
	resolve := func(dir string) string {
		if resolved, err := filepath.EvalSymlinks(dir); err == nil {
			dir = resolved
		}
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
		return dir
	}
	return resolve(a) == resolve(b)
}

func isAddress(text string) bool {
	return strings.HasPrefix(text, "esdb://") || strings.HasPrefix(text, "esdb+discover://") || strings.HasPrefix(text, "unix:")
}

// shown is a place as it may be printed: without credentials and settings.
func shown(text string) string {
	if !isAddress(text) || strings.HasPrefix(text, "unix:") {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return "(an address that can't be read)"
	}
	return u.Scheme + "://" + u.Host
}
