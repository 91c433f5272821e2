package publication

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/algorithm"
	"tallyard/domain/es"
)

// Algorithms publishes versions of algorithms (ALG-05).
type Algorithms struct{ *algorithm.Handler }

// Digest implements Publisher.
func (a Algorithms) Digest(ctx context.Context, tenant, request uuid.UUID, of es.Ref) (string, error) {
	l, err := es.Load(ctx, a.Runtime, algorithm.Aggregate, tenant, of.Parent)
	return l.State.Awaited(of.ID, request), err
}

// Approved implements Publisher. The operation's id comes from the request, of
// which there is one publication.
func (a Algorithms) Approved(ctx context.Context, cmd es.Command, request uuid.UUID, of es.Ref) error {
	return a.Handler.Approved(ctx, cmd, version(of), request, uuid.NewSHA1(request, []byte("publication")))
}

// NotApproved implements Publisher.
func (a Algorithms) NotApproved(ctx context.Context, cmd es.Command, request uuid.UUID, of es.Ref, problem string) error {
	return a.Handler.NotApproved(ctx, cmd, version(of), request, problem)
}

func version(of es.Ref) algorithm.VersionRef {
	return algorithm.VersionRef{Algorithm: of.Parent, Version: of.ID}
}
