package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
)

func readNote(area *dir, key string) (n uploadNote, err error) {
	f, _, err := area.open(key+".json", unix.O_RDONLY)
	if err != nil {
		return uploadNote{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	err = json.NewDecoder(io.LimitReader(f, 1<<16)).Decode(&n)
	return n, err
}

// Received tells how much of an unfinished upload has come, and its total
// (UnknownTotal when that wasn't said). Without one the fault is NOT_FOUND.
func (s *Store) Received(ctx context.Context, tenant, space uuid.UUID, p storage.Path) (offset, total int64, err error) {
	area, err := s.uploads(ctx, tenant, space)
	if err != nil {
		return 0, 0, err
	}
	defer area.close()
	key := keyOf(p.String())
	note, err := readNote(area, key)
	if err == nil {
		var st stat
		if st, err = area.lstat(key + ".data"); err == nil && st.regular {
			return st.size, note.Total, nil
		}
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return 0, 0, fault.New(fault.NotFound, fault.CodeNotFound, "There's no unfinished upload to this path; start one from its first byte.")
	}
	return 0, 0, explain("upload", p.String(), err)
}

// DiscardUpload removes an unfinished upload. Nothing there is no error.
func (s *Store) DiscardUpload(ctx context.Context, tenant, space uuid.UUID, p storage.Path) error {
	area, err := s.uploads(ctx, tenant, space)
	if err != nil {
		return err
	}
	defer area.close()
	u := upload{area: area, key: keyOf(p.String())}
	if st, err := area.lstat(u.key + ".data"); err == nil && st.regular {
		u.size = st.size
	}
	err = u.discard()
	if err == nil {
		s.give(ctx, tenant, space, u.size)
	}
	return explain("discard upload", p.String(), err)
}

func (s *Store) uploads(ctx context.Context, tenant, space uuid.UUID) (*dir, error) {
	top, err := s.space(ctx, tenant, space)
	if err != nil {
		return nil, err
	}
	defer top.close()
	area, err := hidden(top, uploadsArea)
	return area, explain("open uploads", "", err)
}

// Sweep removes what lies forgotten in a space's hidden folder: uploads that
// nobody went on with, copies that were never finished or whose receipt is no
// longer asked for, and deleted files whose removal was cut short, all untouched
// since a moment. It gives the number of names it removed.
func (s *Store) Sweep(ctx context.Context, tenant, space uuid.UUID, untouchedSince time.Time) (removed int, err error) {
	top, err := s.space(ctx, tenant, space)
	if err != nil {
		return 0, err
	}
	defer top.close()
	trash, err := hidden(top, trashArea)
	if err != nil {
		return 0, explain("sweep", "", err)
	}
	defer trash.close()
	for _, name := range []string{uploadsArea, copiesArea, trashArea} {
		area, err := hidden(top, name)
		if err != nil {
			return removed, explain("sweep", "", err)
		}
		n, err := sweepArea(ctx, area, trash, untouchedSince)
		area.close()
		removed += n
		if err != nil {
			return removed, fmt.Errorf("files: sweep %s: %w", name, err)
		}
	}
	if removed > 0 {
		s.recount(ctx, tenant, space)
	}
	return removed, nil
}

func sweepArea(ctx context.Context, area, trash *dir, untouchedSince time.Time) (removed int, err error) {
	names, err := area.names()
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		st, err := area.lstat(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, err
		}
		// A partial copy is as young as the journal that is written along with it.
		if base, ok := strings.CutSuffix(name, ".partial"); ok && err == nil {
			if j, err := area.lstat(base + ".journal"); err == nil {
				st.changed = max(st.changed, j.changed)
			}
		}
		if err != nil || st.changed >= untouchedSince.UnixNano() {
			continue
		}
		if err := discard(ctx, area, name, trash, "swept."); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}
