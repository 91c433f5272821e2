package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/google/uuid"

	"tallyard/domain/storage"
)

// Modes of what the platform makes. Published files are read-only for everybody.
const (
	rootMode      = 0o711 // may be passed through, not listed
	folderMode    = 0o750
	fileMode      = 0o640
	programMode   = 0o750
	privateMode   = 0o700
	publicFolder  = 0o555
	publicFile    = 0o444
	publicProgram = 0o555
)

// Config says where the files are and how much one copy may hold.
type Config struct {
	SpacesDir    string       // spaces, <tenant>/<space>/
	PublishedDir string       // published artefacts, <tenant>/<artefact>/; must not lie in SpacesDir
	CacheDir     string       // node caches of data sets, <tenant>/<data set>/; empty: there are none
	Logger       *slog.Logger // nil discards
	MaxCopyFiles int64        // files and folders in one copy; 0 means 1,000,000
	MaxCopyBytes int64        // bytes in one copy; 0 means 1 TiB
	CopyRate     int64        // bytes a second that all copies read together, at least MinCopyRate; 0 means no limit
}

// Store is the file system of users and published artefacts.
// Its methods may be called at the same time; it has no goroutines of its own.
type Store struct {
	spaces, published *os.Root
	caches            *os.Root // nil: there are none
	log               *slog.Logger
	maxFiles          int64
	maxBytes          int64
	rate              *rate
	ledger            Ledger  // nil: nothing is counted
	digests           Digests // nil: nobody learns

	// syncAround is the function of that name, except in tests that don't ask for durability.
	syncAround func(*dir) error
	// afterFile, in tests, is called when a file of a copy was copied.
	afterFile func(path string)
}

// Open makes the two directories when they are missing and opens them.
func Open(cfg Config) (*Store, error) {
	if cfg.CopyRate != 0 && cfg.CopyRate < MinCopyRate {
		return nil, fmt.Errorf("files: a copy rate of %d bytes a second is too low; give at least %d, or 0 for no limit", cfg.CopyRate, MinCopyRate)
	}
	s := &Store{log: cfg.Logger, maxFiles: cfg.MaxCopyFiles, maxBytes: cfg.MaxCopyBytes, rate: newRate(cfg.CopyRate), syncAround: syncAround}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.maxFiles == 0 {
		s.maxFiles = 1_000_000
	}
	if s.maxBytes == 0 {
		s.maxBytes = 1 << 40
	}
	var err error
	if s.spaces, err = openRoot(cfg.SpacesDir); err != nil {
		return nil, fmt.Errorf("files: directory of the spaces: %w", err)
	}
	if s.published, err = openRoot(cfg.PublishedDir); err != nil {
		return nil, errors.Join(fmt.Errorf("files: directory of published files: %w", err), s.spaces.Close())
	}
	if cfg.CacheDir != "" {
		if s.caches, err = openRoot(cfg.CacheDir); err != nil {
			return nil, errors.Join(fmt.Errorf("files: directory of caches: %w", err), s.Close())
		}
	}
	return s, nil
}

func openRoot(path string) (*os.Root, error) {
	if path == "" {
		return nil, errors.New("not configured")
	}
	if err := os.MkdirAll(path, rootMode); err != nil {
		return nil, err
	}
	return os.OpenRoot(path)
}

// Close gives the directories back. No method may be running.
func (s *Store) Close() error {
	var caches error
	if s.caches != nil {
		caches = s.caches.Close()
	}
	return errors.Join(s.spaces.Close(), s.published.Close(), caches)
}

// EnsureSpace makes the directory of a space; one that exists is fine.
func (s *Store) EnsureSpace(ctx context.Context, tenant, space uuid.UUID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	owner, err := ensureTenant(s.spaces, tenant)
	if err != nil {
		return fmt.Errorf("files: make space: %w", err)
	}
	defer owner.close()
	d, err := owner.ensure(space.String(), folderMode)
	if err != nil {
		return fmt.Errorf("files: make space: %w", err)
	}
	d.close()
	return nil
}

func ensureTenant(root *os.Root, tenant uuid.UUID) (*dir, error) {
	top, err := enter(root, ".")
	if err != nil {
		return nil, err
	}
	defer top.close()
	return top.ensure(tenant.String(), rootMode)
}

// space opens the directory of a space.
func (s *Store) space(ctx context.Context, tenant, space uuid.UUID) (*dir, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	owner, err := enter(s.spaces, tenant.String())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noSpace()
	}
	if err != nil {
		return nil, fmt.Errorf("files: open space: %w", err)
	}
	defer owner.close()
	d, err := owner.child(space.String())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noSpace()
	}
	if err != nil {
		return nil, fmt.Errorf("files: open space: %w", err)
	}
	return d, nil
}

// hidden opens an area of the space's hidden folder, making it when it is missing.
func hidden(space *dir, area string) (*dir, error) {
	top, err := space.ensure(storage.ReservedName, privateMode)
	if errors.Is(err, errNotDir) {
		return nil, reservedTaken()
	}
	if err != nil {
		return nil, err
	}
	defer top.close()
	d, err := top.ensure(area, privateMode)
	if errors.Is(err, errNotDir) {
		return nil, reservedTaken()
	}
	return d, err
}

// Areas of the hidden folder of a space.
const (
	uploadsArea = "uploads"
	copiesArea  = "copies"
	trashArea   = "trash"
)
