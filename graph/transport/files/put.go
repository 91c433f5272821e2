package files

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"tallyard/domain/fault"
)

// put serves PUT.
func (h *Handler) put(w http.ResponseWriter, r *http.Request, t target) error {
	part, checksum, err := h.announced(r)
	if err != nil {
		w.Header().Set("Connection", "close") // the body isn't read
		return err
	}
	body := &steadyBody{
		from: http.MaxBytesReader(w, r.Body, h.cfg.MaxFileBytes), control: http.NewResponseController(w), idle: h.cfg.IdleTimeout,
	}
	defer context.AfterFunc(h.stopping, body.stop)()
	body.renew()
	bytes := bufio.NewReader(body)
	if part.offset == 0 {
		if err := h.announce(w, r, t, part.total, bytes); err != nil {
			return err
		}
	}
	// The store must not stop because the client does: what came is kept, and a
	// file that is complete takes its place. A client that left shows in the body.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), h.cfg.UploadTimeout)
	defer cancel()
	received, sum, created, err := h.cfg.Store.Receive(ctx, t.tenant, t.space, t.path, part.offset, part.total, bytes, checksum)
	if err != nil {
		return h.cut(w, received, err) // the deadline stays: net/http may read what is left of the body
	}
	body.release()
	if sum == nil {
		w.Header().Set(headerUploadOffset, strconv.FormatInt(received, 10))
		answer(w, r, http.StatusAccepted, map[string]any{"uploadOffset": received, "total": part.total})
		return nil
	}
	record, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 10*time.Second)
	defer cancel()
	if err := h.cfg.Recorder.Uploaded(record, t.tenant, t.space, t.path, received, sum); err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	w.Header().Set("Repr-Digest", reprDigest(sum))
	if h.cfg.Sums != nil {
		w.Header().Set("ETag", etagOf(sum))
	}
	answer(w, r, status, map[string]any{"path": t.path.String(), "size": received, "sha256": hex.EncodeToString(sum)})
	return nil
}

// announce puts an upload on record before the disk is touched: a crash in
// between leaves no file that nobody asked for. One that can't be, or of which no
// byte comes, is not announced.
func (h *Handler) announce(w http.ResponseWriter, r *http.Request, t target, total int64, body *bufio.Reader) error {
	if err := h.cfg.Store.Accepts(r.Context(), t.tenant, t.space, t.path, 0, total); err != nil {
		w.Header().Set("Connection", "close") // the body isn't read
		return h.cfg.Recorder.Refused(r.Context(), t.tenant, t.space, err)
	}
	if _, err := body.Peek(1); err != nil && !errors.Is(err, io.EOF) {
		return h.cut(w, 0, fmt.Errorf("read body: %w", err))
	}
	if err := h.cfg.Recorder.Announced(r.Context(), t.tenant, t.space, t.path); err != nil {
		w.Header().Set("Connection", "close") // the body isn't read
		return err
	}
	return nil
}

// announced reads what the headers say of the bytes that follow.
func (h *Handler) announced(r *http.Request) (part contentRange, checksum []byte, err error) {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return part, nil, badRequest(http.StatusUnsupportedMediaType, "Send the file's own bytes, without a Content-Encoding.")
	}
	if checksum, err = parseReprDigest(r.Header); err != nil {
		return part, nil, err
	}
	part, ranged, err := parseContentRange(r.Header)
	switch {
	case err != nil:
		return part, nil, err
	case ranged && r.ContentLength < 0:
		return part, nil, badRequest(http.StatusLengthRequired, "A part of a file needs the header Content-Length.")
	case ranged && r.ContentLength != part.length:
		return part, nil, badRequest(http.StatusBadRequest, "Content-Length and Content-Range don't fit each other.")
	case !ranged:
		part.total = r.ContentLength // -1 when the client doesn't know it
	}
	if part.total > h.cfg.MaxFileBytes {
		return part, nil, h.tooLarge()
	}
	return part, checksum, nil
}

func (h *Handler) tooLarge() error {
	return &statusError{status: http.StatusRequestEntityTooLarge, fault: fault.New(fault.Limit, fault.CodeLimitExceeded,
		fmt.Sprintf("A file may have at most %d bytes; split it.", h.cfg.MaxFileBytes))}
}

// cut turns an upload that stopped into an answer, for clients that still listen.
func (h *Handler) cut(w http.ResponseWriter, received int64, err error) error {
	if _, ok := fault.All(err); ok {
		return err
	}
	w.Header().Set("Connection", "close")
	var tooMany *http.MaxBytesError
	var message string
	status := http.StatusBadRequest
	switch {
	case errors.As(err, &tooMany):
		return h.tooLarge()
	case h.stopping.Err() != nil:
		w.Header().Set(headerUploadOffset, strconv.FormatInt(received, 10))
		return fault.New(fault.Unavailable, fault.CodeUnavailable, "The program is being stopped; go on from the byte in Upload-Offset in a moment.")
	case errors.Is(err, os.ErrDeadlineExceeded):
		status, message = http.StatusRequestTimeout, "The bytes came too slowly; go on from the byte in Upload-Offset."
	case errors.Is(err, io.ErrUnexpectedEOF):
		message = "The body ended early; go on from the byte in Upload-Offset."
	default:
		return err
	}
	w.Header().Set(headerUploadOffset, strconv.FormatInt(received, 10))
	return badRequest(status, message)
}

// steadyBody is a body that must keep flowing: the deadline moves on only when
// a few KiB have come since it was set, so a trickle doesn't hold a connection.
type steadyBody struct {
	from    io.Reader
	control *http.ResponseController
	idle    time.Duration
	since   int

	mu      sync.Mutex
	stopped bool
}

const trickle = 4 << 10

// Read implements io.Reader.
func (b *steadyBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.since += n; b.since >= trickle {
		b.renew()
	}
	if errors.Is(err, io.EOF) {
		b.release()
	}
	return n, err
}

func (b *steadyBody) renew() {
	b.since = 0
	b.until(time.Now().Add(b.idle))
}

// until sets the deadline, unless the reading was stopped.
func (b *steadyBody) until(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stopped {
		_ = b.control.SetReadDeadline(at) // a connection without deadlines is a test's
	}
}

// stop ends the reading, also one that waits for bytes.
func (b *steadyBody) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	_ = b.control.SetReadDeadline(time.Unix(1, 0)) // as in until
}

// release takes the deadline off: once the body has been read, a deadline that
// passes would look like a client that left.
func (b *steadyBody) release() { b.until(time.Time{}) }
