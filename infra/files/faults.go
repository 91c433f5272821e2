package files

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
)

// ErrSourceGone is in the error of a copy whose source folder is missing, or
// vanished while it was copied. The same error also holds a fault for the user.
var ErrSourceGone = errors.New("files: the folder to copy is gone")

// ErrArtefactChanged is in the error when published files are not what their manifest says.
var ErrArtefactChanged = errors.New("files: published files differ from their manifest")

// DetailUploadOffset is the detail of a fault that tells at which byte an upload goes on.
const DetailUploadOffset = "uploadOffset"

// quote shows a path to a person: what can't be shown is replaced.
func quote(path string) string {
	if path == "" {
		return "the space itself"
	}
	return "\"" + printable(path) + "\""
}

func noSpace() *fault.Fault {
	return fault.New(fault.NotFound, fault.CodeNotFound, "This storage space isn't there yet; try again in a moment.")
}

func reservedTaken() *fault.Fault {
	return fault.New(fault.State, fault.CodeInvalidState,
		"Something else stands in the place of the folder "+storage.ReservedName+" of this space; remove it from within an environment.")
}

func notFound(p storage.Path) *fault.Fault {
	return fault.New(fault.NotFound, fault.CodeNotFound,
		"There's no file or folder "+quote(p.String())+"; list the folder above it to see what there is.")
}

func isFolder(p storage.Path) *fault.Fault {
	return fault.New(fault.Invalid, fault.CodeInvalidValue, capital(quote(p.String()))+" is a folder; name a file inside it.")
}

func isFile(p storage.Path) *fault.Fault {
	return fault.New(fault.Invalid, fault.CodeInvalidValue, capital(quote(p.String()))+" is a file; name a folder.")
}

func isOther(path string) *fault.Fault {
	return fault.New(fault.State, fault.CodeInvalidState,
		capital(quote(path))+" is a link, a device or another special file; only plain files and folders are used, so replace or delete it.")
}

func taken(p storage.Path) *fault.Fault {
	return fault.New(fault.Conflict, fault.CodeNameTaken, capital(quote(p.String()))+" exists already; choose another name or delete it first.")
}

func fileInTheWay(p storage.Path) *fault.Fault {
	return fault.New(fault.Conflict, fault.CodeNameTaken,
		capital(quote(p.String()))+" is not a folder, so nothing can be put into it; choose another path or delete it first.")
}

func full() *fault.Fault {
	return fault.New(fault.Quota, fault.CodeQuotaExceeded, "The storage is full; delete files that are no longer needed, then try again.")
}

func unreadable(path string) *fault.Fault {
	return fault.New(fault.State, fault.CodeInvalidState,
		capital(quote(path))+" can't be opened because of its permissions; allow its owner to read and write it.")
}

func busy(what string) *fault.Fault {
	return fault.New(fault.Conflict, fault.CodeConflict, what+"; wait until it has ended, then try again.")
}

func sourceGone(p storage.Path) error {
	return fmt.Errorf("%w: %w", ErrSourceGone, fault.New(fault.State, fault.CodeInvalidState,
		"The folder "+quote(p.String())+" is no longer there; put it back or choose another one, then retry."))
}

// errSourceChanged marks faults that may mean that the whole folder is gone.
var errSourceChanged = errors.New("files: the source changed")

func sourceChanged(path string) error {
	return fmt.Errorf("%w: %w", errSourceChanged, fault.New(fault.Conflict, fault.CodeConflict,
		capital(quote(path))+" was changed while the folder was copied; stop what writes to it, then retry."))
}

// capital lets a sentence start with a path or with "the space itself".
func capital(s string) string {
	if rest, ok := strings.CutPrefix(s, "the "); ok {
		return "The " + rest
	}
	return s
}

// explain turns an error about a path into one for the user where the user can
// do something about it; other errors keep their inside for the log.
func explain(doing string, p string, err error) error {
	var f *fault.Fault
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return err
	case isFull(err):
		return fmt.Errorf("files: %s: %w: %w", doing, full(), err)
	case errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.EPERM):
		return fmt.Errorf("files: %s: %w: %w", doing, unreadable(p), err)
	case errors.Is(err, errOther):
		return isOther(p)
	}
	return fmt.Errorf("files: %s: %w", doing, err)
}
