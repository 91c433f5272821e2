package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	projstorage "tallyard/projections/storage"
)

// recountSpaces counts everything in every space anew, and tells line by line of
// each what it was taken for.
func (p *parts) recountSpaces(w http.ResponseWriter, r *http.Request) {
	asText := r.Header.Get("Accept") == "text/plain"
	spaces, changed := 0, 0
	tell := func(space uuid.UUID, was, is int64) {
		spaces++
		if was != is {
			changed++
		}
		if asText && was != is {
			_, _ = fmt.Fprintf(w, "%s  was %d, holds %d bytes\n", space, was, is) // a client that left needs no answer
		} else if !asText {
			_ = json.NewEncoder(w).Encode(map[string]any{"space": space, "wasBytes": was, "bytes": is}) // likewise
		}
	}
	err := p.accounts.recountAll(r.Context(), projstorage.Queries{Reader: p.reader}, time.Now(), tell)
	switch {
	case err != nil && spaces == 0:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case err != nil:
		_, _ = fmt.Fprintln(w, "cut off: "+err.Error()) // likewise
	case asText:
		_, _ = fmt.Fprintf(w, "%d spaces counted, %d held something else than was known\n", spaces, changed) // likewise
	}
}

func quotaCommand() *cli.Command {
	return &cli.Command{
		Name: "quota", Usage: "what spaces hold, in a running program",
		Commands: []*cli.Command{{
			Name: "recount", Usage: "count everything in every space anew; a line for each that holds something else than was known",
			Flags: adminFlags(), Action: adminAsk(http.MethodPost, "/quota/recount"),
		}},
	}
}
