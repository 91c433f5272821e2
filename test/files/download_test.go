package files_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tallyard/domain/fault"
)

func TestHTTPDownload(t *testing.T) {
	t.Run("STO-02_whole_ranged_and_conditional", func(t *testing.T) {
		s := newSite(t, nil)
		s.want(s.do("PUT", "/files/home/d/f.bin", "0123456789"), 201)
		r := s.do("GET", "/files/home/d/f.bin", "")
		s.want(r, 200)
		tag := r.Header.Get("ETag")
		if r.body != "0123456789" || tag == "" || r.Header.Get("Content-Type") != "application/octet-stream" ||
			r.Header.Get("X-Content-Type-Options") != "nosniff" || r.Header.Get("Cache-Control") != "no-store" ||
			!strings.HasPrefix(r.Header.Get("Content-Disposition"), `attachment; filename="f.bin"`) {
			t.Fatal(r.body, r.Header)
		}
		for _, tc := range []struct {
			header, value, body string
			status              int
		}{
			{"Range", "bytes=2-4", "234", 206},
			{"Range", "bytes=-3", "789", 206},
			{"Range", "bytes=8-", "89", 206},
			{"If-None-Match", tag, "", 304},
			{"If-None-Match", `"other"`, "0123456789", 200},
			{"If-Match", tag, "0123456789", 200},
		} {
			r := s.do("GET", "/files/home/d/f.bin", "", tc.header, tc.value)
			if r.StatusCode != tc.status || r.body != tc.body {
				t.Errorf("%s: %s: %d %q", tc.header, tc.value, r.StatusCode, r.body)
			}
		}
		r = s.do("GET", "/files/home/d/f.bin", "", "Range", "bytes=20-")
		s.wantError(r, 416, fault.CodeBadRequest)
		if r.Header.Get("Content-Range") != "bytes */10" {
			t.Fatal(r.Header)
		}
		s.wantError(s.do("GET", "/files/home/d/f.bin", "", "If-Match", `"other"`), 412, fault.CodeBadRequest)
		r = s.do("GET", "/files/home/d/f.bin", "", "If-Range", `"other"`, "Range", "bytes=2-4")
		if r.StatusCode != http.StatusOK || r.body != "0123456789" {
			t.Fatal(r.StatusCode, r.body)
		}
		r = s.do("HEAD", "/files/home/d/f.bin", "")
		if r.StatusCode != http.StatusOK || r.ContentLength != 10 || r.Header.Get("ETag") != tag {
			t.Fatal(r.Header)
		}
	})

	t.Run("STO-02_digest_when_asked", func(t *testing.T) {
		s := newSite(t, nil)
		s.want(s.do("PUT", "/files/home/f", "hello"), 201)
		for _, method := range []string{"GET", "HEAD"} {
			if got := s.do(method, "/files/home/f", "", "Want-Repr-Digest", "sha-512=3, sha-256=10").Header.Get("Repr-Digest"); got != digestOf("hello") {
				t.Fatal(got)
			}
			if got := s.do(method, "/files/home/f", "", "Want-Repr-Digest", "sha-256=0").Header.Get("Repr-Digest"); got != "" {
				t.Fatal(got)
			}
		}
		r := s.do("GET", "/files/home/f", "", "Want-Repr-Digest", "sha-256=1", "Range", "bytes=0-1")
		if r.body != "he" || r.Header.Get("Repr-Digest") != digestOf("hello") {
			t.Fatal(r.body, r.Header)
		}
	})

	t.Run("STO-02_nothing_runs_on_our_origin", func(t *testing.T) {
		s := newSite(t, nil)
		for name, want := range map[string]string{
			"x.html": "application/octet-stream", "x.svg": "application/octet-stream", "x.xhtml": "application/octet-stream",
			"x.js": "application/octet-stream", "x.pdf": "application/octet-stream", "x": "application/octet-stream",
			"x.PY": "text/plain; charset=utf-8", "x.png": "image/png", "x.json": "application/json",
		} {
			s.want(s.do("PUT", "/files/home/"+name, "<script>alert(1)</script>"), 201)
			r := s.do("GET", "/files/home/"+name, "")
			if r.Header.Get("Content-Type") != want || !strings.HasPrefix(r.Header.Get("Content-Disposition"), "attachment;") ||
				!strings.Contains(r.Header.Get("Content-Security-Policy"), "sandbox") {
				t.Errorf("%s: %v", name, r.Header)
			}
		}
	})

	t.Run("STO-02_names_in_the_disposition", func(t *testing.T) {
		s := newSite(t, nil)
		for path, want := range map[string]string{
			"%E6%95%B0%E6%8D%AE.txt": `attachment; filename="__.txt"; filename*=UTF-8''%E6%95%B0%E6%8D%AE.txt`,
			"a%22;b%20c":             `attachment; filename="a__b c"; filename*=UTF-8''a%22%3Bb%20c`,
		} {
			s.want(s.do("PUT", "/files/home/"+path, "x"), 201)
			if got := s.do("GET", "/files/home/"+path, "").Header.Get("Content-Disposition"); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		}
	})

	t.Run("STO-01_only_plain_files_are_served", func(t *testing.T) {
		s := newSite(t, nil)
		s.want(s.do("PUT", "/files/home/d/f", "x"), 201)
		if err := os.Symlink("/etc/passwd", filepath.Join(s.root, "out")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("..", filepath.Join(s.root, "up")); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(filepath.Join(s.root, "fifo"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.wantError(s.do("GET", "/files/home/out", ""), 409, fault.CodeInvalidState)
		s.wantError(s.do("GET", "/files/home/up/x", ""), 404, fault.CodeNotFound)
		s.wantError(s.do("GET", "/files/home/fifo", ""), 409, fault.CodeInvalidState)
		s.wantError(s.do("GET", "/files/home/d", ""), 400, fault.CodeInvalidValue)
		s.wantError(s.do("GET", "/files/home/", ""), 400, fault.CodeInvalidValue)
		s.wantError(s.do("GET", "/files/home/none", ""), 404, fault.CodeNotFound)
		s.wantError(s.do("GET", "/files/home/d/f/", ""), 400, fault.CodeInvalidPath)
		s.wantError(s.do("GET", "/files/"+s.shared.String()+"/none", ""), 404, fault.CodeNotFound)
	})

	t.Run("STO-01_dotdot_in_the_address", func(t *testing.T) {
		s := newSite(t, nil)
		for _, path := range []string{"/files/home/../../etc/passwd", "/files/home/%2e%2e/x", "/files/%2e%2e/x", "/files/../x"} {
			r := s.do("GET", path, "")
			if r.StatusCode == http.StatusOK || r.StatusCode >= 500 {
				t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
			}
		}
	})
}
