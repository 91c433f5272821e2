package files_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
	web "tallyard/graph/transport/files"
)

func digestOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

func mustPath(t *testing.T, text string) storage.Path {
	t.Helper()
	p, f := storage.ParsePath(text)
	if f != nil {
		t.Fatal(f)
	}
	return p
}

func TestHTTPUpload(t *testing.T) {
	t.Run("STO-02_whole_file", func(t *testing.T) {
		s := newSite(t, nil)
		r := s.do("PUT", "/files/home/code/train.py", "print()", "Repr-Digest", digestOf("print()"))
		s.want(r, 201)
		if s.onDisk("code/train.py") != "print()" || !strings.Contains(r.body, `"size":7`) || r.Header.Get("Repr-Digest") != digestOf("print()") {
			t.Fatal(r.body, r.Header)
		}
		s.want(s.do("PUT", "/files/home/code/train.py", "again"), 200)
		if s.onDisk("code/train.py") != "again" {
			t.Fatal("not replaced")
		}
		if got := fmt.Sprint(s.seen()); got != "[up code/train.py up code/train.py]" {
			t.Fatal(got)
		}
	})

	t.Run("GEN-01_chinese_and_NFD_names", func(t *testing.T) {
		s := newSite(t, nil)
		s.want(s.do("PUT", "/files/home/%E6%95%B0%E6%8D%AE/cafe%CC%81.txt", "x"), 201)
		s.want(s.do("PUT", "/files/home/%E6%95%B0%E6%8D%AE/caf%C3%A9.txt", "y"), 200)
		if s.onDisk("数据/caf\u00e9.txt") != "y" {
			t.Fatal("two files of one name")
		}
	})

	t.Run("STO-02_resumable", func(t *testing.T) {
		s := newSite(t, nil)
		s.want(s.do("HEAD", "/files/home/f", ""), 404)
		r := s.do("PUT", "/files/home/f", "hello ", "Content-Range", "bytes 0-5/11")
		s.want(r, 202)
		if r.Header.Get("Upload-Offset") != "6" {
			t.Fatal(r.Header)
		}
		r = s.do("HEAD", "/files/home/f", "")
		s.want(r, 204)
		if r.Header.Get("Upload-Offset") != "6" || r.Header.Get("Upload-Length") != "11" {
			t.Fatal(r.Header)
		}
		s.want(s.do("GET", "/files/home/f", ""), 404)
		r = s.do("PUT", "/files/home/f", "wor", "Content-Range", "bytes 3-5/11")
		s.wantError(r, 409, fault.CodeConflict)
		if r.Header.Get("Upload-Offset") != "6" {
			t.Fatal(r.Header)
		}
		r = s.do("PUT", "/files/home/f", "", "Content-Range", "bytes */11")
		s.wantError(r, 409, fault.CodeConflict)
		if len(s.seen()) != 0 {
			t.Fatal(s.seen())
		}
		s.want(s.do("PUT", "/files/home/f", "world", "Content-Range", "bytes 6-10/11", "Repr-Digest", digestOf("hello world")), 201)
		if s.onDisk("f") != "hello world" || len(s.seen()) != 1 {
			t.Fatal(s.onDisk("f"), s.seen())
		}
	})

	t.Run("STO-02_refusals", func(t *testing.T) {
		s := newSite(t, func(c *web.Config) { c.MaxFileBytes = 100 })
		s.want(s.do("PUT", "/files/home/d/f", "x"), 201)
		for _, tc := range []struct {
			name, path, body string
			headers          []string
			status           int
			code             fault.Code
		}{
			{"no token", "/files/home/x", "x", []string{"Authorization", ""}, 401, fault.CodeUnauthenticated},
			{"bad token", "/files/home/x", "x", []string{"Authorization", "Bearer eve"}, 401, fault.CodeUnauthenticated},
			{"basic", "/files/home/x", "x", []string{"Authorization", "Basic ada"}, 401, fault.CodeUnauthenticated},
			{"STO-01 somebody else's", "/files/home/x", "x", []string{"Authorization", "Bearer bob"}, 404, fault.CodeNotFound},
			{"STO-01 unknown space", "/files/nope/x", "x", nil, 404, fault.CodeNotFound},
			{"STO-01 read-only space", "/files/" + s.shared.String() + "/x", "x", nil, 403, fault.CodeForbidden},
			{"STO-01 encoded dotdot", "/files/home/%2e%2e%2fx", "x", nil, 400, fault.CodeInvalidPath},
			{"STO-01 encoded slash", "/files/home/a%2Fb", "x", nil, 400, fault.CodeInvalidPath},
			{"STO-01 NUL", "/files/home/a%00b", "x", nil, 400, fault.CodeInvalidCharacters},
			{"STO-01 backslash", "/files/home/a%5Cb", "x", nil, 400, fault.CodeInvalidCharacters},
			{"STO-01 invalid UTF-8", "/files/home/%FF", "x", nil, 400, fault.CodeInvalidCharacters},
			{"STO-01 reserved", "/files/home/.tallyard/uploads/x", "x", nil, 400, fault.CodeInvalidPath},
			{"the space itself", "/files/home", "x", nil, 400, fault.CodeInvalidValue},
			{"no space", "/files/", "x", nil, 400, fault.CodeInvalidPath},
			{"a folder", "/files/home/d", "x", nil, 400, fault.CodeInvalidValue},
			{"below a file", "/files/home/d/f/x", "x", nil, 409, fault.CodeNameTaken},
			{"encoded body", "/files/home/x", "x", []string{"Content-Encoding", "gzip"}, 415, fault.CodeBadRequest},
			{"digest of another body", "/files/home/x", "x", []string{"Repr-Digest", digestOf("y")}, 400, fault.CodeInvalidValue},
			{"broken digest", "/files/home/x", "x", []string{"Repr-Digest", "sha-256=abc"}, 400, fault.CodeBadRequest},
			{"too large", "/files/home/x", strings.Repeat("x", 101), nil, 413, fault.CodeLimitExceeded},
			{"too large in parts", "/files/home/x", "x", []string{"Content-Range", "bytes 0-0/101"}, 413, fault.CodeLimitExceeded},
			{"range of other length", "/files/home/x", "x", []string{"Content-Range", "bytes 0-1/5"}, 400, fault.CodeBadRequest},
			{"range backwards", "/files/home/x", "x", []string{"Content-Range", "bytes 3-2/5"}, 400, fault.CodeBadRequest},
			{"range over the end", "/files/home/x", "x", []string{"Content-Range", "bytes 5-5/5"}, 400, fault.CodeBadRequest},
			{"range without a total", "/files/home/x", "x", []string{"Content-Range", "bytes 0-0/*"}, 400, fault.CodeBadRequest},
			{"range of items", "/files/home/x", "x", []string{"Content-Range", "items 0-0/1"}, 400, fault.CodeBadRequest},
			{"range with a sign", "/files/home/x", "x", []string{"Content-Range", "bytes +0-0/1"}, 400, fault.CodeBadRequest},
			{"range over 63 bits", "/files/home/x", "x", []string{"Content-Range", "bytes 0-0/9223372036854775808"}, 400, fault.CodeBadRequest},
		} {
			t.Run(tc.name, func(t *testing.T) {
				s.wantError(s.do("PUT", tc.path, tc.body, tc.headers...), tc.status, tc.code)
			})
		}
		if got := fmt.Sprint(s.seen()); got != "[up d/f no no no]" {
			t.Fatal(got)
		}
		for _, method := range []string{"DELETE", "POST", "PATCH", "OPTIONS"} {
			r := s.do(method, "/files/home/d/f", "")
			s.wantError(r, 405, fault.CodeBadRequest)
			if r.Header.Get("Allow") == "" {
				t.Fatal("no Allow")
			}
		}
	})

	t.Run("G8_unknown_length_over_the_limit", func(t *testing.T) {
		s := newSite(t, func(c *web.Config) { c.MaxFileBytes = 1000 })
		req, _ := http.NewRequest(http.MethodPut, s.url+"/files/home/x", io.MultiReader(strings.NewReader(strings.Repeat("x", 1001))))
		req.Header.Set("Authorization", "Bearer ada")
		s.wantError(s.send(req), 413, fault.CodeLimitExceeded)
		s.want(s.do("HEAD", "/files/home/x", ""), 404)
		req, _ = http.NewRequest(http.MethodPut, s.url+"/files/home/x", io.MultiReader(strings.NewReader(strings.Repeat("x", 1000))))
		req.Header.Set("Authorization", "Bearer ada")
		s.want(s.send(req), 201)
	})

	t.Run("G18_last_part_came_but_nobody_finished", func(t *testing.T) {
		s := newSite(t, nil)
		ctx := context.Background()
		// The bytes are all there, as after a crash before the end.
		if _, _, _, err := s.store.Receive(ctx, s.tenant, s.home, mustPath(t, "f"), 0, 6, strings.NewReader("hello"), nil); err != nil {
			t.Fatal(err)
		}
		data, err := filepath.Glob(filepath.Join(s.root, ".tallyard/uploads/*.data"))
		if err != nil || len(data) != 1 {
			t.Fatal(data, err)
		}
		if err := os.WriteFile(data[0], []byte("hello!"), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := s.do("HEAD", "/files/home/f", ""); r.Header.Get("Upload-Offset") != "6" || r.Header.Get("Upload-Length") != "6" {
			t.Fatal(r.Header)
		}
		s.want(s.do("PUT", "/files/home/f", "", "Content-Range", "bytes */6"), http.StatusCreated)
		if s.onDisk("f") != "hello!" {
			t.Fatal(s.onDisk("f"))
		}
	})

	t.Run("AUD-01_an_upload_that_was_not_recorded_is_not_confirmed", func(t *testing.T) {
		s := newSite(t, nil)
		s.recorderFails = errors.New("the log is away")
		s.wantError(s.do("PUT", "/files/home/x", "x"), 500, fault.CodeInternal)
	})
}

// raw opens a connection and sends the head of an upload and some of its body.
func (s *site) raw(path string, length int, part string, headers ...string) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	head := fmt.Sprintf("PUT %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ada\r\nContent-Length: %d\r\n", path, length)
	for _, h := range headers {
		head += h + "\r\n"
	}
	if _, err := io.WriteString(conn, head+"\r\n"+part); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

func TestHTTPUploadCut(t *testing.T) {
	t.Run("STO-02_a_stop_ends_an_upload_that_stands_still_and_keeps_it", func(t *testing.T) {
		s := newSite(t, nil)
		conn := s.raw("/files/home/f", 11, "hello ")
		defer conn.Close() //nolint:errcheck // a test's
		eventually(t, "bytes arrive", func() bool { return s.do("HEAD", "/files/home/f", "").Header.Get("Upload-Offset") == "6" })
		s.handler.Stop()
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Upload-Offset") != "6" {
			t.Errorf("%s, %v", r.Status, r.Header)
		}
	})
	t.Run("G14_client_gone_keeps_the_offset", func(t *testing.T) {
		s := newSite(t, nil)
		conn := s.raw("/files/home/f", 11, "hello ")
		eventually(t, "bytes arrive", func() bool { return s.do("HEAD", "/files/home/f", "").Header.Get("Upload-Offset") == "6" })
		_ = conn.Close()
		eventually(t, "upload let go", func() bool {
			return s.do("PUT", "/files/home/f", "world", "Content-Range", "bytes 6-10/11").StatusCode == http.StatusCreated
		})
		if s.onDisk("f") != "hello world" {
			t.Fatal(s.onDisk("f"))
		}
	})

	t.Run("G14_client_gone_after_the_last_byte", func(t *testing.T) {
		s := newSite(t, nil)
		conn := s.raw("/files/home/f", 5, "hello")
		_ = conn.Close()
		eventually(t, "the file and its event are there", func() bool { return s.onDisk("f") == "hello" && len(s.seen()) == 1 })
	})

	t.Run("G8_slow_body_is_closed", func(t *testing.T) {
		s := newSite(t, func(c *web.Config) { c.IdleTimeout = 300 * time.Millisecond })
		conn := s.raw("/files/home/f", 100_000, "hello ")
		defer conn.Close()
		stop := make(chan struct{})
		defer close(stop)
		go func() { // a trickle doesn't help
			for {
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Millisecond):
					if _, err := io.WriteString(conn, "."); err != nil {
						return
					}
				}
			}
		}()
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusRequestTimeout || res.Header.Get("Upload-Offset") == "" || !res.Close {
			t.Fatal(res.Status, res.Header)
		}
		at := res.Header.Get("Upload-Offset")
		if got := s.do("HEAD", "/files/home/f", "").Header.Get("Upload-Offset"); got != at {
			t.Fatal(got, at)
		}
	})

	t.Run("G8_steady_body_outlasts_the_idle_limit", func(t *testing.T) {
		s := newSite(t, func(c *web.Config) { c.IdleTimeout = 300 * time.Millisecond })
		conn := s.raw("/files/home/f", 20*8192, "")
		defer conn.Close()
		for range 20 {
			time.Sleep(50 * time.Millisecond)
			if _, err := io.WriteString(conn, strings.Repeat("x", 8192)); err != nil {
				t.Fatal(err)
			}
		}
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusCreated {
			t.Fatal(res.Status)
		}
		time.Sleep(500 * time.Millisecond) // the connection goes on working after the deadline
		if _, err := io.WriteString(conn, "HEAD /files/home/f HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ada\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		again, err := http.ReadResponse(in, &http.Request{Method: http.MethodHead})
		if err != nil || again.StatusCode != http.StatusOK {
			t.Fatal(again, err)
		}
		_ = again.Body.Close()
	})

	t.Run("G8_cut_body_says_where_to_go_on", func(t *testing.T) {
		s := newSite(t, nil)
		conn := s.raw("/files/home/f", 11, "hello ")
		defer conn.Close()
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusBadRequest || res.Header.Get("Upload-Offset") != "6" {
			t.Fatal(res.Status, res.Header)
		}
	})
}
