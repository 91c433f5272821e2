package embedded

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

const (
	metadataPrefix = "$$"
	metadataType   = "$metadata"
	tombstoneType  = "$streamDeleted"
)

// deletedTruncate is the $tb that a soft delete writes: nothing is visible.
const deletedTruncate = math.MaxInt64

// streamMetadata is what the store itself obeys of a stream's metadata; 0 is unset.
type streamMetadata struct {
	maxCount       int64
	maxAge         int64 // seconds
	truncateBefore int64
}

// metadataOf names the stream that stream is the metadata of, if it is one.
func metadataOf(stream string) (string, bool) {
	base, ok := strings.CutPrefix(stream, metadataPrefix)
	return base, ok && base != "" && !strings.HasPrefix(base, metadataPrefix)
}

// parseMetadata reads the numbers that the store obeys. What it can't read it
// takes as unset: metadata is the users' to write, and a stream must never
// become unreadable by it.
func parseMetadata(data []byte) streamMetadata {
	var raw map[string]json.RawMessage
	if json.Unmarshal(data, &raw) != nil {
		return streamMetadata{}
	}
	return streamMetadata{
		maxCount:       wholeNumber(raw["$maxCount"]),
		maxAge:         wholeNumber(raw["$maxAge"]),
		truncateBefore: wholeNumber(raw["$tb"]),
	}
}

// wholeNumber reads a number ≥ 0, capped at the largest revision.
func wholeNumber(raw json.RawMessage) int64 {
	v, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		return 0
	}
	if v > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(v)
}

// deletedMetadata is the body of the event that a soft delete writes.
func deletedMetadata() []byte {
	return []byte(`{"$tb":` + strconv.FormatInt(deletedTruncate, 10) + `}`)
}

// restoredMetadata is the metadata of a softly deleted stream that is written
// to again: as it was, with everything before first cut off.
func restoredMetadata(old []byte, first int64) []byte {
	raw := map[string]json.RawMessage{}
	if json.Unmarshal(old, &raw) != nil || raw == nil {
		raw = map[string]json.RawMessage{}
	}
	raw["$tb"] = json.RawMessage(strconv.FormatInt(first, 10))
	out, err := json.Marshal(raw)
	if err != nil { // a map of valid JSON always marshals
		return []byte(`{"$tb":` + strconv.FormatInt(first, 10) + `}`)
	}
	return out
}
