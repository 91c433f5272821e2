package main

import (
	"os"
	"path"
	"regexp"
	"strings"
	"unicode"
)

var (
	linkPattern    = regexp.MustCompile(`\]\(([^()\s]+)(?:\s+"[^"]*")?\)`)
	headingPattern = regexp.MustCompile(`^#{1,6}\s+(.+?)\s*#*$`)
	markup         = regexp.MustCompile("[`*]|\\]\\([^)]*\\)|\\[")
)

// checkLinks follows the links of every document inside the repository, also
// to headings. Addresses elsewhere are not looked up.
func checkLinks(r repo) ([]finding, error) {
	var found []finding
	for _, file := range r.files {
		if !strings.HasSuffix(file, ".md") {
			continue
		}
		text, err := r.read(file)
		if err != nil {
			return nil, err
		}
		for i, line := range prose(text) {
			for _, m := range linkPattern.FindAllStringSubmatch(line, -1) {
				if why := r.follow(file, m[1]); why != "" {
					found = append(found, finding{file, i + 1, m[1] + ": " + why})
				}
			}
		}
	}
	return found, nil
}

func (r repo) follow(from, link string) (why string) {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return ""
	}
	target, anchor, _ := strings.Cut(link, "#")
	file := from
	if target != "" {
		file = path.Join(path.Dir(from), target)
		if strings.HasPrefix(target, "/") {
			file = strings.TrimPrefix(target, "/")
		}
	}
	if _, err := os.Stat(r.root + "/" + file); err != nil {
		return "no such file"
	}
	if anchor == "" || !strings.HasSuffix(file, ".md") {
		return ""
	}
	text, err := r.read(file)
	if err != nil {
		return err.Error()
	}
	for _, line := range prose(text) {
		if m := headingPattern.FindStringSubmatch(line); m != nil && slug(m[1]) == anchor {
			return ""
		}
	}
	return "no such heading in " + file
}

// prose returns the lines of a document with those inside code fences emptied.
func prose(text string) []string {
	lines := strings.Split(text, "\n")
	fenced := false
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			lines[i] = ""
		} else if fenced {
			lines[i] = ""
		}
	}
	return lines
}

// slug is the anchor that a heading gets.
func slug(heading string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(markup.ReplaceAllString(heading, "")) {
		switch {
		case unicode.IsLetter(c) || unicode.IsDigit(c) || c == '-' || c == '_':
			b.WriteRune(c)
		case c == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}
