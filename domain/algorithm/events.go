package algorithm

import (
	"slices"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/patch"
)

// Types are the feature's events under their stored names.
var Types = []es.TypeDef{
	es.Type[AlgorithmCreated]("algorithm.created.v1"),
	es.Type[OwnershipTransferred]("algorithm.ownership_transferred.v1"),
	es.Type[AlgorithmDeleted]("algorithm.deleted.v1"),
	es.Type[VersionAdded]("algorithm.version_added.v1"),
	es.Type[VersionEdited]("algorithm.version_edited.v1"),
	es.Type[VersionPrepared]("algorithm.version_prepared.v1"),
	es.Type[PreparationFailed]("algorithm.preparation_failed.v1"),
	es.Type[PreparationRetried]("algorithm.preparation_retried.v1"),
	es.Type[ApprovalRequested]("algorithm.approval_requested.v1"),
	es.Type[ApprovalEnded]("algorithm.approval_ended.v1"),
	es.Type[PublicationStarted]("algorithm.publication_started.v1"),
	es.Type[PublicationRetried]("algorithm.publication_retried.v1"),
	es.Type[VersionPublished]("algorithm.published.v1"),
	es.Type[PublicationFailed]("algorithm.publication_failed.v1"),
	es.Type[PublicationCancelled]("algorithm.publication_cancelled.v1"),
	es.Type[DeletionStarted]("algorithm.deletion_started.v1"),
	es.Type[DeletionFailed]("algorithm.deletion_failed.v1"),
	es.Type[DeletionRetried]("algorithm.deletion_retried.v1"),
	es.Type[VersionDeleted]("algorithm.version_deleted.v1"),
	es.Type[UseRegistered]("algorithm.use_registered.v1"),
	es.Type[UseReleased]("algorithm.use_released.v1"),
	es.Type[FavoriteAdded]("favorites.algorithm_added.v1"),
	es.Type[FavoriteRemoved]("favorites.algorithm_removed.v1"),
}

// versionEvent is an event about one version, with what it does to it.
type versionEvent interface {
	version() uuid.UUID
	apply(Version, es.Envelope) Version
}

// OfVersion names the version that an event is about; events embed it.
type OfVersion struct {
	Version uuid.UUID `json:"version"`
}

func (o OfVersion) version() uuid.UUID { return o.Version }

// Subject implements es.Subjected.
func (o OfVersion) Subject(root es.Ref) es.Ref {
	return es.Ref{Kind: VersionKind, ID: o.Version, Parent: root.ID}
}

// AlgorithmCreated opens a stream; the first version follows in the same append.
type AlgorithmCreated struct {
	Name    string    `json:"name"`
	Owner   uuid.UUID `json:"owner"`
	Project uuid.UUID `json:"project"`
}

// Changes implements es.Event.
func (e AlgorithmCreated) Changes() []es.Change {
	return []es.Change{es.Set("name", e.Name), es.Set("owner", e.Owner), es.Set("project", e.Project)}
}

// AlgorithmDeleted closes the stream after its last version was deleted.
type AlgorithmDeleted struct {
	Name    string    `json:"name"`
	Project uuid.UUID `json:"project"`
}

// Changes implements es.Event.
func (e AlgorithmDeleted) Changes() []es.Change {
	return []es.Change{es.Moved("name", e.Name, nil)}
}

// VersionAdded adds a version. With Copy it is not ready before the published
// files were copied into the owner's space.
type VersionAdded struct {
	OfVersion
	Label    string   `json:"label"`
	Settings Settings `json:"settings"`
	BasedOn  *Origin  `json:"basedOn,omitempty"`
	Copy     *Copy    `json:"copy,omitempty"`
}

// Copy is a directory copy that must be done before a version is ready.
type Copy struct {
	Operation uuid.UUID `json:"operation"`
	Artefact  uuid.UUID `json:"artefact"` // the published version it comes from
}

// Changes implements es.Event.
func (e VersionAdded) Changes() []es.Change {
	set, _ := between(Settings{}, e.Settings)
	list := append(patch.Changes(set, Fields{}), es.Set("label", e.Label))
	if e.BasedOn != nil {
		list = append(list, es.Set("basedOn", e.BasedOn.Version))
	}
	status := Created
	if e.Copy != nil {
		status = Creating
	}
	return append(list, es.Set("state", status))
}

