// Command cluster serves an empty event store as what the published clients'
// suites expect: three members over TLS on localhost:2111 to 2113, of which the
// last leads, with the user admin and the password changeit. It prints where the
// authority's certificate lies, and stops with a signal. Other addresses can be
// given.
//
//	go run ./test/conformance/cluster [host:port …]
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"tallyard/test/conformance"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	addresses := conformance.ClientAddresses
	if len(os.Args) > 1 {
		addresses = os.Args[1:]
	}
	m, err := conformance.StartMembers(ctx, slog.New(slog.NewTextHandler(os.Stderr, nil)), addresses...)
	if err != nil {
		return err
	}
	fmt.Printf("serving on %s; trust %s\n", strings.Join(m.Server.NetworkAddresses(), ", "), m.CA)
	select {
	case <-ctx.Done():
	case <-m.Server.Failed():
	}
	closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return m.Close(closing)
}
