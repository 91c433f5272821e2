package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"tallyard/domain/access"
	"tallyard/domain/algorithm"
	"tallyard/domain/es"
	"tallyard/domain/workload"
)

// Company is whom a history is about.
type Company struct {
	Tenant   uuid.UUID
	Projects []uuid.UUID
	Owners   []uuid.UUID
}

// seeders is how many append at once: the store syncs once for all that wait.
const seeders = 512

// Seed appends a history of n algorithms, as their commands would have written
// it: every third has a second version, every fifth is published to its project,
// and the oldest tenth to the tenant, so that who looks at the newest rows and
// owns nothing has to go far. It gives the number of events.
func Seed(ctx context.Context, log es.Log, reg *es.Registry, c Company, n int) (events int, err error) {
	begin := time.Now().Add(-time.Duration(n) * time.Second).UTC().Truncate(time.Microsecond)
	g, ctx := errgroup.WithContext(ctx)
	counts := make([]int, seeders)
	for s := range seeders {
		g.Go(func() error {
			for i := s; i < n; i += seeders {
				wrote, err := one(ctx, log, reg, c, i, n, begin.Add(time.Duration(i)*time.Second))
				if err != nil {
					return err
				}
				counts[s] += wrote
			}
			return nil
		})
	}
	err = g.Wait()
	for _, c := range counts {
		events += c
	}
	return events, err
}

// one appends the history of algorithm i of n.
func one(ctx context.Context, log es.Log, reg *es.Registry, c Company, i, n int, at time.Time) (int, error) {
	id, owner, project := uuid.New(), c.Owners[i%len(c.Owners)], c.Projects[i%len(c.Projects)]
	stream := es.StreamOf(algorithm.Category, c.Tenant, id).String()
	first := algorithm.OfVersion{Version: uuid.New()}
	commands := []struct {
		action string
		events []es.Event
	}{
		{"createAlgorithm", []es.Event{
			algorithm.AlgorithmCreated{Name: fmt.Sprintf("net_%06d", (i*7919)%n), Owner: owner, Project: project},
			algorithm.VersionAdded{OfVersion: first, Label: "v1", Settings: settings(i)},
		}},
	}
	if i%3 == 0 {
		second := algorithm.OfVersion{Version: uuid.New()}
		commands = append(commands, struct {
			action string
			events []es.Event
		}{"createAlgorithmVersion", []es.Event{algorithm.VersionAdded{OfVersion: second, Label: "v2", Settings: settings(i + 1)}}})
	}
	if visibility := published(i, n); visibility != "" {
		commands = append(commands, struct {
			action string
			events []es.Event
		}{"publishAlgorithmVersion", []es.Event{algorithm.VersionPublished{
			OfVersion: first, Visibility: visibility, Fingerprint: fmt.Sprintf("%064x", i), From: algorithm.Created, By: owner,
		}}})
	}
	wrote := 0
	for k, cmd := range commands {
		meta := es.Metadata{
			Tenant: c.Tenant, Project: project, Actor: es.Actor{Kind: es.ActorUser, User: owner}, Command: uuid.New(), Action: cmd.action,
			Request: uuid.NewString(), Correlation: uuid.New(), Time: at.Add(time.Duration(k) * time.Millisecond),
		}
		raws := make([]es.Raw, len(cmd.events))
		for j, e := range cmd.events {
			meta.Index = j
			raw, err := reg.Encode(e, meta)
			if err != nil {
				return wrote, err
			}
			raw.ID = uuid.New()
			raws[j] = raw
		}
		if _, err := log.Append(ctx, stream, es.At(es.Revision(wrote-1)), raws...); err != nil {
			return wrote, err
		}
		wrote += len(raws)
	}
	return wrote, nil
}

func published(i, n int) access.Visibility {
	switch {
	case i < n/10:
		return access.Global
	case i%5 == 0:
		return access.Group
	default:
		return ""
	}
}

func settings(i int) algorithm.Settings {
	return algorithm.Settings{
		Description: fmt.Sprintf("Classifies images, attempt %d.", i),
		Image:       workload.Image{Framework: workload.PyTorch, Reference: "pytorch:2.6"},
		Source:      algorithm.Source{Command: "python train.py --epochs 90"},
		Parameters:  []algorithm.Pair{{Name: "lr", Value: "0.1"}, {Name: "batch", Value: "256"}},
		Resources:   workload.Resources{Workers: 1, CPUMillis: 4000, MemoryBytes: 16 << 30},
		Deployment:  workload.Single,
	}
}
