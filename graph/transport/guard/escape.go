package guard

import "strings"

// EscapeFault looks at the escapes inside the quotes of a GraphQL or JSON
// string and says what is wrong with the characters they make: a NUL, or half
// of a surrogate pair, which decoders replace silently. Other faults are the
// decoder's to report. It returns the second half of a sentence, or "".
func EscapeFault(body string) string {
	for {
		i := strings.IndexByte(body, '\\')
		if i < 0 || i+1 >= len(body) {
			return ""
		}
		if body[i+1] != 'u' {
			body = body[i+2:]
			continue
		}
		r, rest, ok := unicodeEscape(body[i:])
		if !ok {
			return ""
		}
		switch {
		case r == 0:
			return "holds a NUL character."
		case r >= 0xDC00 && r <= 0xDFFF:
			return "holds half of a surrogate pair."
		case r >= 0xD800 && r <= 0xDBFF:
			low, after, ok := unicodeEscape(rest)
			if !ok || low < 0xDC00 || low > 0xDFFF {
				return "holds half of a surrogate pair."
			}
			rest = after
		}
		body = rest
	}
}

// unicodeEscape reads \uXXXX or \u{X…} at the start of s.
func unicodeEscape(s string) (r uint32, rest string, ok bool) {
	if len(s) < 3 || s[0] != '\\' || s[1] != 'u' {
		return 0, "", false
	}
	if s[2] == '{' {
		end := strings.IndexByte(s, '}')
		if end < 4 || end > 11 {
			return 0, "", false
		}
		r, ok = hex(s[3:end])
		return r, s[end+1:], ok
	}
	if len(s) < 6 {
		return 0, "", false
	}
	r, ok = hex(s[2:6])
	return r, s[6:], ok
}

func hex(s string) (v uint32, ok bool) {
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		v = v<<4 | uint32(c)
	}
	return v, true
}
