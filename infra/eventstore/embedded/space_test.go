package embedded

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"
)

// diskOf is a disk with so much room left.
type diskOf struct {
	vfs.FS
	free uint64
	err  error
}

func (d *diskOf) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.free, TotalBytes: 1 << 40}, d.err
}

// Before the disk or the limit is reached, the store warns: at 80 % and 90 % of
// the limit, at four times and twice the reserve.
func TestSpaceLevels(t *testing.T) {
	for _, c := range []struct {
		used, limit, free, reserve uint64
		stuck                      bool
		want                       SpaceLevel
		text                       string
	}{
		{used: 79, limit: 100, want: SpaceEnough},
		{used: 80, limit: 100, want: SpaceLow, text: "80 B of the 100 B"},
		{used: 90, limit: 100, want: SpaceCritical, text: "--eventstore-max-bytes"},
		{used: 100, limit: 100, want: SpaceFull, text: "takes no more events"},
		{used: 1 << 40, want: SpaceEnough},
		{free: 400, reserve: 100, want: SpaceEnough},
		{free: 399, reserve: 100, want: SpaceLow, text: "399 B left"},
		{free: 199, reserve: 100, want: SpaceCritical, text: "make room"},
		{free: 99, reserve: 100, want: SpaceFull, text: "takes no more events"},
		{free: 0, reserve: 0, want: SpaceEnough},
		{used: 85, limit: 100, free: 150, reserve: 100, want: SpaceCritical, text: "150 B left"},
		{stuck: true, want: SpaceFull, text: "full"},
	} {
		p := &space{fs: &diskOf{free: c.free}, reserve: c.reserve, limit: c.limit}
		before, after := p.measure(c.used, c.stuck)
		if before.Level != SpaceEnough || after.Level != c.want || !strings.Contains(after.Text, c.text) || (after.Text == "") != (c.want == SpaceEnough) {
			t.Errorf("%+v: %+v", c, after)
		}
		if p.now() != after {
			t.Errorf("%+v: not kept", c)
		}
	}
}

// A disk that can't be asked is taken to be as it was.
func TestSpaceUnknown(t *testing.T) {
	disk := &diskOf{free: 50}
	p := &space{fs: disk, reserve: 100}
	p.measure(0, false)
	disk.err = errors.New("not now")
	if _, after := p.measure(0, false); after.Level != SpaceFull {
		t.Errorf("%+v", after)
	}
	disk.err = vfs.ErrUnsupported
	if _, after := p.measure(0, false); after.Level != SpaceEnough {
		t.Errorf("%+v", after)
	}
}

// At its limit the store refuses events, but takes what makes room, answers
// repetitions, and lets everybody read.
func TestSizeLimit(t *testing.T) {
	opt := memOptions(newMemFS(t))
	s := newTestStore(t, opt)
	events := []proposed{{id: uuid.New(), kind: "made", contentType: contentJSON, data: []byte("{}")}}
	first := request(t, s, &appendRequest{stream: "s", events: events})
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	opt.limit = 1
	s = newTestStore(t, opt)
	defer abandon(t, s)
	_, err := s.append(context.Background(), &appendRequest{stream: "s", events: []proposed{{id: uuid.New(), kind: "made", contentType: contentJSON}}})
	if !errors.Is(err, errNoRoom) || !strings.Contains(err.Error(), "--eventstore-max-bytes") {
		t.Fatalf("an append: %v", err)
	}
	if got := request(t, s, &appendRequest{stream: "s", events: events}); got != first {
		t.Errorf("a repetition: %+v, first it was %+v", got, first)
	}
	if got := whole(t, s); len(got) != 1 {
		t.Errorf("%d events are read", len(got))
	}
	writeMetadata(t, s, "s", `{"$maxCount":1}`)
	request(t, s, &appendRequest{kind: requestDelete, stream: "s"})
	if s.failure() != nil {
		t.Error(s.failure())
	}
}
