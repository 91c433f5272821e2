package guard

import (
	"strings"
	"unicode/utf8"
)

// Scan reads the text of a document once, without allocating, and refuses it
// when it is too long, has too many tokens, nests too deeply, or holds bytes
// that are not text. What it accepts may still be no GraphQL: that is the
// parser's to say.
func Scan(text string, l Limits) *Refusal {
	if len(text) > l.Bytes {
		return TooLong(l)
	}
	s := scanner{text: text, limits: l}
	return s.run()
}

// TooLong is the refusal of a text that is longer than the limit, for whoever
// knows that before the text is there.
func TooLong(l Limits) *Refusal { return over("bytes", l.Bytes) }

type scanner struct {
	text    string
	pos     int
	tokens  int
	nesting int
	limits  Limits
}

func (s *scanner) run() *Refusal {
	if i := strings.IndexByte(s.text, 0); i >= 0 {
		return s.malformed("The document holds a NUL character.", i)
	}
	if !utf8.ValidString(s.text) {
		return &Refusal{Message: "The document is not valid UTF-8.", Malformed: true}
	}
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',':
			s.pos++
			continue
		case strings.HasPrefix(s.text[s.pos:], "\uFEFF"):
			s.pos += len("\uFEFF")
			continue
		}
		s.tokens++
		if s.tokens > s.limits.Tokens {
			return over("tokens", s.limits.Tokens)
		}
		if r := s.token(c); r != nil {
			return r
		}
	}
	return nil
}

// token steps over the token that starts with c.
func (s *scanner) token(c byte) *Refusal {
	switch {
	case c == '#':
		s.pos = endOfLine(s.text, s.pos)
	case c == '{' || c == '(' || c == '[':
		s.pos++
		s.nesting++
		if s.nesting > s.limits.Nesting {
			return over("levels of brackets", s.limits.Nesting)
		}
	case c == '}' || c == ')' || c == ']':
		s.pos++
		s.nesting--
	case c == '"':
		return s.quoted()
	case isName(c) || c == '-':
		start := s.pos
		for s.pos++; s.pos < len(s.text) && (isName(s.text[s.pos]) || isNumberPart(s.text, s.pos, start)); {
			s.pos++
		}
		if s.pos-start > s.limits.Name {
			return over("characters in one name or number", s.limits.Name)
		}
	default:
		_, size := utf8.DecodeRuneInString(s.text[s.pos:])
		s.pos += size
	}
	return nil
}

// quoted steps over a string or a block string. An end that is missing is the
// parser's to report.
func (s *scanner) quoted() *Refusal {
	if strings.HasPrefix(s.text[s.pos:], `"""`) {
		s.pos += 3
		for s.pos < len(s.text) {
			switch {
			case strings.HasPrefix(s.text[s.pos:], `\"""`):
				s.pos += 4
			case strings.HasPrefix(s.text[s.pos:], `"""`):
				s.pos += 3
				return nil
			default:
				s.pos++
			}
		}
		return nil
	}
	start := s.pos
	for s.pos++; s.pos < len(s.text); s.pos++ {
		switch s.text[s.pos] {
		case '\\':
			s.pos++
		case '\n', '\r':
			return nil
		case '"':
			body := s.text[start+1 : s.pos]
			s.pos++
			if fault := EscapeFault(body); fault != "" {
				return s.malformed("A string of the document "+fault, start)
			}
			return nil
		}
	}
	return nil
}

func (s *scanner) malformed(message string, at int) *Refusal {
	before := s.text[:at]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return &Refusal{Message: message, Malformed: true, Line: line, Column: column}
}

func endOfLine(text string, from int) int {
	if i := strings.IndexAny(text[from:], "\n\r"); i >= 0 {
		return from + i
	}
	return len(text)
}

func isName(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// isNumberPart tells whether the byte at pos goes on with a number that began at start.
func isNumberPart(text string, pos, start int) bool {
	first := text[start]
	if first != '-' && (first < '0' || first > '9') {
		return false
	}
	switch text[pos] {
	case '.':
		return true
	case '+', '-':
		return text[pos-1] == 'e' || text[pos-1] == 'E'
	}
	return false
}
