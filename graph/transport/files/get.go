package files

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"tallyard/domain/fault"
)

// get serves GET and HEAD.
func (h *Handler) get(w http.ResponseWriter, r *http.Request, t target) (err error) {
	ctx := r.Context()
	header := w.Header()
	uploading := false
	if r.Method == http.MethodHead && !t.path.IsRoot() {
		if uploading, err = h.uploadHeaders(ctx, header, t); err != nil {
			return err
		}
	}
	file, info, err := h.cfg.Store.OpenRead(ctx, t.tenant, t.space, t.path)
	if uploading && fault.Is(err, fault.CodeNotFound) {
		w.WriteHeader(http.StatusNoContent) // no file yet, only a part of one
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only read
	sum, err := h.sum(ctx, t, file, info, wantsDigest(r.Header))
	if err != nil {
		return err
	}
	header.Set("ETag", etag(info))
	if sum != nil {
		header.Set("Repr-Digest", reprDigest(sum))
		header.Set("ETag", etagOf(sum))
	}
	header.Set("Content-Type", contentType(t.path.Base()))
	header.Set("Content-Disposition", disposition(t.path.Base()))
	out := &download{ResponseWriter: w, h: h, r: r, control: http.NewResponseController(w)}
	http.ServeContent(out, r, "", info.ModTime(), file)
	out.end()
	return nil
}

// uploadHeaders tells how far an unfinished upload has come, when there is one.
func (h *Handler) uploadHeaders(ctx context.Context, header http.Header, t target) (bool, error) {
	offset, total, err := h.cfg.Store.Received(ctx, t.tenant, t.space, t.path)
	if fault.Is(err, fault.CodeNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	header.Set(headerUploadOffset, strconv.FormatInt(offset, 10))
	if total >= 0 {
		header.Set("Upload-Length", strconv.FormatInt(total, 10))
	}
	return true, nil
}

// sum gives the SHA-256 of a file: the one that is known, or, when it is wanted,
// one that is made by reading all of it.
func (h *Handler) sum(ctx context.Context, t target, file io.ReadSeeker, info fs.FileInfo, wanted bool) ([]byte, error) {
	if h.cfg.Sums != nil {
		if sum, err := h.cfg.Sums.Known(ctx, t.tenant, t.space, t.path, info); err != nil || sum != nil {
			return sum, err
		}
	}
	if !wanted {
		return nil, nil
	}
	sum, err := h.digest(ctx, file)
	if err != nil || h.cfg.Sums == nil {
		return sum, err
	}
	// Written to meanwhile, the file is no longer what the information is of.
	if f, ok := file.(interface{ Stat() (fs.FileInfo, error) }); ok {
		if now, err := f.Stat(); err == nil && now.Size() == info.Size() && now.ModTime().Equal(info.ModTime()) {
			err = h.cfg.Sums.Keep(ctx, t.tenant, t.space, t.path, now, sum)
			if err != nil {
				h.cfg.Logger.WarnContext(ctx, "digest of a file not kept", "error", err)
			}
		}
	}
	return sum, nil
}

// digest reads the whole file. Few do so at once, since it is cheap to ask for.
func (h *Handler) digest(ctx context.Context, file io.ReadSeeker) ([]byte, error) {
	select {
	case h.hashing <- struct{}{}:
		defer func() { <-h.hashing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	sum := sha256.New()
	buffer := make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := file.Read(buffer)
		_, _ = sum.Write(buffer[:n]) // never fails
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	_, err := file.Seek(0, io.SeekStart)
	return sum.Sum(nil), err
}

// download passes a file on. It ends a client that stops reading, and turns
// net/http's own plain errors into ours.
type download struct {
	http.ResponseWriter
	h       *Handler
	r       *http.Request
	control *http.ResponseController
	decided bool
	replied bool // the answer was given here; what net/http still writes is dropped
	sending bool
}

// WriteHeader implements http.ResponseWriter.
func (d *download) WriteHeader(status int) {
	if d.decided {
		return
	}
	d.decided = true
	var err error
	switch status {
	case http.StatusOK, http.StatusPartialContent:
		d.sending = d.r.Method == http.MethodGet
	case http.StatusRequestedRangeNotSatisfiable:
		err = badRequest(status, "The range lies outside of the file; the header Content-Range tells its size.")
	case http.StatusPreconditionFailed:
		err = badRequest(status, "The file isn't the one that the request asks for; read its ETag again.")
	case http.StatusInternalServerError:
		err = errors.New("files: the file can't be read or positioned")
	}
	if err != nil {
		d.replied = true
		d.h.fail(d.ResponseWriter, d.r, err)
		return
	}
	d.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (d *download) Write(b []byte) (int, error) {
	if !d.decided {
		d.WriteHeader(http.StatusOK)
	}
	if d.replied {
		return len(b), nil
	}
	_ = d.control.SetWriteDeadline(time.Now().Add(d.h.cfg.IdleTimeout)) // a writer without deadlines is a test's
	return d.ResponseWriter.Write(b)
}

// end sends what is buffered while the deadline still counts, and then takes it
// off: the connection may serve other requests.
func (d *download) end() {
	if d.sending {
		_ = d.control.Flush() // the client is gone
		_ = d.control.SetWriteDeadline(time.Time{})
	}
}
