// Package bench measures the whole program, as a process of its own, over HTTP
// and with a history of a size that is given: BENCH_ALGORITHMS says how many
// algorithms it has. `make bench` runs it; docs/benchmarks.md tells what came out.
package bench
