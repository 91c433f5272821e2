package embedded

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"
)

// faultBatch is how many cases one process runs: a store that has failed holds
// its goroutines and its memory until the process ends.
const faultBatch = 40

// childRunFaults runs the cases on its standard input and prints the results.
func childRunFaults() error {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for in.More() {
		var c faultCase
		if err := in.Decode(&c); err != nil {
			return err
		}
		if err := out.Encode(runFault(c)); err != nil {
			return err
		}
	}
	return nil
}

// runFaults runs cases in processes of their own and hands out the results.
func runFaults(t *testing.T, cases []faultCase, each func(faultResult)) {
	t.Helper()
	for batch := range slices.Chunk(cases, faultBatch) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childMode+"="+childFaults)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		enc := json.NewEncoder(in)
		for _, c := range batch {
			if err := enc.Encode(c); err != nil {
				t.Fatal(err)
			}
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		n := 0
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var r faultResult
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				t.Fatalf("%s: %v", lines.Bytes(), err)
			}
			n++
			each(r)
		}
		if err := cmd.Wait(); err != nil || n != len(batch) {
			t.Fatalf("the process ended after %d of %d cases, at %+v: %v", n, len(batch), batch[min(n, len(batch)-1)], err)
		}
	}
}

// TestFaults hurts the file system at each of its writes, one after the other,
// in every way there is, and looks at what is left. Without EVENTSTORE_FAULTS
// it takes a sample; that many cases otherwise, or all with -1.
func TestFaults(t *testing.T) {
	want := 30
	if v, err := strconv.Atoi(os.Getenv("EVENTSTORE_FAULTS")); err == nil {
		want = v
	}
	seed := uint64(time.Now().UnixNano())
	if v, err := strconv.ParseUint(os.Getenv("EVENTSTORE_FAULTS_SEED"), 10, 64); err == nil {
		seed = v
	}
	writes := countWrites(t, seed)
	faults := []string{faultError, faultErrors, faultFull, faultFullLong, faultCrash}
	var cases []faultCase
	for i := range writes {
		for _, fault := range faults {
			cases = append(cases, faultCase{Fault: fault, Index: i + 1, Seed: seed})
		}
	}
	rng := seeded(seed)
	rng.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	if want >= 0 && want < len(cases) {
		cases = cases[:want]
	}
	var total tally
	took := map[string]time.Duration{}
	hit, failed, ops := map[string]int{}, map[string]int{}, map[string]int{}
	runFaults(t, cases, func(r faultResult) {
		if r.Error != "" {
			t.Errorf("%s at write %d (%s), seed %d: %s", r.Fault, r.Index, r.Op, r.Seed, r.Error)
		}
		total.add(r.tally)
		if r.Op == "" {
			return
		}
		hit[r.Fault]++
		took[r.Fault] += r.Took
		ops[r.Op]++
		if r.Failed {
			failed[r.Fault]++
		}
	})
	t.Logf("seed %d, %d writes, %d cases; events acknowledged %d, found %d, twice %d, half-visible %d, there without an answer %d",
		seed, writes, len(cases), total.Acknowledged, total.Found, total.Twice, total.Half, total.Unknown)
	for _, f := range faults {
		t.Logf("%-18s hit %4d, stopped the store %4d, took %v each", f, hit[f], failed[f], (took[f] / time.Duration(max(hit[f], 1))).Round(time.Millisecond))
	}
	t.Logf("writes that were hit: %s", counts(ops))
	if hit[faultCrash] > 0 && failed[faultCrash] > 0 {
		t.Error("a crash that is only a copy has stopped the store")
	}
}

// countWrites counts the writes of the workload, and makes sure that it does
// what it is for.
func countWrites(t *testing.T, seed uint64) int64 {
	t.Helper()
	var writes int64
	f := runCounting(t, seed)
	for _, op := range []string{"write log", "sync log", "create log", "reuse log", "create sst", "write sst", "write MANIFEST", "sync MANIFEST", "remove sst", "create marker", "write at log.end"} {
		if f.ops[op] == 0 {
			t.Errorf("the workload has no %q: %s", op, counts(f.ops))
		}
	}
	writes = f.writes.Load()
	return writes
}

func counts(m map[string]int) string {
	out := ""
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out += fmt.Sprintf("%s %d, ", k, m[k])
	}
	return out
}
