package files

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
)

// Ledger keeps how many bytes each space holds, everything that lies in its
// hidden folder included, and refuses what does not fit with a fault for people.
type Ledger interface {
	// Room refuses when so many more bytes do not fit. It takes nothing.
	Room(ctx context.Context, tenant, space uuid.UUID, bytes int64) error
	// Charge takes room before bytes are written.
	Charge(ctx context.Context, tenant, space uuid.UUID, bytes int64) error
	// Return gives room back once bytes are gone.
	Return(ctx context.Context, tenant, space uuid.UUID, bytes int64) error
	// Recount counts everything in the space anew, by [Store.Measure].
	Recount(ctx context.Context, tenant, space uuid.UUID) error
}

// Digests learns the SHA-256 of files.
type Digests interface {
	Learn(ctx context.Context, tenant, space uuid.UUID, p storage.Path, version string, sum []byte) error
}

// Account lets a ledger count what the store does from now on, and digests
// learn what it reads. It is called before the store is used; either may be nil.
func (s *Store) Account(l Ledger, d Digests) { s.ledger, s.digests = l, d }

// ahead is how much room is taken at once: less would ask the ledger for every
// few KiB, more would keep it from others.
const ahead = 8 << 20

// settleFor bounds how long the ledger is waited for when the work is done.
const settleFor = 10 * time.Second

// meter takes room for bytes that are about to be written to a space.
type meter struct {
	s             *Store
	ctx           context.Context // lives for one call
	tenant, space uuid.UUID
	charged, used int64
}

func (s *Store) meter(ctx context.Context, tenant, space uuid.UUID) *meter {
	return &meter{s: s, ctx: ctx, tenant: tenant, space: space}
}

// room refuses early what would be refused in the middle.
func (m *meter) room(bytes int64) error {
	if m.s.ledger == nil || bytes <= 0 {
		return nil
	}
	return m.s.ledger.Room(m.ctx, m.tenant, m.space, bytes)
}

// take takes room for n bytes; no more than most are to come, these included
// (below zero: nobody knows).
func (m *meter) take(n, most int64) error {
	if m.s.ledger == nil {
		return nil
	}
	m.used += n
	need := m.used - m.charged
	if need <= 0 {
		return nil
	}
	want := max(need, ahead)
	if most >= 0 {
		want = max(need, min(want, most))
	}
	err := m.s.ledger.Charge(m.ctx, m.tenant, m.space, want)
	if fault.Is(err, fault.CodeQuotaExceeded) && want > need {
		want = need
		err = m.s.ledger.Charge(m.ctx, m.tenant, m.space, want)
	}
	if err != nil {
		m.used -= n
		return err
	}
	m.charged += want
	return nil
}

// free gives back the room of bytes that are gone before the work begins.
func (m *meter) free(bytes int64) { m.s.give(m.ctx, m.tenant, m.space, bytes) }

// settle ends the work: so many bytes lie in the space because of it, fewer
// than none when it replaced others.
func (m *meter) settle(left int64) {
	m.s.give(m.ctx, m.tenant, m.space, m.charged-left)
	m.charged, m.used = 0, 0
}

// give tells the ledger of bytes that are gone, or of more that came. What it
// misses the next count finds.
func (s *Store) give(ctx context.Context, tenant, space uuid.UUID, bytes int64) {
	if s.ledger == nil || bytes == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleFor)
	defer cancel()
	if err := s.ledger.Return(ctx, tenant, space, bytes); err != nil {
		s.log.WarnContext(ctx, "room in a space not given back", "space", space, "bytes", bytes, "error", err)
	}
}

// recount lets the ledger count after work that it was not told of in pieces.
func (s *Store) recount(ctx context.Context, tenant, space uuid.UUID) {
	if s.ledger == nil {
		return
	}
	if err := s.ledger.Recount(context.WithoutCancel(ctx), tenant, space); err != nil {
		s.log.WarnContext(ctx, "space not counted", "space", space, "error", err)
	}
}

// measureDepth is how deep a space is measured. People make paths of
// storage.MaxPathDepth; a workload that nests deeper than this hides bytes from
// the count, never from the disk's own limits.
const measureDepth = 1024

// Measure counts the bytes of all files in a space, of unfinished uploads and
// copies, and of what is being deleted, too.
func (s *Store) Measure(ctx context.Context, tenant, space uuid.UUID) (bytes int64, err error) {
	top, err := s.space(ctx, tenant, space)
	if err != nil {
		return 0, err
	}
	defer top.close()
	m := measurer{ctx: ctx, top: top}
	if err := m.folder(top, nil); err != nil {
		return m.bytes, explain("measure", "", err)
	}
	return m.bytes, nil
}

// measurer counts the files of one folder after the other. No folder stays open
// while those in it are counted, however deep they lie: each is found from the top.
type measurer struct {
	ctx   context.Context // lives for one call
	top   *dir
	bytes int64
}

func (m *measurer) folder(d *dir, path []string) error {
	folders, err := m.files(d, path)
	if err != nil || len(path) >= measureDepth {
		return err
	}
	for _, name := range folders {
		here := append(path, name)
		sub, err := m.open(here)
		if err != nil {
			if errors.Is(err, errNotDir) || errors.Is(err, fs.ErrNotExist) {
				continue // moved or removed meanwhile
			}
			return err
		}
		err = m.folder(sub, here)
		if err != nil {
			return err
		}
	}
	return nil
}

// files counts the files of a folder, closes it unless it is the space itself,
// and gives the folders in it.
func (m *measurer) files(d *dir, path []string) (folders []string, err error) {
	if d != m.top {
		defer d.close()
	}
	err = d.each(func(name string) error {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		st, err := d.lstat(name)
		switch {
		case err != nil:
			return ignoreMissing(err)
		case st.dir:
			folders = append(folders, name)
		case !note(path, name):
			m.bytes += sizeOf(st)
		}
		return nil
	})
	return folders, err
}

// note tells whether a file is the platform's own about an upload or a copy:
// those are not what people put there.
func note(path []string, name string) bool {
	if len(path) != 2 || path[0] != storage.ReservedName || path[1] == trashArea {
		return false
	}
	for _, end := range []string{".json", ".journal", ".receipt"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

func (m *measurer) open(path []string) (*dir, error) {
	at, err := m.top.again()
	if err != nil {
		return nil, err
	}
	for _, name := range path {
		next, err := at.child(name)
		at.close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}
