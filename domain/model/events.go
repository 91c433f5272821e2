package model

import (
	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/patch"
)

// Types are the feature's events under their stored names.
var Types = []es.TypeDef{
	es.Type[ModelCreated]("model.created.v1"),
	es.Type[OwnershipTransferred]("model.ownership_transferred.v1"),
	es.Type[ModelDeleted]("model.deleted.v1"),
	es.Type[VersionImported]("model.version_imported.v1"),
	es.Type[VersionEdited]("model.version_edited.v1"),
	es.Type[VisibilityChanged]("model.visibility_changed.v1"),
	es.Type[VersionDeleted]("model.version_deleted.v1"),
}

// OfVersion names the version that an event is about; events embed it.
type OfVersion struct {
	Version uuid.UUID `json:"version"`
}

// Subject implements es.Subjected.
func (o OfVersion) Subject(root es.Ref) es.Ref {
	return es.Ref{Kind: VersionKind, ID: o.Version, Parent: root.ID}
}

// ModelCreated opens a stream; the first version follows in the same append.
type ModelCreated struct {
	Name    string    `json:"name"`
	Owner   uuid.UUID `json:"owner"`
	Project uuid.UUID `json:"project"`
}

// Changes implements es.Event.
func (e ModelCreated) Changes() []es.Change {
	return []es.Change{es.Set("name", e.Name), es.Set("owner", e.Owner), es.Set("project", e.Project)}
}

// ModelDeleted closes the stream after its last version was deleted.
type ModelDeleted struct {
	Name    string    `json:"name"`
	Project uuid.UUID `json:"project"`
}

// Changes implements es.Event.
func (e ModelDeleted) Changes() []es.Change { return []es.Change{es.Moved("name", e.Name, nil)} }

// VersionImported adds a version, seen by its owner alone.
type VersionImported struct {
	OfVersion
	Number    int       `json:"number"`
	Details   Details   `json:"details"`
	Directory Directory `json:"directory"`
}

// Changes implements es.Event.
func (e VersionImported) Changes() []es.Change {
	set, _ := between(Details{}, e.Details)
	return append(patch.Changes(set, Fields{}),
		es.Set("number", e.Number), es.Set("directory", e.Directory.Path), es.Set("state", Valid))
}

// VersionEdited changes what describes a version.
type VersionEdited struct {
	OfVersion
	Set Fields `json:"set"`
	Was Fields `json:"was"`
}

// Changes implements es.Event.
func (e VersionEdited) Changes() []es.Change { return patch.Changes(e.Set, e.Was) }

// VisibilityChanged shares a version, widens its circle, or takes it back.
type VisibilityChanged struct {
	OfVersion
	From access.Visibility `json:"from"`
	To   access.Visibility `json:"to"`
}

// Changes implements es.Event.
func (e VisibilityChanged) Changes() []es.Change {
	return []es.Change{es.Moved("visibility", e.From, e.To)}
}

// VersionDeleted removes a version; the files stay in the owner's home.
type VersionDeleted struct {
	OfVersion
	Number int    `json:"number"`
	From   Status `json:"from"`
}

// Changes implements es.Event.
func (e VersionDeleted) Changes() []es.Change {
	return []es.Change{es.Moved("state", e.From, Deleted)}
}
