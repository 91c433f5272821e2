// Package npm installs public clients of npm and runs them, and runs those of
// GraphQL against a server: the audits of graphql-http and the client of
// graphql-ws, both unmodified.
package npm

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed *.mjs package.json package-lock.json
var scripts embed.FS

// ErrNoNode tells that Node is missing. In CI that is a failure, elsewhere the
// tests skip.
var ErrNoNode = errors.New("node and npm are missing; on Debian: apt-get install nodejs npm (Node 20 or later)")

// InCI tells whether missing programs are a failure.
func InCI() bool { return os.Getenv("CI") == "true" }

// Install installs the scripts of this package, and what they need.
func Install(ctx context.Context) (string, error) { return InstallFrom(ctx, scripts) }

// InstallFrom copies scripts and their package.json and package-lock.json into
// the user's cache and installs what they need there, in the versions of the
// lock file, unless that was done before. It returns the folder.
func InstallFrom(ctx context.Context, files fs.FS) (string, error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", ErrNoNode
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	names, digest, err := contents(files)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "tallyard", "npm-"+digest)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return "", err
	}
	// Another process may do the same: the first to finish wins.
	work, err := os.MkdirTemp(filepath.Dir(dir), "npm-*.tmp")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }()
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err == nil {
			err = os.WriteFile(filepath.Join(work, name), data, 0o600)
		}
		if err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	ci := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	ci.Dir = work
	if out, err := ci.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	if err := os.Rename(work, dir); err != nil {
		if _, statErr := os.Stat(dir); statErr != nil {
			return "", err
		}
	}
	return dir, nil
}

// contents lists the files and digests them.
func contents(files fs.FS) (names []string, digest string, err error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, "", err
	}
	sum := sha256.New()
	for _, entry := range entries {
		data, err := fs.ReadFile(files, entry.Name())
		if err != nil {
			return nil, "", err
		}
		_, _ = fmt.Fprintf(sum, "%s %d\n", entry.Name(), len(data))
		_, _ = sum.Write(data)
		names = append(names, entry.Name())
	}
	return names, hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// Run runs one of the scripts and returns what it printed.
func Run(ctx context.Context, dir, script string, args ...string) (string, error) {
	//nolint:gosec // G204: the scripts are embedded, the arguments are the tests'
	cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join(dir, script)}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
