package embedded

import "github.com/google/uuid"

// recentCapacity is how many events back the store knows ids by heart. Only
// appends without an exact revision rest on it.
const recentCapacity = 1 << 16

type recentKey struct {
	id     uuid.UUID
	stream string
}

// recentIDs remembers where the last events were written, by stream and id. It
// is a window of the log and nothing else, so opening the store rebuilds it.
// Only the commit goroutine uses it.
type recentIDs struct {
	byKey map[recentKey]knownEvent
	ring  []recentKey
	next  int
}

func newRecentIDs() *recentIDs {
	return &recentIDs{byKey: map[recentKey]knownEvent{}}
}

func (r *recentIDs) add(stream string, id uuid.UUID, at knownEvent) {
	key := recentKey{id: id, stream: stream}
	if _, again := r.byKey[key]; again {
		r.byKey[key] = at // its old place in the ring forgets it early, which is allowed
		return
	}
	if len(r.ring) < recentCapacity {
		r.ring = append(r.ring, key)
	} else {
		delete(r.byKey, r.ring[r.next])
		r.ring[r.next] = key
		r.next = (r.next + 1) % recentCapacity
	}
	r.byKey[key] = at
}

func (r *recentIDs) find(stream string, id uuid.UUID) (knownEvent, bool) {
	k, ok := r.byKey[recentKey{id: id, stream: stream}]
	return k, ok
}

// page appends to dst up to n of the remembered ids, from a place in the ring on.
func (r *recentIDs) page(dst []rememberedID, from, n int) []rememberedID {
	for i := from; i < min(from+n, len(r.ring)); i++ {
		if at, ok := r.byKey[r.ring[i]]; ok {
			dst = append(dst, rememberedID{recentKey: r.ring[i], at: at})
		}
	}
	return dst
}
