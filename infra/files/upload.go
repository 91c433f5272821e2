package files

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/google/uuid"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
)

// UnknownTotal is the total of an upload whose size is known when it has ended.
// Such an upload can't be continued.
const UnknownTotal = -1

// Receive writes bytes of an upload, from the offset on, until the body ends.
// There is one unfinished upload for a path; offset 0 starts it anew. When all
// of the total has come the file takes its place, at once and durably, with
// folders made as needed; a file that stood there is replaced. Until then
// nothing is visible, and received says where to go on.
//
// A checksum, when given, is the SHA-256 of the whole file. sum is that of the
// finished file and nil while it is unfinished; created is false when it
// replaced another. When the body fails, what came before is kept (unless the
// total is UnknownTotal) and received counts it.
func (s *Store) Receive(ctx context.Context, tenant, space uuid.UUID, p storage.Path, offset, total int64, body io.Reader, checksum []byte) (received int64, sum []byte, created bool, err error) {
	if err := checkRange(p, offset, total); err != nil {
		return 0, nil, false, err
	}
	top, err := s.space(ctx, tenant, space)
	if err != nil {
		return 0, nil, false, err
	}
	defer top.close()
	if err := checkTarget(top, p); err != nil {
		return 0, nil, false, err
	}
	area, err := hidden(top, uploadsArea)
	if err != nil {
		return 0, nil, false, explain("upload", p.String(), err)
	}
	defer area.close()
	u, err := openUpload(area, p, offset, total)
	if err != nil {
		return 0, nil, false, explain("upload", p.String(), err)
	}
	defer u.close()
	u.room = s.meter(ctx, tenant, space)
	defer func() { u.room.settle(u.left() - u.found) }()
	// The room of what an earlier upload left counts for one that starts anew.
	if err := u.room.room(total - u.size); err != nil {
		if u.anew && u.found == 0 {
			return 0, nil, false, errors.Join(err, u.discard())
		}
		received, err = u.keep(err)
		return received, nil, false, err
	}
	if err := u.begin(p); err != nil {
		return 0, nil, false, explain("upload", p.String(), err)
	}
	if err := u.write(ctx, body); err != nil || (total != UnknownTotal && u.size < total) {
		received, err = u.keep(err)
		return received, nil, false, explain("upload", p.String(), err)
	}
	if sum, err = u.verify(ctx, checksum); err != nil {
		return 0, nil, false, explain("upload", p.String(), err)
	}
	created, version, err := u.finish(top, p)
	if err == nil && s.digests != nil && version != "" {
		// Not to know it costs reading the file again.
		if err := s.digests.Learn(context.WithoutCancel(ctx), tenant, space, p, version, sum); err != nil {
			s.log.WarnContext(ctx, "digest of an upload not kept", "error", err)
		}
	}
	return u.size, sum, created, explain("upload", p.String(), err)
}

// Accepts refuses early what Receive would refuse before the first byte. It
// changes nothing, and holds nothing for the upload that follows.
func (s *Store) Accepts(ctx context.Context, tenant, space uuid.UUID, p storage.Path, offset, total int64) error {
	if err := checkRange(p, offset, total); err != nil {
		return err
	}
	top, err := s.space(ctx, tenant, space)
	if err != nil {
		return err
	}
	defer top.close()
	if err := checkTarget(top, p); err != nil {
		return err
	}
	found, _, err := s.Received(ctx, tenant, space, p)
	if err != nil && !fault.Is(err, fault.CodeNotFound) {
		return err
	}
	return s.meter(ctx, tenant, space).room(total - found)
}

func checkRange(p storage.Path, offset, total int64) error {
	switch {
	case p.IsRoot():
		return isFolder(p)
	case offset < 0, total < UnknownTotal, total == UnknownTotal && offset != 0, total != UnknownTotal && offset > total:
		return fault.New(fault.Invalid, fault.CodeOutOfRange, "The upload's range doesn't fit its total; give an offset within the total.")
	}
	return nil
}

// checkTarget tells early that the file could not take its place.
func checkTarget(top *dir, p storage.Path) error {
	for above := p.Dir(); !above.IsRoot(); above = above.Dir() {
		e, err := statPath(top, above)
		if err == nil && e.Kind != KindDirectory {
			return fileInTheWay(above)
		}
		if err == nil {
			break
		}
		if !fault.Is(err, fault.CodeNotFound) {
			return err
		}
	}
	e, err := statPath(top, p)
	switch {
	case fault.Is(err, fault.CodeNotFound):
		return nil
	case err != nil:
		return err
	case e.Kind == KindDirectory:
		return isFolder(p)
	case e.Kind == KindOther:
		return isOther(p.String())
	}
	return nil
}

// upload is an open, locked unfinished upload.
type upload struct {
	area        *dir
	key         string
	f           *os.File
	size, total int64
	digest      hash.Hash // of everything written; nil when only the end is written now
	anew        bool      // what an earlier upload left gives way

	room     *meter
	found    int64 // bytes that an earlier part left
	replaced int64 // bytes of the file whose place this one took
	gone     bool  // discarded
}

// left are the bytes that lie in the space because of the upload.
func (u *upload) left() int64 {
	if u.gone {
		return 0
	}
	return u.size - u.replaced
}

// uploadNote lies beside the bytes of an unfinished upload.
type uploadNote struct {
	Path  string `json:"path"`
	Total int64  `json:"total"`
}

func openUpload(area *dir, p storage.Path, offset, total int64) (*upload, error) {
	key := keyOf(p.String())
	f, st, err := area.openOrCreate(key + ".data")
	if err != nil {
		return nil, err
	}
	u := &upload{area: area, key: key, f: f, size: st.size, total: total}
	if err := u.take(offset); err != nil {
		u.close()
		return nil, err
	}
	return u, nil
}