// VersionEdited changes settings. With Copy the version is not ready before
// the published files were copied.
type VersionEdited struct {
	OfVersion
	From    Status  `json:"from"`
	Set     Fields  `json:"set"`
	Was     Fields  `json:"was"`
	BasedOn *Origin `json:"basedOn,omitempty"`
	Copy    *Copy   `json:"copy,omitempty"`
}

// Changes implements es.Event.
func (e VersionEdited) Changes() []es.Change {
	list := patch.Changes(e.Set, e.Was)
	if to := e.To(); to != e.From {
		list = append(list, moved(e.From, to)...)
	}
	return list
}

// To is the state after the edit. Who gives another source to a version whose
// copy failed needs the copy no more.
func (e VersionEdited) To() Status {
	switch {
	case e.Copy != nil:
		return Creating
	case e.From == CreateFailed && e.Set.Source.Given:
		return Created
	}
	return e.From
}

func (e VersionEdited) apply(v Version, _ es.Envelope) Version {
	v.Settings = e.Set.Apply(v.Settings)
	if e.BasedOn != nil {
		v.BasedOn = e.BasedOn
	}
	if to := e.To(); to != v.Status {
		v.Status, v.Problem = to, ""
	}
	switch {
	case e.Copy != nil:
		v.Operation, v.Wanted = e.Copy.Operation, ""
	case e.Set.Source.Given:
		// The last operation was for other files: it can't be retried for these.
		v.Operation = uuid.Nil
	}
	return v
}

// VersionPrepared says that the files of a new or edited version are there.
type VersionPrepared struct{ OfVersion }

// Changes implements es.Event.
func (VersionPrepared) Changes() []es.Change { return moved(Creating, Created) }

func (VersionPrepared) apply(v Version, _ es.Envelope) Version {
	v.Status, v.Problem = Created, ""
	return v
}

// PreparationFailed says that the files could not be copied.
type PreparationFailed struct {
	OfVersion
	Problem string `json:"problem"`
}

// Changes implements es.Event.
func (e PreparationFailed) Changes() []es.Change {
	return append(moved(Creating, CreateFailed), es.Set("problem", e.Problem))
}

func (e PreparationFailed) apply(v Version, _ es.Envelope) Version {
	v.Status, v.Problem = CreateFailed, e.Problem
	return v
}

// PreparationRetried starts the copy once more.
type PreparationRetried struct {
	OfVersion
	// After is the attempt of the operation that the new one follows.
	After int `json:"after"`
}

// Changes implements es.Event.
func (PreparationRetried) Changes() []es.Change { return moved(CreateFailed, Creating) }

func (PreparationRetried) apply(v Version, _ es.Envelope) Version {
	v.Status, v.Problem = Creating, ""
	return v
}

// PublicationStarted begins a publication whose files must be copied.
type PublicationStarted struct {
	OfVersion
	Visibility access.Visibility `json:"visibility"`
	Operation  uuid.UUID         `json:"operation"`
	From       Status            `json:"from"`
}

// Changes implements es.Event.
func (e PublicationStarted) Changes() []es.Change {
	return append(moved(e.From, Publishing), es.Set("wantedVisibility", e.Visibility))
}

func (e PublicationStarted) apply(v Version, _ es.Envelope) Version {
	v.Status, v.Problem, v.Wanted, v.Operation, v.Artefact = Publishing, "", e.Visibility, e.Operation, true
	v.Approval = v.Approval.from(e.From)
	return v
}

// PublicationRetried starts the copy of a failed publication once more.
type PublicationRetried struct {
	OfVersion
	After int `json:"after"` // as in PreparationRetried
}

// Changes implements es.Event.
func (PublicationRetried) Changes() []es.Change { return moved(PublishFailed, Publishing) }

func (PublicationRetried) apply(v Version, _ es.Envelope) Version {
	v.Status, v.Problem = Publishing, ""
	return v
}

// VersionPublished makes a version visible; from here on its files and
// settings are fixed, but for the description.
type VersionPublished struct {
	OfVersion
	Visibility  access.Visibility `json:"visibility"`
	Fingerprint string            `json:"fingerprint"`
	Files       *Files            `json:"files,omitempty"`
	From        Status            `json:"from"`
	// By is who asked for it, which the process that ends a copy is not.
	By uuid.UUID `json:"by"`
}

