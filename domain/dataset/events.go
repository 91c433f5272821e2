package dataset

import (
	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
)

// Types are the feature's events under their stored names.
var Types = []es.TypeDef{
	es.Type[Registered]("dataset.registered.v1"),
	es.Type[Updated]("dataset.updated.v1"),
	es.Type[Removed]("dataset.removed.v1"),
	es.Type[OwnershipTransferred]("dataset.ownership_transferred.v1"),
	es.Type[CacheBegun]("dataset.cache_begun.v1"),
	es.Type[CacheEnded]("dataset.cache_ended.v1"),
}

// Registered makes a directory a data set.
type Registered struct {
	Project     uuid.UUID         `json:"project"`
	Owner       uuid.UUID         `json:"owner"`
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Visibility  access.Visibility `json:"visibility"`
	Content     Content           `json:"content"`
}

// Changes implements es.Event.
func (e Registered) Changes() []es.Change {
	c := []es.Change{es.Set("name", e.Name), es.Set("visibility", e.Visibility)}
	if e.Description != "" {
		c = append(c, es.Set("description", e.Description))
	}
	return append(c, es.Set("directory", e.Content.Directory), es.Set("files", e.Content.Files), es.Set("bytes", e.Content.Bytes))
}

// Moved is a text that became another.
type Moved struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// MovedContent is another directory, or what the same one holds now.
type MovedContent struct {
	From Content `json:"from"`
	To   Content `json:"to"`
}

// Updated is an edit; what is nil stayed.
type Updated struct {
	Name        *Moved        `json:"name,omitempty"`
	Description *Moved        `json:"description,omitempty"`
	Visibility  *Moved        `json:"visibility,omitempty"`
	Content     *MovedContent `json:"content,omitempty"`
}

// Changes implements es.Event.
func (e Updated) Changes() []es.Change {
	var c []es.Change
	for _, f := range []struct {
		name  string
		moved *Moved
	}{{"name", e.Name}, {"description", e.Description}, {"visibility", e.Visibility}} {
		if f.moved != nil {
			c = append(c, es.Moved(f.name, f.moved.From, f.moved.To))
		}
	}
	if m := e.Content; m != nil {
		c = append(c, es.Moved("directory", m.From.Directory, m.To.Directory),
			es.Moved("files", m.From.Files, m.To.Files), es.Moved("bytes", m.From.Bytes, m.To.Bytes))
	}
	return c
}

// Removed takes a data set away; its directory stays. Cached says that there may
// be something of it in the cache, which goes, too.
type Removed struct {
	Name      string    `json:"name"`
	Project   uuid.UUID `json:"project"`
	Cached    bool      `json:"cached,omitempty"`
	Operation uuid.UUID `json:"operation,omitzero"`
}

// Changes implements es.Event.
func (e Removed) Changes() []es.Change {
	return []es.Change{{Field: "name", From: es.ValueOf(e.Name)}}
}

// CacheBegun puts a step of the cache in line. After is the attempt of the
// operation that a retry follows; 0: it is a new one.
type CacheBegun struct {
	Step      Step      `json:"step"`
	Operation uuid.UUID `json:"operation"`
	After     int       `json:"after,omitempty"`
}

// Changes implements es.Event.
func (e CacheBegun) Changes() []es.Change {
	return []es.Change{es.Set("cache", e.Step), es.Set("operation", e.Operation)}
}

// Outcome is how a step ended.
type Outcome string

// Outcomes.
const (
	Succeeded Outcome = "SUCCEEDED"
	Failed    Outcome = "FAILED"
	Cancelled Outcome = "CANCELLED"
)

// CacheEnded says how a step of the cache ended. Files and bytes are those of
// the whole cache, of an unzip those that came to it.
type CacheEnded struct {
	Step      Step      `json:"step"`
	Operation uuid.UUID `json:"operation"`
	Outcome   Outcome   `json:"outcome"`
	Files     int64     `json:"files,omitempty"`
	Bytes     int64     `json:"bytes,omitempty"`
	Problem   string    `json:"problem,omitempty"`
}

// Changes implements es.Event.
func (e CacheEnded) Changes() []es.Change {
	c := []es.Change{es.Moved("cache", e.Step, e.Outcome)}
	if e.Problem != "" {
		c = append(c, es.Set("problem", e.Problem))
	}
	return c
}
