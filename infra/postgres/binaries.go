package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Binaries is an installed PostgreSQL server.
type Binaries struct {
	Dir   string // holds initdb and postgres
	Major int    // 15 for 15.18
}

func (b Binaries) initdb() string { return filepath.Join(b.Dir, "initdb") }
func (b Binaries) server() string { return filepath.Join(b.Dir, "postgres") }

// installGlobs are where packages put servers that are not on the PATH.
var installGlobs = []string{
	"/usr/lib/postgresql/*/bin", // Debian and its children
	"/usr/pgsql-*/bin",          // PGDG on Red Hat and its children
	"/usr/local/pgsql/bin",      // built from source
}

// FindBinaries returns the server to use: the one in dir when dir is given,
// else one of major version want (0 means the newest that is MinVersion or
// later) from the PATH or the places where packages put it.
// The error is a *MissingError when nothing fits.
func FindBinaries(ctx context.Context, dir string, want int) (Binaries, error) {
	var dirs, looked []string
	if dir != "" {
		dirs, looked = []string{dir}, []string{dir}
	} else {
		dirs, looked = candidateDirs()
	}
	var fit []Binaries
	var unfit []string
	for _, d := range dirs {
		b, err := inspect(ctx, d)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			unfit = append(unfit, err.Error())
		case b.Major < MinVersion || want != 0 && b.Major != want:
			unfit = append(unfit, fmt.Sprintf("PostgreSQL %d in %s", b.Major, b.Dir))
		default:
			fit = append(fit, b)
		}
	}
	if len(fit) == 0 {
		return Binaries{}, &MissingError{Wanted: want, Looked: looked, Found: unfit}
	}
	// Stable: of two with the same version the one on the PATH comes first.
	slices.SortStableFunc(fit, func(a, b Binaries) int { return b.Major - a.Major })
	return fit[0], nil
}

func candidateDirs() (dirs, looked []string) {
	looked = append([]string{"PATH"}, installGlobs...)
	if p, err := exec.LookPath("initdb"); err == nil {
		// A link is followed: the server finds its other files from there.
		if p, err = filepath.EvalSymlinks(p); err == nil {
			dirs = append(dirs, filepath.Dir(p))
		}
	}
	for _, g := range installGlobs {
		found, err := filepath.Glob(g)
		if err != nil {
			continue // only a malformed pattern fails, and these are constants
		}
		dirs = append(dirs, found...)
	}
	return dirs, looked
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// inspect asks the server in dir for its version.
func inspect(ctx context.Context, dir string) (Binaries, error) {
	b := Binaries{Dir: dir}
	for _, f := range []string{b.initdb(), b.server()} {
		if _, err := os.Stat(f); err != nil {
			return b, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, b.server(), "--version").Output() //nolint:gosec // G204: an installed server, found above
	if err != nil {
		return b, fmt.Errorf("%s --version: %w", b.server(), err)
	}
	m := versionPattern.FindSubmatch(out)
	if m == nil {
		return b, fmt.Errorf("%s --version answered %q", b.server(), strings.TrimSpace(string(out)))
	}
	b.Major, err = strconv.Atoi(string(m[1]))
	return b, err
}

// hasStatStatements tells whether the server can load pg_stat_statements: a
// server that is told to load what it lacks does not start.
func (b Binaries) hasStatStatements(ctx context.Context) bool {
	dirs := []string{filepath.Join(b.Dir, "../lib"), filepath.Join(b.Dir, "../lib/postgresql")}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(b.Dir, "pg_config"), "--pkglibdir") //nolint:gosec // G204: as above
	if out, err := cmd.Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	return slices.ContainsFunc(dirs, func(d string) bool {
		_, err := os.Stat(filepath.Join(d, "pg_stat_statements.so"))
		return err == nil
	})
}
