package transport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"tallyard/domain/fault"
	"tallyard/graph/transport/guard"
)

// params is one GraphQL request, as it came.
type params struct {
	query      string
	operation  string
	variables  map[string]any
	extensions map[string]any
}

func malformed(format string, args ...any) *refusal {
	return refuse(reasonMalformed, fault.CodeBadRequest, fmt.Sprintf(format, args...))
}

// decodeParams reads the JSON of a request. It is stricter than encoding/json:
// names are case-sensitive and come once, nothing follows the object, and
// characters that a decoder would replace silently are refused. Messages never
// repeat what came.
func decodeParams(body []byte, limits guard.Limits) (params, *refusal) {
	members, r := decodeObject(body, limits, "The request")
	if r != nil {
		return params{}, r
	}
	var p params
	for _, m := range []struct {
		name string
		into any
		kind string
	}{
		{"query", &p.query, "a string"},
		{"operationName", &p.operation, "a string"},
		{"variables", &p.variables, "an object"},
		{"extensions", &p.extensions, "an object"},
	} {
		raw, given := members[m.name]
		if !given {
			continue
		}
		if err := decodeNumbers(raw, m.into); err != nil {
			return params{}, malformed("%q must be %s or null.", m.name, m.kind)
		}
	}
	if p.query == "" {
		return params{}, malformed(`"query" is missing: it must be a string that holds a GraphQL document.`)
	}
	return p, nil
}

// decodeObject reads the members of one JSON object, and nothing else.
func decodeObject(body []byte, limits guard.Limits, what string) (map[string]json.RawMessage, *refusal) {
	body = bytes.Trim(body, " \t\r\n")
	switch {
	case len(body) == 0:
		return nil, malformed("%s is empty; it must be a JSON object.", what)
	case body[0] == '[':
		return nil, malformed("%s must be one JSON object; lists of requests are not accepted.", what)
	case body[0] != '{':
		return nil, malformed("%s must be a JSON object in UTF-8.", what)
	}
	if r := scanJSON(body, limits, what); r != nil {
		return nil, r
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if _, err := dec.Token(); err != nil {
		return nil, malformed("%s is not valid JSON.", what)
	}
	members := map[string]json.RawMessage{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, malformed("%s is not valid JSON.", what)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, malformed("%s is not valid JSON.", what)
		}
		key, _ := name.(string)
		if _, twice := members[key]; twice {
			return nil, malformed("%s names a member twice.", what)
		}
		members[key] = raw
	}
	if _, err := dec.Token(); err != nil {
		return nil, malformed("%s is not valid JSON, or it was cut.", what)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, malformed("%s has bytes after its end.", what)
	}
	return members, nil
}

// decodeNumbers decodes without turning numbers into float64, which would
// round the long ones.
func decodeNumbers(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(into)
}

// leastDecoded is how many bytes a string of JSON has at least once its escapes
// are decoded.
func leastDecoded(text []byte) int {
	n := len(text)
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if i++; text[i] == 'u' {
			n -= 4 // of the digits; the two before them become one
		}
		n--
	}
	return n
}

// scanJSON looks over JSON before it is decoded: encoding, depth and number of
// values, and the length of what can only be the document. What it accepts may
// still be no JSON.
func scanJSON(body []byte, limits guard.Limits, what string) *refusal {
	if !utf8.Valid(body) {
		return malformed("%s is not valid UTF-8.", what)
	}
	depth, values := 0, 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case 0:
			return malformed("%s holds a NUL character.", what)
		case '{', '[':
			depth++
			values++
			if depth > limits.VariableDepth+2 { // the request and its variables are two
				return refuse(reasonLimit, fault.CodeLimitExceeded,
					fmt.Sprintf("%s is refused: more than %d levels in its variables.", what, limits.VariableDepth))
			}
		case '}', ']':
			depth--
		case ',':
			values++
		case '"':
			start := i + 1
			for i = start; i < len(body) && body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
			}
			text := body[start:min(i, len(body))]
			if depth == 1 && len(text) > limits.Bytes && leastDecoded(text) > limits.Bytes {
				// The document, before anything makes a copy of it.
				return guardRefusal(guard.TooLong(limits))
			}
			// A string without escapes is not copied to be looked at.
			if bytes.IndexByte(text, '\\') < 0 {
				break
			}
			if escape := guard.EscapeFault(string(text)); escape != "" {
				return malformed("%s has a string that %s", what, escape)
			}
		}
		if values > limits.VariableNodes {
			return refuse(reasonLimit, fault.CodeLimitExceeded,
				fmt.Sprintf("%s is refused: more than %d values.", what, limits.VariableNodes))
		}
	}
	return nil
}
