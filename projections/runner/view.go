package runner

import (
	"time"

	"tallyard/domain/es"
)

// show makes the flow's state visible to others after a step.
func (f *flow) show() {
	v := &view{
		at:     make(map[string]es.Position, len(f.states)),
		halted: map[string]string{},
		parked: map[string]int{},
	}
	for _, st := range f.states {
		v.at[st.p.Name] = st.at
		if st.halted != "" {
			v.halted[st.p.Name] = st.halted
		}
		if len(st.parked) > 0 {
			v.parked[st.p.Name] = len(st.parked)
		}
	}
	f.view.Store(v)
	if p := f.publish.Load(); p != nil {
		p.set(f.gen.id, v.at, true)
	}
}

// trouble says why nothing moves; the next step that succeeds takes it away.
// It is called by the goroutines of projections too, so it only swaps the view.
func (f *flow) trouble(reason string) {
	for {
		old := f.view.Load()
		v := *old
		if v.trouble == "" {
			v.since = time.Now()
		}
		v.trouble = reason
		if f.view.CompareAndSwap(old, &v) {
			return
		}
	}
}

// slowest is the position that all projections of the flow had reached lately.
func (f *flow) slowest() es.Position {
	v := f.view.Load()
	if v == nil {
		return es.StartPosition
	}
	slowest := noLimit
	for _, at := range v.at {
		slowest = min(slowest, at)
	}
	return slowest
}
