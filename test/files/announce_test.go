package files_test

import (
	"net/http"
	"testing"

	"tallyard/domain/fault"
	web "tallyard/graph/transport/files"
)

func TestHTTPUploadAnnounced(t *testing.T) {
	t.Run("AUD-01_the_first_part_is_put_on_record_before_it_is_taken", func(t *testing.T) {
		s := newSite(t, func(*web.Config) {})
		s.want(s.do("PUT", "/files/home/f", "01234", "Content-Range", "bytes 0-4/10"), 202)
		s.want(s.do("PUT", "/files/home/f", "56789", "Content-Range", "bytes 5-9/10"), 201)
		if len(s.asked) != 1 || s.asked[0] != "f" {
			t.Errorf("announced: %q", s.asked)
		}
	})
	t.Run("AUD-01_what_is_refused_before_it_begins_is_not_announced", func(t *testing.T) {
		s := newSite(t, func(*web.Config) {})
		s.want(s.do("PUT", "/files/home/d/f", "x"), 201)
		s.asked = nil
		s.wantError(s.do("PUT", "/files/home/d", "x"), 400, fault.CodeInvalidValue)
		conn := s.raw("/files/home/g", 5, "")
		_ = conn.Close()
		eventually(t, "the connection is gone", func() bool { return s.do("GET", "/files/home/g", "").StatusCode == http.StatusNotFound })
		if len(s.asked) != 0 || len(s.seen()) != 2 || s.seen()[1] != "no" {
			t.Errorf("announced: %q, on record: %q", s.asked, s.seen())
		}
	})
	t.Run("AUD-01_what_can_not_be_put_on_record_leaves_nothing", func(t *testing.T) {
		s := newSite(t, func(*web.Config) {})
		s.refuse = fault.New(fault.Unavailable, fault.CodeUnavailable, "Try again.")
		s.wantError(s.do("PUT", "/files/home/f", "0123456789"), 503, fault.CodeUnavailable)
		s.refuse = nil
		s.wantError(s.do("GET", "/files/home/f", ""), 404, fault.CodeNotFound)
	})
}
