package main

import "time"

// chores are what goes on beside the writers.
func (s *soak) chores() []chore {
	return []chore{
		{"write and delete a stream", time.Second, s.waste},
	}
}
