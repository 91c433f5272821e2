// Package files serves users' files over HTTP under /files/<space>/<path>.
//
//	GET, HEAD  a file, also in ranges and under conditions; HEAD tells how far an
//	           unfinished upload to the path has come (Upload-Offset, Upload-Length)
//	PUT        a whole file, or a part of one with Content-Range: the answer to a
//	           part is 202 with Upload-Offset until the last part has come
//
// A space is named "home" (the caller's own) or by an id. Errors are JSON:
// {"error":{"code","message","requestId"}}. Folders are listed, made and deleted
// by GraphQL, not here.
package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
	"tallyard/graph/transport"
)

// Prefix is where the handler is mounted.
const Prefix = "/files/"

// Authenticator puts whom a bearer token belongs to into the context.
type Authenticator func(ctx context.Context, token string) (context.Context, error)

// Spaces finds a space by the name in the address, for the person in the
// context. A space that the person may not use is not found.
type Spaces interface {
	Resolve(ctx context.Context, name string, write bool) (tenant, space uuid.UUID, err error)
}

// Store keeps the files; infra/files has it.
type Store interface {
	OpenRead(ctx context.Context, tenant, space uuid.UUID, p storage.Path) (io.ReadSeekCloser, fs.FileInfo, error)
	Received(ctx context.Context, tenant, space uuid.UUID, p storage.Path) (offset, total int64, err error)
	Accepts(ctx context.Context, tenant, space uuid.UUID, p storage.Path, offset, total int64) error
	Receive(ctx context.Context, tenant, space uuid.UUID, p storage.Path, offset, total int64, body io.Reader, checksum []byte) (received int64, sum []byte, created bool, err error)
}

// Sums remembers the SHA-256 of files as they are; infra/files tells it of uploads.
type Sums interface {
	// Known gives the sum of the file that the information is of; nil when it is
	// not known, or was of what the file was before.
	Known(ctx context.Context, tenant, space uuid.UUID, p storage.Path, info fs.FileInfo) ([]byte, error)
	// Keep keeps the sum of a file that was read whole.
	Keep(ctx context.Context, tenant, space uuid.UUID, p storage.Path, info fs.FileInfo, sum []byte) error
}

// Recorder makes events of what is done. Announced is called before the first
// byte of a file is taken, Uploaded when the file has its place. Refused gets why
// a file is not taken, and gives what is answered. What is read is not recorded.
type Recorder interface {
	Announced(ctx context.Context, tenant, space uuid.UUID, p storage.Path) error
	Uploaded(ctx context.Context, tenant, space uuid.UUID, p storage.Path, size int64, sha256 []byte) error
	Refused(ctx context.Context, tenant, space uuid.UUID, why error) error
}

// Config is what the handler needs.
type Config struct {
	Authenticate Authenticator
	Spaces       Spaces
	Store        Store
	Recorder     Recorder
	Sums         Sums         // nil remembers nothing
	Logger       *slog.Logger // nil discards

	MaxFileBytes  int64         // of one file; 0 means 1 TiB
	IdleTimeout   time.Duration // without a few KiB moving a transfer is ended; 0 means 30 s
	UploadTimeout time.Duration // of one request that uploads; 0 means 24 h
	Digests       int           // computed at the same time on request; 0 means 2

	// Request puts what is known of the request into its context, and is
	// transport's own way when nil, without proxies.
	Request func(*http.Request) context.Context
}

// Handler serves files.
type Handler struct {
	cfg      Config
	hashing  chan struct{}
	stopping context.Context // ends with Stop
	stop     context.CancelFunc
}

// Stop ends the uploads that are under way: what came of them is kept, and they
// can be continued. Downloads go on.
func (h *Handler) Stop() { h.stop() }

// New makes the handler.
func New(cfg Config) *Handler {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxFileBytes == 0 {
		cfg.MaxFileBytes = 1 << 40
	}
	if cfg.IdleTimeout == 0 {
		cfg.IdleTimeout = 30 * time.Second
	}
	if cfg.UploadTimeout == 0 {
		cfg.UploadTimeout = 24 * time.Hour
	}
	if cfg.Digests == 0 {
		cfg.Digests = 2
	}
	if cfg.Request == nil {
		cfg.Request = requestContext
	}
	h := &Handler{cfg: cfg, hashing: make(chan struct{}, cfg.Digests)}
	h.stopping, h.stop = context.WithCancel(context.Background())
	return h
}

func requestContext(r *http.Request) context.Context {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	agent := r.UserAgent()
	return transport.WithRequestInfo(r.Context(), transport.RequestInfo{
		RequestID: transport.NewRequestID(), RemoteAddr: host, UserAgent: agent[:min(len(agent), 256)],
	})
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(h.cfg.Request(r))
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	header.Set("X-Request-Id", transport.RequestInfoFrom(r.Context()).RequestID)
	defer h.recovered(w, r)
	if err := h.serve(w, r); err != nil {
		h.fail(w, r, err)
	}
}

func (h *Handler) recovered(w http.ResponseWriter, r *http.Request) {
	value := recover()
	if value == nil {
		return
	}
	if err, ok := value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(value) // net/http ends the connection
	}
	h.cfg.Logger.ErrorContext(r.Context(), "serving a file panicked", "panic", value,
		"requestId", transport.RequestInfoFrom(r.Context()).RequestID, "stack", string(debug.Stack()))
	h.fail(w, r, fault.New(fault.Internal, fault.CodeInternal, masked))
}

// target is what a request is about.
type target struct {
	tenant, space uuid.UUID
	path          storage.Path
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	write := r.Method == http.MethodPut
	if !write && r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD, PUT")
		return &statusError{status: http.StatusMethodNotAllowed, fault: fault.New(fault.Invalid, fault.CodeBadRequest,
			"Files are read with GET and HEAD and written with PUT; use GraphQL for anything else.")}
	}
	token, ok := bearer(r)
	if !ok {
		return fault.New(fault.Unauthenticated, fault.CodeUnauthenticated, "Send a token in the header Authorization: Bearer.")
	}
	ctx, err := h.cfg.Authenticate(r.Context(), token)
	if err != nil {
		return err
	}
	r = r.WithContext(ctx)
	space, path, f := splitAddress(r.URL)
	if f != nil {
		return f
	}
	t := target{path: path}
	if t.tenant, t.space, err = h.cfg.Spaces.Resolve(ctx, space, write); err != nil {
		return err
	}
	if write {
		return h.put(w, r, t)
	}
	return h.get(w, r, t)
}

func bearer(r *http.Request) (string, bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

// splitAddress reads space and path. Each part is decoded by itself, so that an
// encoded slash is seen and refused instead of becoming a separator.
func splitAddress(u *url.URL) (space string, path storage.Path, f *fault.Fault) {
	rest, ok := strings.CutPrefix(u.EscapedPath(), Prefix)
	if !ok {
		return "", path, fault.New(fault.NotFound, fault.CodeNotFound, "Files lie under /files/<space>/<path>.")
	}
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		plain, err := url.PathUnescape(part)
		if err != nil || strings.Contains(plain, "/") {
			return "", path, fault.New(fault.Invalid, fault.CodeInvalidPath,
				"A part of the address isn't a valid name; percent-encode each name by itself, without slashes in names.")
		}
		parts[i] = plain
	}
	if parts[0] == "" {
		return "", path, fault.New(fault.Invalid, fault.CodeInvalidPath, "Name a space: /files/home/<path> is your own.")
	}
	path, f = storage.ParseFolder(strings.Join(parts[1:], "/"))
	return parts[0], path, f
}