// Changes implements es.Event.
func (e VersionPublished) Changes() []es.Change {
	return append(moved(e.From, Published), es.Set("visibility", e.Visibility), es.Set("fingerprint", e.Fingerprint))
}

func (e VersionPublished) apply(v Version, env es.Envelope) Version {
	at := env.Meta.Time
	v.Status, v.Problem, v.Visibility, v.Wanted = Published, "", e.Visibility, ""
	v.Approval = v.Approval.from(e.From)
	v.Fingerprint, v.Files, v.PublishedAt, v.PublishedBy = e.Fingerprint, e.Files, &at, e.By
	return v
}

// PublicationFailed says why the files could not be copied.
type PublicationFailed struct {
	OfVersion
	Problem string `json:"problem"`
}

// Changes implements es.Event.
func (e PublicationFailed) Changes() []es.Change {
	return append(moved(Publishing, PublishFailed), es.Set("problem", e.Problem))
}

func (e PublicationFailed) apply(v Version, _ es.Envelope) Version {
	v.Status, v.Problem = PublishFailed, e.Problem
	return v
}

// PublicationCancelled takes a publication back; nothing of it is left.
type PublicationCancelled struct{ OfVersion }

// Changes implements es.Event.
func (PublicationCancelled) Changes() []es.Change { return moved(Publishing, Created) }

func (PublicationCancelled) apply(v Version, _ es.Envelope) Version {
	v.Status, v.Problem, v.Wanted, v.Artefact = Created, "", "", false
	return v
}

// DeletionStarted begins a deletion whose files must be removed first.
type DeletionStarted struct {
	OfVersion
	Operation uuid.UUID `json:"operation"`
	From      Status    `json:"from"`
}

// Changes implements es.Event.
func (e DeletionStarted) Changes() []es.Change { return moved(e.From, Deleting) }

func (e DeletionStarted) apply(v Version, _ es.Envelope) Version {
	v.Before, v.Status, v.Problem, v.Operation = e.From, Deleting, "", e.Operation
	return v
}

// DeletionFailed puts the version back to where it was, with the error.
type DeletionFailed struct {
	OfVersion
	Problem string `json:"problem"`
	Back    Status `json:"back"`
}

// Changes implements es.Event.
func (e DeletionFailed) Changes() []es.Change {
	return append(moved(Deleting, e.Back), es.Set("problem", e.Problem))
}

func (e DeletionFailed) apply(v Version, _ es.Envelope) Version {
	v.Status, v.Problem = e.Back, e.Problem
	return v
}

// DeletionRetried starts the removal of the files once more.
type DeletionRetried struct {
	OfVersion
	From  Status `json:"from"`
	After int    `json:"after"` // as in PreparationRetried
}

// Changes implements es.Event.
func (e DeletionRetried) Changes() []es.Change { return moved(e.From, Deleting) }

func (e DeletionRetried) apply(v Version, _ es.Envelope) Version {
	v.Before, v.Status, v.Problem = e.From, Deleting, ""
	return v
}

// VersionDeleted removes a version.
type VersionDeleted struct {
	OfVersion
	Label string `json:"label"`
	From  Status `json:"from"`
}

// Changes implements es.Event.
func (e VersionDeleted) Changes() []es.Change { return moved(e.From, Deleted) }

// UseRegistered says that something needs a published version.
type UseRegistered struct {
	OfVersion
	Use Use `json:"use"`
}

// Changes implements es.Event.
func (e UseRegistered) Changes() []es.Change { return []es.Change{es.Set("use", e.Use)} }

func (e UseRegistered) apply(v Version, _ es.Envelope) Version {
	v.Uses = append(slices.Clip(v.Uses), e.Use)
	return v
}

// UseReleased says that something needs the version no more.
type UseReleased struct {
	OfVersion
	By es.Ref `json:"by"`
}

// Changes implements es.Event.
func (e UseReleased) Changes() []es.Change { return []es.Change{es.Moved("use", e.By, nil)} }

func (e UseReleased) apply(v Version, _ es.Envelope) Version {
	v.Uses = slices.DeleteFunc(slices.Clone(v.Uses), func(u Use) bool { return u.By == e.By })
	return v
}

func moved(from, to Status) []es.Change { return []es.Change{es.Moved("state", from, to)} }
