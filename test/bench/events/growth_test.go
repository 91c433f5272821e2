package events

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkGrowth takes the figures of P1 and P2 at logs of growing length
// (EVENTS), with what such a log costs: bytes on disk, time to open, memory.
func BenchmarkGrowth(b *testing.B) {
	sizes := sizes(b)
	for b.Loop() {
		dir, have := place(b), 0
		for _, n := range sizes {
			if n > have {
				grow(b, dir, have, n)
				have = n
			}
			cost(b, dir, have)
			speed(b, dir, have)
		}
	}
}

// grow makes the log longer.
func grow(b *testing.B, dir string, have, want int) {
	b.Helper()
	address, closeStore := open(b, dir)
	c := connect(b, address)
	started := time.Now()
	// Whole streams of their own, also where the last one was cut short.
	seed(b, c, (have+perStream-1)/perStream, want-have)
	took := time.Since(started)
	c.Close()
	closeStore()
	fmt.Printf("\n%d events: %d appended in %.1f s, %.0f events/s through the client, load %s\n",
		want, want-have, took.Seconds(), float64(want-have)/took.Seconds(), load())
}

// cost opens the store alone in a process of its own, and reads all of it.
func cost(b *testing.B, dir string, events int) {
	b.Helper()
	size := onDisk(b, filepath.Join(dir, "log"))
	socket := filepath.Join(dir, "run", "c")
	child := startChild(b, dir, socket)
	c := connect(b, "unix:"+socket)
	all := catchUp(b, c, events).rate
	c.Close()
	read := child.usage()
	child.stop()
	fmt.Printf("%d events: %.0f B an event on disk, %.1f MiB in all; open in %s, then heap %.1f MiB, RSS %.1f MiB; "+
		"caught up by another process at %.0f events/s, then heap %.1f MiB, RSS %.1f MiB\n",
		events, float64(size)/float64(events), mib(size), child.first.Opened.Round(time.Millisecond),
		mib(child.first.Heap), mib(child.first.RSS), all, mib(read.Heap), mib(read.RSS))
}

// speed takes the figures of P1 and P2 on the grown log. The appends make it
// a little longer.
func speed(b *testing.B, dir string, events int) {
	b.Helper()
	address, closeStore := open(b, dir)
	defer closeStore()
	few := min(events, catchUpEvents)
	r := newReaders(b, address, few)
	defer func() {
		for _, c := range r {
			c.Close()
		}
	}()
	read, _ := r.measure(b, few)
	fmt.Printf("%d events: catch-up %.0f events/s, %.2f of the in-memory server, %.2f of the one that has them encoded\n", events,
		median(read[wayEmbedded]), median(ratios(read[wayEmbedded], read[wayMessages])), median(ratios(read[wayEmbedded], read[wayEncoded])))
	var w ways
	w.add(wayCeiling, throughClient(r[wayMessages]))
	w.add(wayEmbedded, throughClient(r[wayEmbedded]))
	for _, writers := range []int{1, 16, 128} {
		f, _ := w.measure(b, writers)
		fmt.Printf("%d events: %3d writers %.0f appends/s, %.2f of the in-memory server\n",
			events, writers, median(f[wayEmbedded]), median(ratios(f[wayEmbedded], f[wayCeiling])))
	}
}

// onDisk is how many bytes the files in a directory have.
func onDisk(b *testing.B, dir string) (size uint64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += uint64(info.Size())
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return size
}
