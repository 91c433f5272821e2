package main

import (
	"regexp"
	"strings"
)

// Put together so that this file does not find itself.
var laterPattern = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

// checkWords reports notes about work that is left: it is done, or it is an issue.
func checkWords(r repo) ([]finding, error) {
	var found []finding
	for _, file := range r.files {
		if !hasSuffix(file, ".go", ".md", ".graphqls", ".sql", ".ts", ".tsx", ".sh", "Makefile") {
			continue
		}
		text, err := r.read(file)
		if err != nil {
			return nil, err
		}
		if generated(file, text) {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			if m := laterPattern.FindString(line); m != "" {
				found = append(found, finding{file, i + 1, m + ": do it, or file it"})
			}
		}
	}
	return found, nil
}
