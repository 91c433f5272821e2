package files

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tallyard/domain/fault"
)

func TestContentRange(t *testing.T) {
	for _, tc := range []struct {
		in                    string
		offset, length, total int64
		ok                    bool
	}{
		{"bytes 0-0/1", 0, 1, 1, true},
		{"bytes 5-9/10", 5, 5, 10, true},
		{"bytes 4294967296-4294967297/8589934592", 1 << 32, 2, 1 << 33, true},
		{"bytes */7", 7, 0, 7, true},
		{"bytes */0", 0, 0, 0, true},
		{"", 0, 0, 0, false},
		{"bytes", 0, 0, 0, false},
		{"bytes 0-1", 0, 0, 0, false},
		{"bytes 0-1/*", 0, 0, 0, false},
		{"bytes 1-0/2", 0, 0, 0, false},
		{"bytes 0-2/2", 0, 0, 0, false},
		{"bytes -1-0/2", 0, 0, 0, false},
		{"bytes 0x0-1/2", 0, 0, 0, false},
		{"bytes 0-1/ 2", 0, 0, 0, false},
		{"bytes=0-1/2", 0, 0, 0, false},
		{"bytes 0-1/2, 0-1/2", 0, 0, 0, false},
	} {
		got, found, err := parseContentRange(http.Header{"Content-Range": {tc.in}})
		if !found || (err == nil) != tc.ok || tc.ok && got != (contentRange{tc.offset, tc.length, tc.total}) {
			t.Errorf("%q: %+v %v %v", tc.in, got, found, err)
		}
	}
	if _, found, err := parseContentRange(http.Header{}); found || err != nil {
		t.Error(found, err)
	}
	if _, _, err := parseContentRange(http.Header{"Content-Range": {"bytes 0-0/1", "bytes 0-0/1"}}); err == nil {
		t.Error("two ranges")
	}
}

func FuzzContentRange(f *testing.F) {
	for _, seed := range []string{"bytes 0-0/1", "bytes */7", "bytes 5-9/10", "bytes 9-5/10", "bytes 18446744073709551615-0/1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, _, err := parseContentRange(http.Header{"Content-Range": {text}})
		if err == nil && (c.offset < 0 || c.length < 0 || c.total < 0 || c.offset+c.length > c.total || c.offset+c.length < 0) {
			t.Fatalf("%q: %+v", text, c)
		}
	})
}

func TestDigests(t *testing.T) {
	sum := sha256.Sum256(nil)
	good := base64.StdEncoding.EncodeToString(sum[:])
	for in, want := range map[string]string{
		"":                                   "",
		"sha-512=:AAAA:":                     "",
		"sha-256=:" + good + ":":             good,
		"SHA-256=:" + good + ":":             good,
		"md5=:AA==:, sha-256=:" + good + ":": good,
		"sha-256=" + good:                    "refused",
		"sha-256=:" + good:                   "refused",
		"sha-256=:AAAA:":                     "refused",
		"sha-256=:!:":                        "refused",
		"sha-256":                            "refused",
	} {
		got, err := parseReprDigest(http.Header{"Repr-Digest": {in}})
		if (err != nil) != (want == "refused") || err == nil && base64.StdEncoding.EncodeToString(got) != want {
			t.Errorf("%q: %x %v", in, got, err)
		}
	}
	for in, want := range map[string]bool{"": false, "sha-256": true, "sha-256=10": true, "sha-256=0": false, "sha-512=3": false, "sha-512=3,sha-256=1": true} {
		if got := wantsDigest(http.Header{"Want-Repr-Digest": {in}}); got != want {
			t.Errorf("%q: %v", in, got)
		}
	}
}

// No name may end the header or its quoted part.
func FuzzDisposition(f *testing.F) {
	for _, seed := range []string{"a.txt", `a"b`, "数据", "a\r\nSet-Cookie: x", "a;b", "%41", "a\\"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := disposition(name)
		rest, ok := strings.CutPrefix(got, `attachment; filename="`)
		plain, extended, ok2 := strings.Cut(rest, `"; filename*=UTF-8''`)
		if !ok || !ok2 || strings.ContainsAny(plain, "\"\\\r\n\x00") || strings.ContainsAny(extended, " \"';,\r\n\x00") {
			t.Fatalf("%q: %q", name, got)
		}
		if back, err := url.PathUnescape(extended); err != nil || back != name {
			t.Fatalf("%q came back as %q, %v", name, back, err)
		}
	})
}

func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"/files/home/a/b", "/files/home/%2e%2e/x", "/files/home/a%2fb", "/files//x", "/files/home", "/files/%00/x", "/x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.ParseRequestURI(text)
		if err != nil {
			return
		}
		space, p, fl := splitAddress(u)
		if fl == nil && (space == "" || strings.Contains(space, "/") || strings.Contains("/"+p.String()+"/", "/../")) {
			t.Fatalf("%q: %q %q", text, space, p)
		}
	})
}

func TestEveryKindOfFaultHasAStatus(t *testing.T) {
	for kind := fault.Internal; kind <= fault.Unavailable; kind++ {
		if statuses[kind] < 400 {
			t.Errorf("kind %d has the status %d", kind, statuses[kind])
		}
	}
	for _, tc := range []struct {
		err    error
		status int
		code   fault.Code
	}{
		{errors.New("/var/lib/secret"), 500, fault.CodeInternal},
		{fault.New(fault.Internal, fault.CodeInternal, "/var/lib/secret"), 500, fault.CodeInternal},
		{fmt.Errorf("open /var/lib: %w", fault.New(fault.Quota, fault.CodeQuotaExceeded, "Full.")), 507, fault.CodeQuotaExceeded},
		{badRequest(http.StatusLengthRequired, "Length."), 411, fault.CodeBadRequest},
	} {
		f, status := shown(tc.err)
		if status != tc.status || f.Code != tc.code || strings.Contains(f.Message, "/var") {
			t.Errorf("%v: %d %v", tc.err, status, f)
		}
	}
}
