// Command soak works an embedded event store for a while: writers, subscribers
// and the upkeep that an operator does beside them. It tells whether memory and
// goroutines stay what they were early on, and whether every subscriber got
// every event once and in order; it fails where not.
//
//	go run ./test/soak -for 10m
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"tallyard/infra/eventstore"
	"tallyard/infra/eventstore/embedded"
)

// options are what can be chosen.
type options struct {
	time        time.Duration
	writers     int
	subscribers int
	rate        float64 // events a second of all writers together
	dir         string
}

func main() {
	var o options
	flag.DurationVar(&o.time, "for", 10*time.Minute, "how long it lasts; a fifth of it is warming up")
	flag.IntVar(&o.writers, "writers", 16, "writers, each with streams of its own")
	flag.IntVar(&o.subscribers, "subscribers", 50, "subscribers, each of which gets every event")
	flag.Float64Var(&o.rate, "rate", 250, "events a second of all writers together")
	flag.StringVar(&o.dir, "dir", "", "where the store lies while it lasts; empty: a temporary directory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// run opens a store, soaks it and takes it away again.
func run(ctx context.Context, o options) (err error) {
	if o.time < 10*time.Second || o.writers < 1 || o.subscribers < 1 || o.rate <= 0 {
		return errors.New("it takes at least 10 s, a writer, a subscriber and a rate")
	}
	dir, err := os.MkdirTemp(o.dir, "tallyard-s-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	opening, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	server, err := embedded.Open(opening, embedded.Config{Dir: filepath.Join(dir, "log"), Socket: filepath.Join(dir, "run", "s")})
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = errors.Join(err, server.Close(closing))
	}()
	log, err := eventstore.Open(opening, eventstore.Config{Address: server.Address()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	s := &soak{options: o, dir: dir, server: server, log: log}
	return s.run(ctx)
}
