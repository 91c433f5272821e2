package graph

import (
	"context"
	"fmt"

	"github.com/99designs/gqlgen/graphql"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/user"
	"tallyard/graph/algorithm"
	"tallyard/graph/approval"
	"tallyard/graph/audit"
	"tallyard/graph/authn"
	"tallyard/graph/dataset"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/image"
	"tallyard/graph/loader"
	"tallyard/graph/model"
	"tallyard/graph/operation"
	"tallyard/graph/people"
	"tallyard/graph/relay"
	"tallyard/graph/setting"
	"tallyard/graph/storage"
	projaudit "tallyard/projections/audit"
)

// maxNodes is how many ids nodes takes at once.
const maxNodes = 100

// Finder finds anything that has an id. It is also the audit's Things.
type Finder struct {
	Algorithms *algorithm.API
	Approvals  *approval.API
	Audit      *audit.API
	Models     *model.API
	Operations *operation.API
	People     *people.API
	Setting    *setting.API
	Storage    *storage.API
	DataSets   *dataset.API
	Images     *image.API
}

// Node is the query node.
func (f *Finder) Node(ctx context.Context, id string, atLeast *string) (gqlmodel.Node, error) {
	if err := f.People.Commands.AtLeast(ctx, atLeast); err != nil {
		return nil, err
	}
	parsed, ok := relay.Parse(id)
	if !ok {
		return nil, nil
	}
	return f.byID(ctx, parsed)
}

// Nodes is the query nodes. The look-ups go out together, so that the loaders
// ask once per kind.
func (f *Finder) Nodes(ctx context.Context, ids []string, atLeast *string) ([]gqlmodel.Node, error) {
	if len(ids) > maxNodes {
		return nil, fault.New(fault.Limit, fault.CodeLimitExceeded, fmt.Sprintf("Ask for at most %d ids at once.", maxNodes)).At("ids")
	}
	if err := f.People.Commands.AtLeast(ctx, atLeast); err != nil {
		return nil, err
	}
	nodes, failed := make([]gqlmodel.Node, len(ids)), make([]error, len(ids))
	done := make(chan struct{})
	for i, id := range ids {
		go func() {
			defer func() {
				// The executor catches what fails in its own goroutines only.
				if p := recover(); p != nil {
					failed[i] = graphql.GetOperationContext(ctx).Recover(ctx, p)
				}
				done <- struct{}{}
			}()
			if parsed, ok := relay.Parse(id); ok {
				nodes[i], failed[i] = f.byID(ctx, parsed)
			}
		}()
	}
	for range ids {
		<-done
	}
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// Ref finds what a reference of the domain points to; nil when it is gone, the
// viewer does not see it, or it has no id.
func (f *Finder) Ref(ctx context.Context, r es.Ref) (gqlmodel.Node, error) {
	id := relay.OfRef(r)
	if id == nil {
		return nil, nil
	}
	parsed, ok := relay.Parse(*id)
	if !ok {
		return nil, nil
	}
	return f.byID(ctx, parsed)
}

// Sees implements audit.Things. Subscriptions ask it over and over under one
// context, so that each question has loaders of its own: what was seen a moment
// ago may be out of view now.
func (f *Finder) Sees(ctx context.Context, id relay.ID) (bool, error) {
	n, err := f.byID(f.fresh(ctx), id)
	return n != nil, err
}

// Cut implements audit.Things. Others than its owner see those versions of an
// algorithm or model only that they may see, and of a person where they stand,
// not what they hold.
func (f *Finder) Cut(ctx context.Context, id relay.ID) (projaudit.Cut, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return projaudit.Cut{}, err
	}
	switch id.Kind {
	case relay.Algorithm:
		m, err := f.Algorithms.ByID(f.fresh(ctx), id.UUID)
		return projaudit.Cut{Outside: m == nil || (m.Folded.Owner != v.User() && !v.Grants.ReadsAll())}, err
	case relay.Model:
		m, err := f.Models.ByID(f.fresh(ctx), id.UUID)
		return projaudit.Cut{Outside: m == nil || (m.Folded.Owner != v.User() && !v.Grants.ReadsAll())}, err
	case relay.User:
		if !people.Reads(v, id.UUID) {
			return projaudit.Cut{Events: user.PublicEvents}, nil
		}
	}
	return projaudit.Cut{}, nil
}

// fresh gives a question loaders of its own.
func (f *Finder) fresh(ctx context.Context) context.Context {
	return loader.Queries{
		Algorithms: f.Algorithms.Queries, Approvals: f.Approvals.Queries, Models: f.Models.Queries, Operations: f.Operations.Queries, People: f.People.Queries,
		Audit: f.Audit.Queries, Storage: f.Storage.Queries, Progress: f.Operations.Progress, Usage: f.Storage.Usage,
		DataSets: f.DataSets.Queries, Images: f.Images.Queries,
	}.With(ctx)
}

// byID finds a thing by its kind; kinds that are no things of the schema are
// never found.
func (f *Finder) byID(ctx context.Context, id relay.ID) (gqlmodel.Node, error) {
	switch id.Kind {
	case relay.Tenant:
		return found(f.People.Tenant(ctx, id.UUID))
	case relay.Project:
		return found(f.People.Project(ctx, id.UUID))
	case relay.User:
		return found(f.People.User(ctx, id.UUID))
	case relay.Algorithm:
		return found(f.Algorithms.ByID(ctx, id.UUID))
	case relay.AlgorithmVersion:
		return found(f.Algorithms.VersionByID(ctx, id.UUID))
	case relay.Model:
		return found(f.Models.ByID(ctx, id.UUID))
	case relay.ModelVersion:
		return found(f.Models.VersionByID(ctx, id.UUID))
	case relay.Approval:
		return found(f.Approvals.ByID(ctx, id.UUID))
	case relay.Operation:
		return found(f.Operations.ByID(ctx, id.UUID))
	case relay.StorageSpace:
		return found(f.Storage.ByID(ctx, id.UUID))
	case relay.Settings:
		return found(f.Setting.ByID(ctx, id.UUID))
	case relay.DataSet:
		return found(f.DataSets.ByID(ctx, id.UUID))
	case relay.Image:
		return found(f.Images.ByID(ctx, id.UUID))
	case relay.AuditEntry:
		return found(f.Audit.ByID(ctx, id.UUID))
	}
	return nil, nil
}

// found makes a missing thing a nil of the interface, too.
func found[N any, P interface {
	*N
	gqlmodel.Node
}](n P, err error) (gqlmodel.Node, error) {
	if n == nil || err != nil {
		return nil, err
	}
	return n, nil
}
