package embedded

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
)

const (
	manifestFile = "manifest.json"
	backupEvents = "events" // directory of the store's files inside a backup
	backupKind   = "event store backup"
	// backupVersion is the layout of a backup; one of another is refused.
	backupVersion = 1
	// maxManifest bounds what is read as a manifest: a store of 100,000 files needs less.
	maxManifest = 32 << 20
)

// Manifest says what a backup holds.
type Manifest struct {
	Kind         string       `json:"kind"`
	Version      int          `json:"version"`
	Store        uuid.UUID    `json:"store"` // which store it is one of
	StoreFormat  int          `json:"storeFormat"`
	Taken        time.Time    `json:"taken"`
	Events       uint64       `json:"events"`
	LastPosition uint64       `json:"lastPosition"` // of its last event, 0 if it has none
	Bytes        int64        `json:"bytes"`
	Files        []BackupFile `json:"files"`
	// Sum is the checksum of the manifest itself, written without it.
	Sum string `json:"sum"`
}

// BackupFile is a file of a backup.
type BackupFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// ErrBadBackup says that a directory is no backup, or a damaged one.
var ErrBadBackup = errors.New("the backup can't be used")

// BackupProgress tells how far work on the files of a backup is, in bytes.
type BackupProgress struct {
	Step  string `json:"step"` // copy, count, sum, check or restore
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
}

func (m *Manifest) sum() (string, error) {
	plain := *m
	plain.Sum = ""
	b, err := json.Marshal(plain)
	if err != nil {
		return "", err
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:]), nil
}

// ReadManifest reads the manifest of a backup and checks that it is whole. The
// files are not looked at.
func ReadManifest(dir string) (m Manifest, err error) {
	bad := func(text string, args ...any) (Manifest, error) {
		return Manifest{}, fmt.Errorf("%w: %s", ErrBadBackup, fmt.Sprintf(text, args...))
	}
	f, err := os.Open(filepath.Join(dir, manifestFile)) //nolint:gosec // G304: the operator names the directory
	if errors.Is(err, fs.ErrNotExist) {
		return bad("%s holds no %s; it is no backup of an event store", dir, manifestFile)
	}
	if err != nil {
		return Manifest{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := io.ReadAll(io.LimitReader(f, maxManifest))
	if err != nil {
		return Manifest{}, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&m); err != nil || m.Kind != backupKind {
		return bad("%s in %s is damaged, or of something else", manifestFile, dir)
	}
	if m.Version != backupVersion || m.StoreFormat != storeFormat {
		return bad("it was made by another version of the program, which this one can't read (backup %d, store %d)", m.Version, m.StoreFormat)
	}
	want, err := m.sum()
	if err != nil {
		return Manifest{}, err
	}
	if want != m.Sum {
		return bad("%s in %s was changed or is damaged: its checksum does not match", manifestFile, dir)
	}
	for _, file := range m.Files {
		if file.Name != filepath.Base(file.Name) || file.Name == "." || file.Name == ".." {
			return bad("%s names a file outside of the backup", manifestFile)
		}
	}
	return m, nil
}

// write writes the manifest down for good.
func (m *Manifest) write(dir string) (err error) {
	if m.Sum, err = m.sum(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, manifestFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // G304: the operator names the directory
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// CheckBackup compares the files of a backup with its manifest.
func CheckBackup(ctx context.Context, dir string, report func(BackupProgress)) (Manifest, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return Manifest{}, err
	}
	if err := noOthers(filepath.Join(dir, backupEvents), m.Files); err != nil {
		return Manifest{}, err
	}
	meter := &meter{ctx: ctx, step: "check", total: m.Bytes, report: report}
	for _, file := range m.Files {
		if err := file.copyFrom(filepath.Join(dir, backupEvents), io.Discard, meter); err != nil {
			return Manifest{}, err
		}
	}
	return m, nil
}

// noOthers refuses files that the manifest does not know: a store would read them.
func noOthers(dir string, files []BackupFile) error {
	known := map[string]bool{lockFile: true}
	for _, f := range files {
		known[f.Name] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadBackup, err)
	}
	for _, e := range entries {
		if !known[e.Name()] {
			return fmt.Errorf("%w: it holds %s, which its %s does not know", ErrBadBackup, e.Name(), manifestFile)
		}
	}
	return nil
}

// copyFrom copies a file of a backup and compares it with the manifest.
func (b BackupFile) copyFrom(dir string, to io.Writer, m *meter) (err error) {
	f, err := os.Open(filepath.Join(dir, b.Name)) //nolint:gosec // G304: a name without a directory, below one that the operator names
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: its file %s is missing", ErrBadBackup, b.Name)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(h, to, m), f)
	if err != nil {
		return fmt.Errorf("copy %s: %w", b.Name, err)
	}
	if n != b.Size || hex.EncodeToString(h.Sum(nil)) != b.SHA256 {
		return fmt.Errorf("%w: its file %s is damaged: %d bytes with another checksum than %s says (%d bytes)", ErrBadBackup, b.Name, n, manifestFile, b.Size)
	}
	return nil
}

// sumFiles describes all files of a directory but the lock.
func sumFiles(dir string, m *meter) (files []BackupFile, bytes int64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, 0, err
		}
		if e.Name() == lockFile {
			continue
		}
		if !info.Mode().IsRegular() {
			return nil, 0, fmt.Errorf("%s is no regular file", e.Name())
		}
		m.total += info.Size()
		files = append(files, BackupFile{Name: e.Name(), Size: info.Size()})
		bytes += info.Size()
	}
	for i := range files {
		h := sha256.New()
		f, err := os.Open(filepath.Join(dir, files[i].Name)) //nolint:gosec // G304: we made it
		if err != nil {
			return nil, 0, err
		}
		_, err = io.Copy(io.MultiWriter(h, m), f)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, 0, err
		}
		files[i].SHA256 = hex.EncodeToString(h.Sum(nil))
	}
	return files, bytes, nil
}

// meter counts what goes through it, reports now and then, and ends the work
// when the context does.
type meter struct {
	ctx    context.Context
	step   string
	done   int64
	total  int64
	told   int64
	report func(BackupProgress)
}

// meterEvery is how many bytes lie between two reports.
const meterEvery = 16 << 20

func (m *meter) Write(b []byte) (int, error) {
	m.done += int64(len(b))
	if m.report != nil && (m.done-m.told >= meterEvery || m.done == m.total) {
		m.told = m.done
		m.report(BackupProgress{Step: m.step, Done: m.done, Total: m.total})
	}
	return len(b), context.Cause(m.ctx)
}
