package embedded

import (
	"strconv"
	"strings"
)

// linkType marks an event whose body "revision@stream" points at another.
const linkType = "$>"

// resolve reads the event that a link points at. A link to what isn't there, or
// can't be read any more, stays as it is.
func (s *store) resolve(link *event) (target event, ok bool, err error) {
	text, stream, found := strings.Cut(string(link.data), "@")
	if !found {
		return event{}, false, nil
	}
	revision, err := strconv.ParseInt(text, 10, 64)
	if err != nil || revision < 0 || len(stream) > maxStreamName {
		return event{}, false, nil //nolint:nilerr // a text that is no link is not an error
	}
	h, err := s.readHead(stream)
	if err != nil || h.tombstoned || revision < h.firstVisible() {
		return event{}, false, err
	}
	position, ok, err := s.positionAt(stream, revision)
	if err != nil || !ok || position > s.committed.Load() {
		return event{}, false, err
	}
	return s.eventAt(stream, revision, position)
}
