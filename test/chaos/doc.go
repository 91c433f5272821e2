// Package chaos kills the whole program at random moments, under a writer in
// another process, and then counts: everything that was acknowledged is there,
// nothing is there twice, and the read model equals one built anew.
//
// It runs by `make test-chaos`; CHAOS_KILLS and CHAOS_WRITES say how often the
// program is killed and how many writes must be acknowledged, at least.
package chaos
