// Package explorer serves GraphiQL from the program itself, so that the API
// can be tried without any network but the one to this server.
//
// The bundle in dist is built by build.sh and committed; check.sh, and a test,
// tell whether it is current.
package explorer

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed all:dist
var dist embed.FS

// Person is somebody that a visitor of the explorer may ask as.
type Person struct {
	Name  string `json:"name"`
	Token string `json:"token"`
	Note  string `json:"note,omitempty"`
}

// Config is what the explorer is told. People carry tokens that every visitor
// gets to see: they are for development only.
type Config struct {
	// Endpoint is where the API is, on the same origin. Default: /graphql.
	Endpoint string
	// People a visitor may choose from; without any, a token must be typed in.
	People []Person
	// Example is the document the explorer opens with.
	Example string
}

// policy lets the page talk to its own origin only. The editor puts styles
// into the page, and its fonts and cursors are data: addresses.
const policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; img-src 'self' data:; " +
	"object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// file is one file of the bundle, compressed.
type file struct {
	packed []byte
	etag   string
	media  string
}

type handler struct {
	files  map[string]file // by path below /explorer/
	config []byte
}

// Handler serves the page at / and at /explorer/, and all it needs below
// /explorer/.
func Handler(cfg Config) (http.Handler, error) {
	if cfg.Endpoint == "" {
		cfg.Endpoint = "/graphql"
	}
	if cfg.People == nil {
		cfg.People = []Person{}
	}
	config, err := json.Marshal(struct {
		Endpoint string   `json:"endpoint"`
		People   []Person `json:"people"`
		Example  string   `json:"example"`
	}{cfg.Endpoint, cfg.People, cfg.Example})
	if err != nil {
		return nil, fmt.Errorf("explorer: %w", err)
	}
	files, err := load()
	if err != nil {
		return nil, fmt.Errorf("explorer: %w", err)
	}
	return &handler{files: files, config: config}, nil
}

// load reads the bundle.
func load() (map[string]file, error) {
	files := map[string]file{}
	err := fs.WalkDir(dist, "dist", func(name string, entry fs.DirEntry, err error) error {
		plain, packed := strings.CutSuffix(name, ".gz")
		if err != nil || entry.IsDir() || !packed {
			return err
		}
		data, err := dist.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		files[strings.TrimPrefix(plain, "dist/")] = file{data, `"` + hex.EncodeToString(sum[:12]) + `"`, mediaType(plain)}
		return nil
	})
	if err == nil && files["index.html"].packed == nil {
		err = fmt.Errorf("the bundle has no page; run web/explorer/build.sh")
	}
	return files, err
}

// mediaType does not ask the machine's own table, which differs.
func mediaType(name string) string {
	switch ext := path.Ext(name); ext {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".ttf":
		return "font/ttf"
	default:
		return mime.TypeByExtension(ext)
	}
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "Only GET is served here.", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/explorer"), "/")
	switch name {
	case "config.json":
		header.Set("Content-Type", "application/json; charset=utf-8")
		header.Set("Cache-Control", "no-store")
		_, _ = w.Write(h.config)
		return
	case "":
		name = "index.html"
	}
	f, found := h.files[name]
	if !found {
		http.Error(w, "There is no such file.", http.StatusNotFound)
		return
	}
	if strings.HasPrefix(name, "assets/") { // their names hold a digest
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		header.Set("Cache-Control", "no-cache")
	}
	f.serve(w, r)
}

// serve writes the file as it is stored, or unpacked for the rare client that
// cannot do so itself.
func (f file) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", f.media)
	header.Set("Vary", "Accept-Encoding")
	header.Set("ETag", f.etag)
	if strings.Contains(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		header.Set("Content-Encoding", "gzip")
		header.Set("Content-Length", fmt.Sprint(len(f.packed)))
		_, _ = w.Write(f.packed)
		return
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(f.packed))
	if err != nil {
		http.Error(w, "The file is damaged.", http.StatusInternalServerError)
		return
	}
	_, _ = io.Copy(w, unpacked) //nolint:gosec // it is our own, of known size
}

func acceptsGzip(header string) bool {
	for _, part := range strings.Split(header, ",") {
		coding, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		if coding != "gzip" && coding != "*" {
			continue
		}
		q := strings.ReplaceAll(params, " ", "")
		return q != "q=0" && q != "q=0.0" && q != "q=0.00" && q != "q=0.000"
	}
	return false
}
