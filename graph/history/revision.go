package history

import (
	"strconv"

	"tallyard/domain/es"
)

// A history's rows are ordered by revision, which is exact and never changes.

func revisionText(r es.Revision) string { return strconv.FormatInt(int64(r), 10) }

func revision(text string) es.Revision {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return es.NoRevision // a sealed cursor holds what revisionText made
	}
	return es.Revision(n)
}
