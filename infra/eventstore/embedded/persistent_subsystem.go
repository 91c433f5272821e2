package embedded

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"tallyard/infra/eventstore/embedded/persistent"
)

// groupChangeTime bounds the writes of one change to the groups there are.
const groupChangeTime = 10 * time.Second

// subscriptions is the server's persistent subscriptions: the groups there are,
// each with a goroutine of its own.
type subscriptions struct {
	store  *store
	logger *slog.Logger

	// ctx ends with the server. Changes to the groups run in it rather than in
	// their callers' contexts: a client that hangs up must not leave a change
	// half made.
	ctx       context.Context //nolint:containedctx // it is the life of what hangs here
	cancel    context.CancelFunc
	receivers sync.WaitGroup // goroutines that read what consumers say

	// change is held while the groups are changed, writes included; it guards
	// nothing that callers wait for otherwise.
	change sync.Mutex
	mu     sync.RWMutex
	groups map[string]*group // by id
	fault  error             // why the groups can't be told, until they are loaded
}

// newSubscriptions starts the groups that the store knows of. A list that can't
// be read does not keep the server from opening: its calls then say why.
func newSubscriptions(st *store, logger *slog.Logger) *subscriptions {
	s := &subscriptions{store: st, logger: logger, groups: map[string]*group{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.start()
	return s
}

// start loads the groups and lets them run. The caller holds change, or is alone.
func (s *subscriptions) start() {
	groups := map[string]*group{}
	entries, err := s.store.loadGroups(s.ctx)
	if err != nil {
		s.logger.Error("the persistent subscriptions could not be loaded", "error", err)
		err = groupFailure{"the list of groups could not be read: " + err.Error()}
	}
	for i := range entries {
		g := startGroup(s.ctx, s.store, s.logger, entries[i])
		groups[g.name.id()] = g
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups, s.fault = groups, err
}

// find gives a group.
func (s *subscriptions) find(name groupName) (*group, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.fault != nil {
		return nil, s.fault
	}
	g := s.groups[name.id()]
	if g == nil || g.name != name {
		return nil, errGroupMissing
	}
	return g, nil
}

// list gives all groups of a stream, in their order; all streams' if it is empty.
func (s *subscriptions) list(stream string) ([]*group, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.fault != nil {
		return nil, s.fault
	}
	var out []*group
	for _, g := range s.groups {
		if stream == "" || g.name.stream == stream {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.name.stream, b.name.stream), cmp.Compare(a.name.group, b.name.group))
	})
	return out, nil
}

// create makes a group.
func (s *subscriptions) create(e groupEntry, start groupStart) error {
	s.change.Lock()
	defer s.change.Unlock()
	ctx, cancel := context.WithTimeout(s.ctx, groupChangeTime)
	defer cancel()
	name := e.name()
	switch _, err := s.find(name); {
	case err == nil:
		return errGroupExists
	case s.taken(name.id()):
		return groupFailure{"a group of another stream has the id " + name.id()}
	case s.fault != nil:
		return s.fault
	}
	last, err := s.store.sourceEnd(ctx, e.Stream)
	if err != nil {
		return err
	}
	start.settle(&e, last)
	// An earlier group of the name may have died on its way out.
	if err := s.store.removeGroupStreams(ctx, name); err != nil {
		return err
	}
	return s.put(ctx, e)
}

func (s *subscriptions) taken(id string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.groups[id] != nil
}

// update gives a group other settings. Its consumers are dropped; the group goes
// on from where it stands or, if it never got anywhere, from the new start.
func (s *subscriptions) update(e groupEntry, start groupStart) error {
	s.change.Lock()
	defer s.change.Unlock()
	ctx, cancel := context.WithTimeout(s.ctx, groupChangeTime)
	defer cancel()
	old, err := s.find(e.name())
	if err != nil {
		return err
	}
	last, err := s.store.sourceEnd(ctx, e.Stream)
	if err != nil {
		return err
	}
	start.settle(&e, last)
	e.Filter = old.entry.Filter
	old.end(true)
	if err := s.put(ctx, e); err != nil {
		// The group must go on as it was.
		s.set(startGroup(s.ctx, s.store, s.logger, old.entry))
		return err
	}
	return nil
}

// put writes a group into the list and starts it.
func (s *subscriptions) put(ctx context.Context, e groupEntry) error {
	entries := append(s.entriesWithout(e.name()), e)
	if err := s.store.saveGroups(ctx, entries); err != nil {
		return err
	}
	s.set(startGroup(s.ctx, s.store, s.logger, e))
	return nil
}

func (s *subscriptions) set(g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups[g.name.id()] = g
}

func (s *subscriptions) entriesWithout(name groupName) []groupEntry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	entries := make([]groupEntry, 0, len(s.groups)+1)
	for _, id := range slices.Sorted(maps.Keys(s.groups)) {
		if g := s.groups[id]; g.name != name {
			entries = append(entries, g.entry)
		}
	}
	return entries
}

// remove ends a group for good, with its checkpoint and its parked messages.
func (s *subscriptions) remove(name groupName) error {
	s.change.Lock()
	defer s.change.Unlock()
	ctx, cancel := context.WithTimeout(s.ctx, groupChangeTime)
	defer cancel()
	g, err := s.find(name)
	if err != nil {
		return err
	}
	if err := s.store.saveGroups(ctx, s.entriesWithout(name)); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.groups, name.id())
	s.mu.Unlock()
	g.end(false)
	if err := s.store.removeGroupStreams(ctx, name); err != nil {
		// The group is gone all the same; the next of its name clears up.
		s.logger.Warn("what a deleted persistent subscription left could not be removed", "group", name.id(), "error", err)
	}
	return nil
}

// restart ends all groups and starts them again from what is written.
func (s *subscriptions) restart() error {
	s.change.Lock()
	defer s.change.Unlock()
	if err := s.ctx.Err(); err != nil {
		return errStopping
	}
	s.mu.RLock()
	groups := s.groups
	s.mu.RUnlock()
	endGroups(groups, true)
	s.start()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.fault
}

// close ends all groups, which write down how far they are. Every call has
// ended by then.
func (s *subscriptions) close() {
	s.change.Lock()
	defer s.change.Unlock()
	s.mu.RLock()
	groups := s.groups
	s.mu.RUnlock()
	endGroups(groups, true)
	s.cancel()
	s.receivers.Wait()
}

// endGroups ends groups together, so that their last writes share a sync.
func endGroups(groups map[string]*group, final bool) {
	var all sync.WaitGroup
	for _, g := range groups {
		all.Go(func() { g.end(final) })
	}
	all.Wait()
}

// sourceEnd is the last position of a source, persistent.Before if it has none.
func (s *store) sourceEnd(ctx context.Context, stream string) (persistent.Position, error) {
	if stream == allStream {
		return persistent.Position(s.committed.Load()), nil
	}
	h, err := s.durableHead(ctx, stream)
	if err != nil {
		return persistent.Before, fmt.Errorf("read the end of %s: %w", stream, err)
	}
	return persistent.Position(h.last), nil
}

// removeGroupStreams deletes what a group has written.
func (s *store) removeGroupStreams(ctx context.Context, name groupName) error {
	for _, stream := range []string{name.checkpoints(), name.parked()} {
		h, err := s.readHead(stream)
		if err != nil {
			return err
		}
		if h.missing() || h.tombstoned {
			continue
		}
		if _, err := s.append(ctx, &appendRequest{kind: requestDelete, stream: stream}); err != nil {
			return err
		}
	}
	return nil
}
