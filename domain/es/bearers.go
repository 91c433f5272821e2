package es

import "context"

// Bears tells which name the thing of a stream bears now; false when it bears
// none any more.
type Bears func(ctx context.Context, holder StreamID) (Name, bool, error)

// Bearer is a kind of things that can be given another name. A command that
// renames one reserves the new name, changes the thing and frees the old name;
// where it dies in between, a name stays reserved that nothing bears.
type Bearer struct {
	Bears Bears
	// Left gives the name that an event took from its thing, by the events'
	// stored names; false when the event took none.
	Left map[string]func(Envelope) (Name, bool)
}

// ReleaseUnborne frees the name of a stream that nothing bears: its holder
// never came to be, or bears another name by now. It tells whether it did. A
// reservation younger than OrphanAfter is left alone, since its command may
// still be at work; so is, with bears nil, any whose holder exists.
func (rt *Runtime) ReleaseUnborne(ctx context.Context, cmd Command, stream StreamID, bears Bears) (bool, error) {
	released := false
	err := rt.appendTo(ctx, cmd, stream, func(l Loaded[NameState]) ([]Event, error) {
		released = false
		s := l.State
		if s.Holder == "" || rt.Now().Sub(s.Since) < OrphanAfter {
			return nil, nil
		}
		unborne, err := rt.orphaned(ctx, s)
		if err == nil && !unborne && bears != nil {
			// Should the holder want the name back from here on, it reserves it
			// anew, and this append meets that as a conflict.
			unborne, err = rt.unborne(ctx, s, stream, bears)
		}
		if err != nil || !unborne {
			return nil, err
		}
		released = true
		return []Event{NameReleased{Holder: s.Holder, Orphan: true}}, nil
	})
	return released && err == nil, err
}

func (rt *Runtime) unborne(ctx context.Context, s NameState, stream StreamID, bears Bears) (bool, error) {
	holder, err := ParseStream(s.Holder)
	if err != nil {
		return false, err
	}
	name, ok, err := bears(ctx, holder)
	return !ok || rt.NameStream(stream.Tenant, name) != stream, err
}
