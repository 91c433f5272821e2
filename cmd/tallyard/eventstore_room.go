package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/urfave/cli/v3"

	"tallyard/infra/eventstore/embedded"
)

// eventStoreRoom is what the embedded event store may take of the disk, and how
// often it gives back what nobody can read any more.
type eventStoreRoom struct {
	maxBytes      int64 // 0: no limit
	scavengeEvery time.Duration
}

// scavengeDefault is how often the embedded event store scavenges.
const scavengeDefault = 24 * time.Hour

func eventStoreRoomFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Int64Flag{Name: "eventstore-max-bytes", Sources: env("eventstore-max-bytes"), Usage: "bytes of the embedded event store's files from which on it refuses events; 0: no limit"},
		&cli.DurationFlag{Name: "eventstore-scavenge-every", Value: scavengeDefault, Sources: env("eventstore-scavenge-every"), Usage: "time between two scavenges of the embedded event store, which remove what was deleted; 0: never"},
	}
}

func eventStoreRoomOf(cmd *cli.Command) eventStoreRoom {
	return eventStoreRoom{maxBytes: cmd.Int64("eventstore-max-bytes"), scavengeEvery: cmd.Duration("eventstore-scavenge-every")}
}

func (r eventStoreRoom) check(external bool) error {
	switch {
	case external && r.maxBytes != 0:
		return errors.New("--eventstore-max-bytes is for the embedded event store; with --eventstore, its own settings bound it")
	case r.maxBytes != 0 && r.maxBytes < embedded.MinMaxBytes:
		return fmt.Errorf("--eventstore-max-bytes %d: give 0 for no limit, or at least %d", r.maxBytes, embedded.MinMaxBytes)
	case r.scavengeEvery != 0 && r.scavengeEvery < time.Minute:
		return fmt.Errorf("--eventstore-scavenge-every %v: give 0 for never, or at least 1m", r.scavengeEvery)
	}
	return nil
}

// ready adds to the answer of /readyz that the embedded event store has little
// room. The program is ready all the same: reads go on.
func readyText(server *embedded.Server) string {
	if server != nil {
		if level := server.Space().Level; level > embedded.SpaceEnough {
			return "ready; room for events: " + level.String()
		}
	}
	return "ready"
}

var (
	storeBytes = desc("eventstore_bytes", "Bytes of the embedded event store's files.")
	storeLimit = desc("eventstore_limit_bytes", "Bytes that those may have; 0: no limit.")
	storeFree  = desc("eventstore_disk_free_bytes", "Bytes that are free on the disk of the embedded event store.")
	storeLevel = desc("eventstore_space_level", "How scarce room is for the embedded event store: 0 enough, 1 low, 2 critical, 3 full and refusing events.")
)

// roomCollector measures the embedded event store's room.
type roomCollector struct{ server *embedded.Server }

// Describe implements prometheus.Collector.
func (roomCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{storeBytes, storeLimit, storeFree, storeLevel} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c roomCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.server.Space()
	for d, v := range map[*prometheus.Desc]float64{
		storeBytes: float64(s.Used), storeLimit: float64(s.Limit), storeFree: float64(s.Free), storeLevel: float64(s.Level),
	} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
}
