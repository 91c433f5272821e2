package runner

import "strings"

// categoryOf is the first part of a stream's name.
func categoryOf(stream string) string {
	c, _, _ := strings.Cut(stream, "-")
	return c
}
