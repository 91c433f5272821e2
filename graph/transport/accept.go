package transport

import (
	"mime"
	"strconv"
	"strings"
)

// The media types of answers.
const (
	mediaJSON    = "application/json"
	mediaGraphQL = "application/graphql-response+json"
)

// negotiate picks the media type of the answer by the Accept headers. Where
// the client has no preference it gets application/json, as older clients
// expect; where it names both alike it gets the newer type.
func negotiate(accept []string) (media string, ok bool) {
	header := strings.TrimSpace(strings.Join(accept, ","))
	if header == "" {
		return mediaJSON, true
	}
	plain, graphql := weight{}, weight{}
	for _, part := range strings.Split(header, ",") {
		r, valid := parseRange(part)
		if !valid {
			continue
		}
		plain.consider(mediaJSON, r)
		graphql.consider(mediaGraphQL, r)
	}
	switch {
	case plain.q <= 0 && graphql.q <= 0:
		return mediaJSON, false
	case graphql.q > plain.q, graphql.q == plain.q && graphql.specificity > plain.specificity,
		graphql.q == plain.q && graphql.specificity == 3 && plain.specificity == 3:
		return mediaGraphQL, true
	default:
		return mediaJSON, true
	}
}

// mediaRange is one entry of an Accept header.
type mediaRange struct {
	media string
	q     float64
}

func parseRange(part string) (mediaRange, bool) {
	media, params, err := mime.ParseMediaType(part)
	if err != nil {
		return mediaRange{}, false
	}
	if charset, named := params["charset"]; named && !isUTF8(charset) {
		return mediaRange{}, false
	}
	q := 1.0
	if text, given := params["q"]; given {
		q, err = strconv.ParseFloat(text, 64)
		if err != nil || q < 0 || q > 1 {
			return mediaRange{}, false
		}
	}
	return mediaRange{media, q}, true
}

// weight is how much a media type is wanted: the most specific range that
// matches decides.
type weight struct {
	q           float64
	specificity int
}

func (w *weight) consider(media string, r mediaRange) {
	specificity := 0
	switch r.media {
	case media:
		specificity = 3
	case "application/*":
		specificity = 2
	case "*/*":
		specificity = 1
	}
	if specificity > w.specificity {
		*w = weight{r.q, specificity}
	}
}

func isUTF8(charset string) bool {
	return strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}

// acceptableBody tells whether a POST is JSON in UTF-8. Only types that a
// browser does not send across origins without asking first may pass here.
func acceptableBody(contentType string) bool {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != mediaJSON {
		return false
	}
	charset, named := params["charset"]
	return !named || isUTF8(charset)
}
