package postgres

import (
	"errors"
	"fmt"
	"strings"
)

// MinVersion is the oldest PostgreSQL server the program works with.
const MinVersion = 14

// InstallLine is what a person runs (as root, on Debian and its children) to
// get the server's binaries without a server being started on port 5432.
const InstallLine = `apt-get install -y postgresql-common && ` +
	`echo "create_main_cluster = false" >> /etc/postgresql-common/createcluster.conf && ` +
	`apt-get install -y postgresql`

// Errors that callers ask for with errors.Is.
var (
	// ErrInUse: another program holds the cluster's directory.
	ErrInUse = errors.New("the Postgres directory is in use by another program")
	// ErrNewerDatabase: the database was migrated by a newer program.
	ErrNewerDatabase = errors.New("the database belongs to a newer version of the program")
	// ErrMigrationChanged: a migration that was applied differs from the one in the program.
	ErrMigrationChanged = errors.New("an applied migration differs from the program's")
	// ErrOldServer: the server is older than MinVersion.
	ErrOldServer = errors.New("the Postgres server is too old")
	// ErrLeadershipLost is the cause of the context of a leader that is none any more.
	ErrLeadershipLost = errors.New("leadership lost")
)

// MissingError says that no fitting PostgreSQL binaries are installed, and
// what to run to get them.
type MissingError struct {
	// Wanted is the major version a data directory asks for, 0 when any will do.
	Wanted int
	// Looked are the places that were searched.
	Looked []string
	// Found names what was there and does not fit.
	Found []string
}

// Error implements error.
func (e *MissingError) Error() string {
	var b strings.Builder
	line := InstallLine
	if e.Wanted > 0 {
		fmt.Fprintf(&b, "the data directory was made by PostgreSQL %d, whose server binaries are not installed", e.Wanted)
		line = strings.ReplaceAll(line, "install -y postgresql", fmt.Sprintf("install -y postgresql-%d", e.Wanted))
		line = strings.Replace(line, fmt.Sprintf("postgresql-%d-common", e.Wanted), "postgresql-common", 1)
	} else {
		fmt.Fprintf(&b, "the server binaries (initdb, postgres) of PostgreSQL %d or newer are not installed", MinVersion)
	}
	if len(e.Found) > 0 {
		fmt.Fprintf(&b, "; found only %s", strings.Join(e.Found, ", "))
	}
	fmt.Fprintf(&b, "; looked in %s. Install them, as root:\n  %s", strings.Join(e.Looked, ", "), line)
	return b.String()
}

// accountError says why there is no account that Postgres could run as.
type accountError struct{ reason string }

func (e *accountError) Error() string { return e.reason }
