package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"
)

func uploadCommand() *cli.Command {
	return &cli.Command{
		Name:      "upload",
		Usage:     "put a file or a directory with everything in it into a storage space",
		ArgsUsage: "SOURCE SPACE/PATH",
		Description: "The space is home, or the id of one. For example:\n" +
			"tallyard upload ./digits home/digits",
		Flags: clientFlags(),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			if cmd.Args().Len() != 2 {
				return errors.New("give what to upload and where to: tallyard upload SOURCE SPACE/PATH")
			}
			c := client{url: strings.TrimRight(cmd.String("url"), "/"), token: cmd.String("token")}
			return c.uploadAll(ctx, cmd.Args().Get(0), cmd.Args().Get(1))
		},
	}
}

// uploadAll puts what lies at source to a place in a space, file by file.
func (c client) uploadAll(ctx context.Context, source, place string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return c.upload(ctx, source, place)
	}
	return filepath.WalkDir(source, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is no regular file; leave it out or replace it by one", name)
		}
		rel, err := filepath.Rel(source, name)
		if err != nil {
			return err
		}
		return c.upload(ctx, name, path.Join(place, filepath.ToSlash(rel)))
	})
}

func (c client) upload(ctx context.Context, name, place string) error {
	f, err := os.Open(name) //nolint:gosec // what the person named
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	parts := strings.Split(place, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, c.url+"/files/"+strings.Join(parts, "/"), f)
	if err != nil {
		return err
	}
	req.ContentLength = info.Size()
	c.sign(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%w; is the program running, and --url right?", err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 && len(text) == 0 {
		return fmt.Errorf("%s: the program answered %s; check the place, which is SPACE/PATH", place, resp.Status)
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s: %s", place, strings.TrimSpace(string(text)))
	}
	fmt.Printf("%s %d bytes\n", place, info.Size())
	return nil
}
