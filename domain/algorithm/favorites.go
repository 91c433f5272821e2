package algorithm

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
)

// FavoritesCategory is the category of the streams of favourites, one per
// user: they belong to the user, not to what they like.
const FavoritesCategory = "favorites"

// Favorites is what a user likes.
type Favorites struct {
	Algorithms []uuid.UUID `json:"algorithms"`
}

// FavoriteAdded says that the stream's user likes an algorithm.
type FavoriteAdded struct {
	Algorithm uuid.UUID `json:"algorithm"`
}

// Changes implements es.Event.
func (FavoriteAdded) Changes() []es.Change { return []es.Change{es.Moved("favorite", false, true)} }

// Subject implements es.Subjected.
func (e FavoriteAdded) Subject(es.Ref) es.Ref { return es.Ref{Kind: Category, ID: e.Algorithm} }

// FavoriteRemoved says that the stream's user likes an algorithm no more.
type FavoriteRemoved struct {
	Algorithm uuid.UUID `json:"algorithm"`
}

// Changes implements es.Event.
func (FavoriteRemoved) Changes() []es.Change { return []es.Change{es.Moved("favorite", true, false)} }

// Subject implements es.Subjected.
func (e FavoriteRemoved) Subject(es.Ref) es.Ref { return es.Ref{Kind: Category, ID: e.Algorithm} }

// FavoritesAggregate folds a user's favourites.
var FavoritesAggregate = es.Aggregate[Favorites]{
	Category: FavoritesCategory,
	Fold:     1,
	Evolve: func(s Favorites, e es.Envelope) Favorites {
		switch ev := e.Event.(type) {
		case FavoriteAdded:
			s.Algorithms = append(slices.Clip(s.Algorithms), ev.Algorithm)
		case FavoriteRemoved:
			s.Algorithms = slices.DeleteFunc(slices.Clone(s.Algorithms), func(id uuid.UUID) bool { return id == ev.Algorithm })
		}
		return s
	},
}

// Favorite adds an algorithm to the actor's favourites or takes it out
// (ALG-10). Only what one sees can be added; anything can be taken out.
func (h *Handler) Favorite(ctx context.Context, cmd es.Command, algorithm uuid.UUID, like bool) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: Category, ID: algorithm}
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		g, s, err := h.load(ctx, &cmd, algorithm)
		if err != nil {
			return Refs{}, err
		}
		if _, ok := s.Cut(g); !ok && (like || !g.Active) {
			return Refs{}, access.Missing().At("id")
		}
		if !g.Writes() {
			return Refs{}, access.ReadOnly()
		}
		_, err = es.Execute(ctx, h.Runtime, cmd, FavoritesAggregate, g.User, decideFavorite(algorithm, like))
		return Refs{Algorithm: algorithm, At: -1}, err
	})
}

func decideFavorite(algorithm uuid.UUID, like bool) es.Decide[Favorites] {
	return func(s Favorites) ([]es.Event, error) {
		switch has := slices.Contains(s.Algorithms, algorithm); {
		case has == like:
			return nil, nil
		case like:
			return []es.Event{FavoriteAdded{algorithm}}, nil
		default:
			return []es.Event{FavoriteRemoved{algorithm}}, nil
		}
	}
}
