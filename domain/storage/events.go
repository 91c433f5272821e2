package storage

import (
	"github.com/google/uuid"

	"tallyard/domain/es"
)

// Types are the events of spaces under their stored names.
var Types = []es.TypeDef{
	es.Type[SpaceCreated]("space.created.v1"),
	es.Type[ChangeRequested]("space.change_requested.v1"),
	es.Type[DirectoryCreated]("space.directory_created.v1"),
	es.Type[FilesDeleted]("space.files_deleted.v1"),
	es.Type[DirectoryRemovalRequested]("space.directory_removal_requested.v1"),
	es.Type[QuotaSet]("space.quota_set.v1"),
	es.Type[FileUploaded]("space.file_uploaded.v1"),
}

// SpaceCreated makes a space.
type SpaceCreated struct {
	Kind    Kind      `json:"kind"`
	Owner   uuid.UUID `json:"owner,omitzero"`
	Project uuid.UUID `json:"project,omitzero"`
	Zone    string    `json:"zone"`
}

// Changes implements es.Event.
func (e SpaceCreated) Changes() []es.Change {
	c := []es.Change{es.Set("kind", e.Kind), es.Set("zone", e.Zone)}
	if e.Owner != uuid.Nil {
		c = append(c, es.Set("owner", e.Owner))
	}
	if e.Project != uuid.Nil {
		c = append(c, es.Set("project", e.Project))
	}
	return c
}

// ChangeKind tells what is to happen to files.
type ChangeKind string

// Kinds of changes to files.
const (
	CreateDirectory ChangeKind = "CREATE_DIRECTORY"
	DeleteFiles     ChangeKind = "DELETE_FILES"
	UploadFile      ChangeKind = "UPLOAD_FILE"
)

// ChangeRequested stands in the log before files are touched. Disk and log
// can't change together: were the disk first, a crash in between would leave a
// deletion that nobody is on record for. With the request first the worst is a
// request whose outcome is missing, and that is visible.
type ChangeRequested struct {
	Change ChangeKind `json:"change"`
	Path   string     `json:"path"`
}

// Changes implements es.Event.
func (e ChangeRequested) Changes() []es.Change {
	return []es.Change{es.Set("change", e.Change), es.Set("path", e.Path)}
}

// DirectoryCreated says that a directory was made.
type DirectoryCreated struct {
	Path string `json:"path"`
}

// Changes implements es.Event.
func (e DirectoryCreated) Changes() []es.Change { return []es.Change{es.Set("path", e.Path)} }

// DirectoryRemovalRequested asks for a directory to be removed with everything
// in it, by an operation (OPS-01). Directory names the very directory that stood
// there: one that comes to the same path later is not meant.
type DirectoryRemovalRequested struct {
	Path      string    `json:"path"`
	Directory string    `json:"directory"`
	Operation uuid.UUID `json:"operation"`
}

// Changes implements es.Event.
func (e DirectoryRemovalRequested) Changes() []es.Change {
	return []es.Change{es.Set("change", DeleteFiles), es.Set("path", e.Path), es.Set("operation", e.Operation)}
}

// FilesDeleted says what was deleted under a path.
type FilesDeleted struct {
	Path  string `json:"path"`
	Files int64  `json:"files"`
	Bytes int64  `json:"bytes"`
}

// Changes implements es.Event.
func (e FilesDeleted) Changes() []es.Change {
	return []es.Change{{Field: "path", From: es.ValueOf(e.Path)}, es.Moved("files", e.Files, 0), es.Moved("bytes", e.Bytes, 0)}
}

// FileUploaded says that a file was put in place, whole.
type FileUploaded struct {
	Path      string `json:"path"`
	SizeBytes int64  `json:"sizeBytes"`
	SHA256    string `json:"sha256"`
}

// Changes implements es.Event.
func (e FileUploaded) Changes() []es.Change {
	return []es.Change{es.Set("path", e.Path), es.Set("sizeBytes", e.SizeBytes), es.Set("sha256", e.SHA256)}
}

// QuotaSet says how many bytes the space may hold; nil is what the installation
// gives to spaces of its kind.
type QuotaSet struct {
	From *int64 `json:"from"`
	To   *int64 `json:"to"`
}

// Changes implements es.Event.
func (e QuotaSet) Changes() []es.Change {
	return []es.Change{{Field: "quotaBytes", From: es.ValueOf(e.From), To: es.ValueOf(e.To)}}
}
