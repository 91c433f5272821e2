package persistent

import (
	"errors"
	"strconv"
	"strings"
)

// Position is a place in a group's source: a revision of a stream, or a
// position of the whole log. Both grow, and neither needs to be dense.
type Position int64

// Before lies before every event.
const Before Position = -1

var errBadPosition = errors.New("not a position")

// Format writes a position as the protocol does: "7" in a stream, "C:7/P:7" in
// the whole log.
func (p Position) Format(wholeLog bool) string {
	n := strconv.FormatInt(int64(p), 10)
	if wholeLog {
		return "C:" + n + "/P:" + n
	}
	return n
}

// ParsePosition is the inverse of Format.
func ParsePosition(text string, wholeLog bool) (Position, error) {
	if wholeLog {
		var ok bool
		if text, ok = strings.CutPrefix(text, "C:"); !ok {
			return Before, errBadPosition
		}
		if text, _, ok = strings.Cut(text, "/P:"); !ok {
			return Before, errBadPosition
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < int64(Before) {
		return Before, errBadPosition
	}
	return Position(n), nil
}
