// Command check holds rules of the repository that no linter knows: features
// don't import each other, files stay small, links in documents lead somewhere,
// cited rules exist, nothing is left for later.
//
// It is run from the top of the repository: go run -C tools ./check ..
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// repo is the tree that is checked: its root and the files that git knows or
// would add.
type repo struct {
	root  string
	files []string
}

// finding is one place that breaks a rule.
type finding struct {
	file string
	line int // 0: the file as a whole
	text string
}

func (f finding) String() string {
	if f.line == 0 {
		return f.file + ": " + f.text
	}
	return fmt.Sprintf("%s:%d: %s", f.file, f.line, f.text)
}

var checks = []struct {
	name string
	run  func(repo) ([]finding, error)
}{
	{"features don't import each other", checkFeatures},
	{"features have all their rooms", checkRooms},
	{"files stay small", checkSizes},
	{"links lead somewhere", checkLinks},
	{"cited rules exist", checkRules},
	{"nothing is left for later", checkWords},
}

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	os.Exit(run(root, os.Stdout))
}

func run(root string, out io.Writer) int {
	files, err := listFiles(root)
	if err != nil {
		_, _ = fmt.Fprintln(out, err)
		return 2
	}
	code := 0
	for _, c := range checks {
		found, err := c.run(repo{root, files})
		if err != nil {
			_, _ = fmt.Fprintf(out, "%s: %v\n", c.name, err)
			return 2
		}
		state := "ok"
		if len(found) > 0 {
			state, code = fmt.Sprintf("%d findings", len(found)), 1
		}
		_, _ = fmt.Fprintf(out, "check: %s: %s\n", c.name, state)
		for _, f := range found {
			_, _ = fmt.Fprintln(out, "  ", f)
		}
	}
	return code
}

// listFiles asks git, so that ignored and built files stay out.
func listFiles(root string) ([]string, error) {
	cmd := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	b, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var files []string
	for f := range strings.SplitSeq(string(b), "\x00") {
		// A file that was deleted and not committed yet is still listed.
		if _, err := os.Stat(root + "/" + f); f != "" && err == nil {
			files = append(files, f)
		}
	}
	return files, nil
}

// generatedHeader is how the files that no person wrote begin.
var generatedHeader = regexp.MustCompile(`(?m)^(//|#) Code generated .* DO NOT EDIT\.?$`)

// generated tells files that no person wrote.
func generated(file, text string) bool {
	return strings.Contains(file, "/dist/") || generatedHeader.MatchString(text)
}

func (r repo) read(file string) (string, error) {
	b, err := os.ReadFile(r.root + "/" + file)
	return string(b), err
}
