package eventstore

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

const (
	schemeUnix     = "unix:"
	schemeSingle   = "esdb://"
	schemeDiscover = "esdb+discover://"
	maxSocketPath  = 107
	// minKeepAlive is the shortest ping interval that the client doesn't raise by itself.
	minKeepAlive = 10 * time.Second
)

// parseAddress turns an address into the client's configuration. The client
// overlooks settings that it doesn't know and turns some wrong values into
// others, so everything is checked before it sees the text. No error repeats
// the address, which may hold a password.
func parseAddress(address string) (*esdb.Configuration, error) {
	switch {
	case address == "":
		return nil, errors.New("the event store's address is missing: give unix:/path or esdb://host:port")
	case strings.HasPrefix(address, schemeUnix):
		return unixConfiguration(address)
	case strings.HasPrefix(address, schemeSingle), strings.HasPrefix(address, schemeDiscover):
	default:
		return nil, errors.New("the event store's address must begin with unix:/, esdb:// or esdb+discover://")
	}
	if err := checkSettings(address); err != nil {
		return nil, fmt.Errorf("the event store's address: %w", err)
	}
	c, err := esdb.ParseConnectionString(address)
	if err != nil {
		return nil, errors.New("the event store's address can't be parsed: write esdb://[user:password@]host[:port][,host…][?setting=value&…]")
	}
	if c.DisableTLS && c.Username != "" {
		return nil, errors.New("the event store's address: credentials are never sent with tls=false; leave them out or use TLS")
	}
	return guarded(c), nil
}

// unixConfiguration is for a server on this machine. The client takes such an
// address in its configuration only, not in a connection string.
func unixConfiguration(address string) (*esdb.Configuration, error) {
	path := strings.TrimPrefix(address, schemeUnix)
	if strings.HasPrefix(path, "///") {
		path = path[2:]
	}
	switch {
	case !filepath.IsAbs(path) || strings.HasPrefix(path, "//"):
		return nil, errors.New("the event store's address: unix: needs an absolute path, unix:/run/…")
	case len(path) > maxSocketPath:
		return nil, fmt.Errorf("the event store's address: the socket's path has %d bytes, at most %d are possible", len(path), maxSocketPath)
	case strings.ContainsAny(path, "?#%"):
		return nil, errors.New("the event store's address: a unix socket takes no settings, and its path none of the signs ? # %")
	}
	return guarded(&esdb.Configuration{
		Address:           schemeUnix + path,
		DisableTLS:        true,
		NodePreference:    esdb.NodePreferenceLeader,
		GossipTimeout:     5,
		KeepAliveInterval: minKeepAlive,
		KeepAliveTimeout:  minKeepAlive,
	}), nil
}

// guarded sets what the package decides itself: one attempt to find a server
// per client, because the owner goroutine makes the next attempt, with a new one.
func guarded(c *esdb.Configuration) *esdb.Configuration {
	c.MaxDiscoverAttempts = 1
	c.DiscoveryInterval = 1
	return c
}

// checkSettings checks the settings behind the question mark.
func checkSettings(address string) error {
	_, query, _ := strings.Cut(address, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("the settings behind the question mark can't be parsed")
	}
	seen := map[string]bool{}
	for name, vs := range values {
		key := strings.ToLower(name)
		check, known := settings[key]
		if !known {
			return fmt.Errorf("unknown setting %q; known are %s", name, strings.Join(settingNames(), ", "))
		}
		if len(vs) > 1 || seen[key] {
			return fmt.Errorf("setting %q stands there twice", name)
		}
		seen[key] = true
		if err := check(vs[0]); err != nil {
			return fmt.Errorf("setting %s=%s: %w", name, vs[0], err)
		}
	}
	return nil
}

// settings are the settings of a connection string, in lower case, with what their values may be.
var settings = map[string]func(string) error{
	"tls":                 truth,
	"tlsverifycert":       truth,
	"tlscafile":           notEmpty,
	"usercertfile":        notEmpty,
	"userkeyfile":         notEmpty,
	"nodepreference":      preference,
	"maxdiscoverattempts": positive("attempts"),
	"discoveryinterval":   positive("milliseconds"),
	"gossiptimeout":       positive("seconds"),
	"defaultdeadline":     positive("milliseconds"),
	"keepaliveinterval":   keepAlive,
	"keepalivetimeout":    keepAlive,
}

func settingNames() []string {
	names := make([]string, 0, len(settings))
	for n := range settings {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func truth(v string) error {
	if l := strings.ToLower(v); l != "true" && l != "false" {
		return errors.New("must be true or false")
	}
	return nil
}

func notEmpty(v string) error {
	if v == "" {
		return errors.New("must not be empty")
	}
	return nil
}

func preference(v string) error {
	if !slices.Contains([]string{"leader", "follower", "random", "readonlyreplica"}, strings.ToLower(v)) {
		return errors.New("must be leader, follower, random or readOnlyReplica")
	}
	return nil
}

func positive(unit string) func(string) error {
	return func(v string) error {
		if n, err := strconv.Atoi(v); err != nil || n < 1 || n > 1<<31-1 {
			return fmt.Errorf("must be a whole number of %s, at least 1, without a unit", unit)
		}
		return nil
	}
}

func keepAlive(v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n > 1<<31-1 || n != -1 && time.Duration(n)*time.Millisecond < minKeepAlive {
		return fmt.Errorf("must be a whole number of milliseconds, at least %d, or -1 to turn pings off", minKeepAlive.Milliseconds())
	}
	return nil
}
