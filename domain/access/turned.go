package access

import (
	"slices"

	"github.com/google/uuid"
)

// Turned is what differs, in what a user sees, between their rights before and
// after a change.
type Turned struct {
	// All: they read everything of the tenant before or after, not both.
	All bool
	// Platform: they read the platform's audit before or after, not both.
	Platform bool
	// Training was or is in their business scope, not both.
	Training bool
	// Projects that they belong to before or after, not both.
	Projects []uuid.UUID
}

// Turned compares what is seen with these rights to what is seen with later ones.
func (g Grants) Turned(is Grants) Turned {
	t := Turned{All: g.ReadsAll() != is.ReadsAll(), Platform: g.ReadsPlatform() != is.ReadsPlatform(), Training: g.Trains() != is.Trains()}
	for _, id := range append(g.ProjectIDs(), is.ProjectIDs()...) {
		if g.In(id) != is.In(id) {
			t.Projects = append(t.Projects, id)
		}
	}
	slices.SortFunc(t.Projects, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	return t
}

// None tells whether nothing differs.
func (t Turned) None() bool { return !t.All && !t.Platform && !t.Training && len(t.Projects) == 0 }
