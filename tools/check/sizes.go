package main

import (
	"fmt"
	"regexp"
	"strings"
)

// maxLines is where a file asks to be split.
const maxLines = 500

// longOnPurpose lets a file be longer, with a reason.
var longOnPurpose = regexp.MustCompile(`(?m)^// Long on purpose: \S.{9,}`)

func checkSizes(r repo) ([]finding, error) {
	var found []finding
	for _, file := range r.files {
		if !hasSuffix(file, ".go", ".sql", ".ts", ".tsx") {
			continue
		}
		text, err := r.read(file)
		if err != nil {
			return nil, err
		}
		if generated(file, text) {
			continue
		}
		if n := strings.Count(text, "\n"); n > maxLines && !longOnPurpose.MatchString(text) {
			found = append(found, finding{file, 0, fmt.Sprintf(
				"%d lines, more than %d: split it by what it is about, or say \"// Long on purpose: reason\"", n, maxLines)})
		}
	}
	return found, nil
}

func hasSuffix(s string, suffixes ...string) bool {
	for _, suffix := range suffixes {
		if strings.HasSuffix(s, suffix) {
			return true
		}
	}
	return false
}
