package files

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// contentRange is a part of an upload. A part without bytes ("bytes */total")
// asks to finish what has come already.
type contentRange struct {
	offset, length, total int64
}

// parseContentRange reads "bytes a-b/total" or "bytes */total"; found is false without the header.
func parseContentRange(header http.Header) (c contentRange, found bool, err error) {
	values := header.Values("Content-Range")
	if len(values) == 0 {
		return c, false, nil
	}
	bad := badRequest(http.StatusBadRequest, "The header Content-Range must be \"bytes <first>-<last>/<total>\", with the total given.")
	text, ok := strings.CutPrefix(values[0], "bytes ")
	span, totalText, ok2 := strings.Cut(text, "/")
	if !ok || !ok2 || len(values) > 1 {
		return c, true, bad
	}
	if c.total, err = parseCount(totalText); err != nil {
		return c, true, bad
	}
	if span == "*" {
		c.offset = c.total
		return c, true, nil
	}
	first, last, ok := strings.Cut(span, "-")
	if !ok {
		return c, true, bad
	}
	c.offset, err = parseCount(first)
	end, err2 := parseCount(last)
	if err != nil || err2 != nil || end < c.offset || end >= c.total {
		return c, true, bad
	}
	c.length = end - c.offset + 1
	return c, true, nil
}

// parseCount reads digits and nothing else: no sign, no space.
func parseCount(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err // 63 bits fit
}

// parseReprDigest gives the SHA-256 that a client announces for the whole file (RFC 9530); nil without one.
func parseReprDigest(header http.Header) ([]byte, error) {
	for _, member := range members(header, "Repr-Digest") {
		name, value, _ := strings.Cut(member, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "sha-256") {
			continue // of the others none is known here, and the sender can't rely on it
		}
		value = strings.TrimSpace(value)
		inner, ok := strings.CutPrefix(value, ":")
		inner, ok2 := strings.CutSuffix(inner, ":")
		sum, err := base64.StdEncoding.DecodeString(inner)
		if !ok || !ok2 || err != nil || len(sum) != sha256.Size {
			return nil, badRequest(http.StatusBadRequest, "The header Repr-Digest must be \"sha-256=:<base64 of the digest>:\".")
		}
		return sum, nil
	}
	return nil, nil
}

// wantsDigest tells whether Want-Repr-Digest asks for SHA-256.
func wantsDigest(header http.Header) bool {
	for _, member := range members(header, "Want-Repr-Digest") {
		name, weight, _ := strings.Cut(member, "=")
		if strings.EqualFold(strings.TrimSpace(name), "sha-256") && strings.TrimSpace(weight) != "0" {
			return true
		}
	}
	return false
}

func members(header http.Header, name string) []string {
	return strings.Split(strings.Join(header.Values(name), ","), ",")
}

func reprDigest(sum []byte) string {
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum) + ":"
}

// safeTypes are shown by a browser without running anything. Everything else,
// HTML and SVG above all, leaves as plain bytes.
var safeTypes = map[string]string{
	".txt": "text/plain; charset=utf-8", ".log": "text/plain; charset=utf-8", ".md": "text/plain; charset=utf-8",
	".py": "text/plain; charset=utf-8", ".sh": "text/plain; charset=utf-8", ".yaml": "text/plain; charset=utf-8",
	".yml": "text/plain; charset=utf-8", ".toml": "text/plain; charset=utf-8", ".csv": "text/csv; charset=utf-8",
	".json": "application/json", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg",
	".gif": "image/gif", ".webp": "image/webp",
}

func contentType(name string) string {
	if t, ok := safeTypes[strings.ToLower(path.Ext(name))]; ok {
		return t
	}
	return "application/octet-stream"
}

// disposition makes a browser save the file, under its own name in any script (RFC 6266).
func disposition(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`"\%;`, r) {
			return '_'
		}
		return r
	}, name)
	extended := strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	return fmt.Sprintf(`attachment; filename="%s"; filename*=UTF-8''%s`, plain, extended)
}

// etag changes with every change of the file: uploads always make a new file,
// and what a workload writes moves its time, counted in nanoseconds.
func etag(info fs.FileInfo) string {
	return fmt.Sprintf("\"%x-%x\"", info.Size(), info.ModTime().UnixNano())
}

// etagOf is the tag of a file whose SHA-256 is known: the same content has the
// same one, wherever and whenever it was put there.
func etagOf(sum []byte) string { return `"sha256-` + hex.EncodeToString(sum) + `"` }
