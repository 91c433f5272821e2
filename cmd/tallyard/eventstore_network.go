package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"tallyard/infra/eventstore/embedded"
)

// eventStoreNetwork is how other programs come to the embedded event store. By
// default they don't.
type eventStoreNetwork struct {
	listen    string // empty: closed
	advertise string
	cert, key string // files; empty: a certificate of our own
	users     string // file
}

func eventStoreNetworkFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "eventstore-listen", Sources: env("eventstore-listen"), Usage: "host:port on which the embedded event store takes other programs, over TLS; empty: none"},
		&cli.StringFlag{Name: "eventstore-advertise", Sources: env("eventstore-advertise"), Usage: "host:port that those programs are told to use; needed when listening on every address"},
		&cli.StringFlag{Name: "eventstore-users", Sources: env("eventstore-users"), Usage: "file of who may come in, readable by its owner alone; tallyard events user makes its lines"},
		&cli.StringFlag{Name: "eventstore-tls-cert", Sources: env("eventstore-tls-cert"), Usage: "certificate for --eventstore-listen; empty: one of an authority made inside the data directory"},
		&cli.StringFlag{Name: "eventstore-tls-key", Sources: env("eventstore-tls-key"), Usage: "key of that certificate"},
	}
}

func eventStoreNetworkOf(cmd *cli.Command) eventStoreNetwork {
	return eventStoreNetwork{
		listen: cmd.String("eventstore-listen"), advertise: cmd.String("eventstore-advertise"), users: cmd.String("eventstore-users"),
		cert: cmd.String("eventstore-tls-cert"), key: cmd.String("eventstore-tls-key"),
	}
}

// check refuses what can't work, or would let in others than was meant.
func (n eventStoreNetwork) check(external bool) error {
	if n.listen == "" {
		if n != (eventStoreNetwork{}) {
			return errors.New("--eventstore-advertise, --eventstore-users, --eventstore-tls-cert and --eventstore-tls-key say how others come in; give --eventstore-listen as well, or none of them")
		}
		return nil
	}
	host, err := hostPort("--eventstore-listen", n.listen)
	if err != nil {
		return err
	}
	if n.advertise != "" {
		if host, err = hostPort("--eventstore-advertise", n.advertise); err != nil {
			return err
		}
	}
	ip := net.ParseIP(host)
	switch {
	case external:
		return errors.New("--eventstore-listen is for the embedded event store; with --eventstore, programs go to that one")
	case host == "" || ip != nil && ip.IsUnspecified():
		return fmt.Errorf("--eventstore-listen %s is every address of this machine; say with --eventstore-advertise host:port which one programs are to use", n.listen)
	case n.users == "":
		return errors.New("--eventstore-listen lets users in and nobody else: give --eventstore-users, a file with lines that tallyard events user makes")
	case (n.cert == "") != (n.key == ""):
		return errors.New("--eventstore-tls-cert and --eventstore-tls-key come together")
	}
	return nil
}

func hostPort(flag, address string) (host string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return "", fmt.Errorf("%s %q is not an address; give host:port, such as 127.0.0.1:2113", flag, address)
	}
	return host, nil
}

// open reads users and certificate; nil when nobody is to come in.
func (n eventStoreNetwork) open(dataDir string) (*embedded.NetworkConfig, error) {
	if n.listen == "" {
		return nil, nil //nolint:nilnil // no network is wanted
	}
	users, err := embedded.LoadUsers(n.users)
	if err != nil {
		return nil, err
	}
	c := &embedded.NetworkConfig{Listen: []string{n.listen}, Advertise: n.advertise, Users: users}
	if n.cert != "" {
		c.TLS, err = embedded.GivenCertificate(n.cert, n.key)
	} else {
		c.TLS, err = embedded.OwnCertificate(eventStoreAuthority(dataDir), n.hosts(), time.Now)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// hosts are the names that a certificate of our own is for.
func (n eventStoreNetwork) hosts() []string {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	for _, address := range []string{n.listen, n.advertise} {
		host, _, err := net.SplitHostPort(address)
		if ip := net.ParseIP(host); err == nil && host != "" && (ip == nil || !ip.IsUnspecified()) {
			hosts = append(hosts, host)
		}
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		hosts = append(hosts, name)
	}
	return hosts
}

// eventStoreAuthority is where the authority of our own certificate lies.
func eventStoreAuthority(dataDir string) string { return filepath.Join(dataDir, "eventstore-tls") }

// describe tells an operator how to come in.
func (n eventStoreNetwork) describe(dataDir string, server *embedded.Server) string {
	if n.listen == "" || server == nil {
		return ""
	}
	text := "esdb://" + server.NetworkAddresses()[0]
	if n.cert == "" {
		text += "?tlsCAFile=" + filepath.Join(eventStoreAuthority(dataDir), embedded.CAFile)
	}
	return text
}
