package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// What stands behind a command that takes no arguments is refused, and so is a
// copy of a store into itself.
func TestCommandsRefuseWhatTheyWouldOverlook(t *testing.T) {
	dir := t.TempDir()
	for line, says := range map[string]string{
		"events scavenge extra":    "extra",
		"events stats extra":       "extra",
		"projections status extra": "extra",
		"events copy --from " + dir + " --to " + filepath.Join(dir, "."): "same event store",
		"events copy --from a --to b extra":                              "extra",
		"bootstrap --tenant t --login l --name n extra":                  "extra",
	} {
		err := root().Run(t.Context(), append([]string{"tallyard"}, strings.Fields(line)...))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", line, err)
		}
	}
}
