// Package transporttest has a small generated schema and people to ask as, for tests
// of the transports and of what runs on top of them.
package transporttest
