package history

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"

	"tallyard/domain/es"
)

// reached is how far a history was read: the last revision of each stream. It
// is what a cursor holds, since revisions are exact and never change.
type reached []es.Revision

func beginning(streams int) reached {
	r := make(reached, streams)
	for i := range r {
		r[i] = es.NoRevision
	}
	return r
}

// String is the form in a cursor.
func (r reached) String() string {
	parts := make([]string, len(r))
	for i, rev := range r {
		parts[i] = strconv.FormatInt(int64(rev), 10)
	}
	return strings.Join(parts, ",")
}

// parseReached reads what String made; the cursor that holds it is sealed.
func parseReached(text string, streams int) reached {
	r := beginning(streams)
	for i, part := range strings.SplitN(text, ",", streams) {
		if n, err := strconv.ParseInt(part, 10, 64); err == nil {
			r[i] = es.Revision(n)
		}
	}
	return r
}

// row is an event of a history and how far one has read with it.
type row struct {
	es.Envelope
	reached reached
	changes []es.Change
}

// merged gives the events of some streams behind what was reached, in the order
// of the log. Streams that do not exist, or no more, have none.
func merged(ctx context.Context, rt *es.Runtime, streams []es.StreamID, at reached) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		at := slices.Clone(at)
		next := make([]func() (es.Envelope, error, bool), len(streams))
		heads := make([]*es.Envelope, len(streams))
		// pull takes the next event of a stream; nil at its end.
		pull := func(i int) error {
			env, err, ok := next[i]()
			if heads[i] = nil; ok && err == nil {
				heads[i] = &env
			}
			return err
		}
		for i, s := range streams {
			n, stop := iter.Pull2(iter.Seq2[es.Envelope, error](es.Events(ctx, rt, s, at[i]+1)))
			defer stop()
			next[i] = n
			if err := pull(i); err != nil {
				yield(row{}, err)
				return
			}
		}
		for {
			first := -1
			for i, h := range heads {
				if h != nil && (first < 0 || h.Position < heads[first].Position) {
					first = i
				}
			}
			if first < 0 {
				return
			}
			env := *heads[first]
			at[first] = env.Revision
			if !yield(row{Envelope: env, reached: slices.Clone(at)}, nil) {
				return
			}
			if err := pull(first); err != nil {
				yield(row{}, err)
				return
			}
		}
	}
}