func (u *upload) take(offset int64) error {
	held, err := lock(u.f)
	if err != nil {
		return err
	}
	if !held {
		return busy("Another upload to this path is under way")
	}
	mine, err := statFile(u.f)
	if err != nil {
		return err
	}
	// The upload before us may have ended and given its file away.
	if now, err := u.area.lstat(u.key + ".data"); err != nil || !now.sameFile(mine) {
		return busy("Another upload to this path has just ended")
	}
	u.size, u.found = mine.size, mine.size
	if offset == 0 {
		u.anew = true // by begin, once there is room
		return nil
	}
	note, err := readNote(u.area, u.key)
	if err != nil || note.Total != u.total {
		u.size = 0 // an upload of another size: start again
	}
	if u.size != offset {
		return wrongOffset(u.size)
	}
	return nil
}

// begin makes an upload that starts anew an empty one. Until then what an
// earlier one left can be continued: hours of it must not go for an upload that
// is refused.
func (u *upload) begin(p storage.Path) error {
	if !u.anew {
		return nil
	}
	if err := u.f.Truncate(0); err != nil {
		return err
	}
	u.room.free(u.found)
	u.size, u.found, u.digest = 0, 0, sha256.New()
	return u.writeNote(uploadNote{Path: p.String(), Total: u.total})
}

func wrongOffset(right int64) error {
	at := strconv.FormatInt(right, 10)
	return fault.New(fault.Conflict, fault.CodeConflict, "The upload goes on at byte "+at+"; send the bytes from there.").
		With(DetailUploadOffset, at)
}

func (u *upload) close() { _ = u.f.Close() } // synced before, where it matters

func (u *upload) write(ctx context.Context, body io.Reader) error {
	buffer := make([]byte, 256<<10)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := body.Read(buffer)
		if n > 0 {
			if u.total != UnknownTotal && u.size+int64(n) > u.total {
				return errors.Join(tooManyBytes(u.total), u.discard())
			}
			if err := u.room.take(int64(n), u.total-u.size); err != nil {
				return err
			}
			if _, err := u.f.WriteAt(buffer[:n], u.size); err != nil {
				return err // keep counts what was written of it
			}
			u.size += int64(n)
			if u.digest != nil {
				_, _ = u.digest.Write(buffer[:n]) // never fails
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read body: %w", err)
		}
	}
}

func tooManyBytes(total int64) error {
	return fault.New(fault.Invalid, fault.CodeOutOfRange,
		fmt.Sprintf("More bytes came than the %d that were announced; start the upload again with the right size.", total))
}

// keep makes the received bytes durable and counts them, so that the offset
// that the client is told stays true. An upload that can't be continued is not kept.
func (u *upload) keep(cause error) (received int64, err error) {
	if cause != nil && u.total == UnknownTotal {
		return 0, errors.Join(cause, u.discard())
	}
	if err := u.f.Sync(); err != nil {
		return 0, errors.Join(cause, err)
	}
	st, err := statFile(u.f)
	if err == nil {
		u.size = st.size
	}
	return st.size, errors.Join(cause, err)
}

func (u *upload) discard() error {
	u.gone = true
	return errors.Join(u.area.unlink(u.key+".data"), u.area.unlink(u.key+".json"))
}

// verify gives the sum of the whole file and compares it with the announced one.
func (u *upload) verify(ctx context.Context, checksum []byte) ([]byte, error) {
	if u.digest == nil {
		u.digest = sha256.New()
		whole := io.NewSectionReader(u.f, 0, u.size)
		if _, err := io.Copy(u.digest, &ctxReader{ctx: ctx, from: whole}); err != nil {
			return nil, err
		}
	}
	sum := u.digest.Sum(nil)
	if checksum != nil && subtle.ConstantTimeCompare(sum, checksum) != 1 {
		return nil, errors.Join(fault.New(fault.Invalid, fault.CodeInvalidValue,
			"The received bytes don't have the announced SHA-256; upload the file again."), u.discard())
	}
	return sum, nil
}

type ctxReader struct {
	ctx  context.Context // lives for one call
	from io.Reader
}

func (r *ctxReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(b)
}

// finish gives the file its place.
// The version is that of the file in its place, empty when it was changed there
// already.
func (u *upload) finish(top *dir, p storage.Path) (created bool, version string, err error) {
	if err := errors.Join(u.f.Chmod(fileMode), u.f.Sync()); err != nil {
		return false, "", err
	}
	parent, err := build(top, p.Dir())
	if err != nil {
		return false, "", err
	}
	defer parent.close()
	name, st, err := parent.lookup(p.Base())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		created = true
	case err != nil:
		return false, "", err
	case st.dir:
		return false, "", isFolder(p)
	case !st.regular:
		return false, "", isOther(p.String())
	case st.exec: // a program that is replaced stays one
		if err := u.f.Chmod(programMode); err != nil {
			return false, "", err
		}
	}
	whole, err := statFile(u.f)
	if err != nil {
		return false, "", err
	}
	if err := rename(u.area, u.key+".data", parent, name); err != nil {
		return false, "", err
	}
	if !created {
		u.replaced = st.size
	}
	// The renaming is a change of the inode; any other one shows in size or time.
	if placed, err := statFile(u.f); err == nil && placed.size == whole.size && placed.modified == whole.modified {
		version = placed.version()
	}
	return created, version, errors.Join(u.area.unlink(u.key+".json"), parent.sync(), u.area.sync())
}

func (u *upload) writeNote(n uploadNote) (err error) {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := u.area.unlink(u.key + ".json"); err != nil {
		return err
	}
	f, err := u.area.create(u.key + ".json")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
