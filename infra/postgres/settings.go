package postgres

import (
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
)

// Roles and database of a private cluster.
const (
	adminRole    = "postgres" // superuser; used at start only
	programRole  = "tallyard" // owns the database, is no superuser
	databaseName = "tallyard"
)

// settings are those of a private cluster. The file is written anew at every
// start, so that a new program brings its own.
func (c *Cluster) settings() map[string]string {
	s := map[string]string{
		"cluster_name":                 c.layout.tag,
		"listen_addresses":             "", // no TCP at all
		"port":                         fmt.Sprint(port),
		"unix_socket_directories":      c.layout.socket,
		"unix_socket_permissions":      "0700",
		"max_connections":              "100",
		"shared_buffers":               "128MB",
		"dynamic_shared_memory_type":   "posix",
		"fsync":                        "on",
		"synchronous_commit":           "on",
		"full_page_writes":             "on",
		"max_wal_size":                 "1GB",
		"min_wal_size":                 "80MB",
		"autovacuum":                   "on",
		"jit":                          "off", // statements are short: compiling costs more than it gives
		"timezone":                     "UTC",
		"log_timezone":                 "UTC",
		"datestyle":                    "iso, ymd",
		"lc_messages":                  "C",
		"default_text_search_config":   "pg_catalog.simple",
		"logging_collector":            "off", // the program reads what the server says
		"log_destination":              "stderr",
		"log_line_prefix":              "",
		"log_min_messages":             "log",
		"log_min_error_statement":      "panic", // statements and row values may be personal or secret
		"log_error_verbosity":          "terse",
		"log_checkpoints":              "off",
		"idle_session_timeout":         "0",
		"tcp_keepalives_idle":          "60",
		"shared_preload_libraries":     "",
		"track_io_timing":              "off",
		"default_toast_compression":    "pglz",
		"autovacuum_naptime":           "30s",
		"checkpoint_completion_target": "0.9",
	}
	if c.statStatements {
		s["shared_preload_libraries"] = "pg_stat_statements"
	}
	maps.Copy(s, c.config.Settings)
	return s
}

// writeSettings writes the server's three configuration files into dir.
func (c *Cluster) writeSettings(dir string) error {
	s := c.settings()
	var conf strings.Builder
	conf.WriteString("# Written by tallyard at every start; changes are lost.\n")
	for _, k := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&conf, "%s = '%s'\n", k, strings.ReplaceAll(s[k], "'", "''"))
	}
	const hba = "# Written by tallyard at every start: the kernel says who calls, nobody is trusted.\n" +
		"local all all peer map=tallyard\n"
	files := map[string]string{
		"postgresql.conf": conf.String(),
		"pg_hba.conf":     hba,
		"pg_ident.conf":   c.identMap(),
	}
	for name, text := range files {
		if err := c.writeFile(filepath.Join(dir, name), text); err != nil {
			return err
		}
	}
	return nil
}

// identMap lets two system users in: the program's and the server's own.
func (c *Cluster) identMap() string {
	names := []string{c.account.name}
	if u, err := user.LookupId(fmt.Sprint(os.Geteuid())); err == nil && u.Username != c.account.name {
		names = append(names, u.Username)
	}
	var b strings.Builder
	b.WriteString("# Written by tallyard at every start.\n")
	for _, n := range names {
		for _, role := range []string{adminRole, programRole} {
			fmt.Fprintf(&b, "tallyard \"%s\" %s\n", n, role)
		}
	}
	return b.String()
}

// writeFile replaces a file as a whole: a kill in the middle leaves the old one.
func (c *Cluster) writeFile(path, text string) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, []byte(text), 0o600); err != nil {
		return err
	}
	if err := c.account.give(tmp); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
