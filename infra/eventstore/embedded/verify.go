package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// maxDamage bounds how many pieces of damage a report lists; all are counted.
const maxDamage = 1000

// VerifyProgress tells how far a verification is.
type VerifyProgress struct {
	// Step is what is looked at: files, log, index, heads, ids.
	Step string `json:"step"`
	// Done and Total count files, bytes of the log, index entries, streams or
	// ids. Total is 0 where nobody knows it beforehand.
	Done  uint64 `json:"done"`
	Total uint64 `json:"total"`
}

// Damage is something in the store that is not as it was written.
type Damage struct {
	Where string `json:"where"`
	What  string `json:"what"`
}

// VerifyReport is what a verification has found. The store is sound when
// Damaged is 0.
type VerifyReport struct {
	Files   uint64 `json:"files"`   // files whose checksums were read, apart from what the log is read by
	Events  uint64 `json:"events"`  // records of the log
	Bytes   uint64 `json:"bytes"`   // their size
	Removed uint64 `json:"removed"` // events that scavenging has removed
	Streams uint64 `json:"streams"`
	IDs     uint64 `json:"ids"` // remembered event ids; none in a directory that no server has open

	Damaged uint64   `json:"damaged"`
	Damage  []Damage `json:"damage,omitempty"` // the first thousand
}

// Verify compares everything in the store with everything else: the checksums
// of the files and of each record, the log with the index of the streams both
// ways, revisions without a gap, heads, and the remembered event ids. It works
// on one moment's state while the store goes on, in memory that does not grow
// with the log. report, which may be nil, is told how far it is. The error says
// that it could not be done; damage is in the report.
//
// Scavenging waits while a verification runs, and the other way round.
func (s *Server) Verify(ctx context.Context, report func(VerifyProgress)) (VerifyReport, error) {
	return s.store.verify(ctx, report)
}

// VerifyDir is Verify for the directory of a store that nobody has open. It
// changes nothing there, not even what opening the store would mend.
func VerifyDir(ctx context.Context, dir string, report func(VerifyProgress)) (rep VerifyReport, err error) {
	// Pebble would make an empty store where there is none.
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return VerifyReport{}, fmt.Errorf("there is no event store at %s", dir)
	}
	return verifyDir(ctx, storeOptions{dir: dir, logger: slog.New(slog.DiscardHandler), clock: time.Now}, report)
}

func verifyDir(ctx context.Context, opt storeOptions, report func(VerifyProgress)) (rep VerifyReport, err error) {
	s := newStore(opt)
	if err := s.openFiles(true); err != nil {
		return VerifyReport{}, err
	}
	defer func() { err = errors.Join(err, s.closeFiles(context.WithoutCancel(ctx))) }()
	return s.runVerifier(ctx, report, false)
}

func (s *store) verify(ctx context.Context, report func(VerifyProgress)) (rep VerifyReport, err error) {
	ctx, end, err := s.beginUpkeep(ctx)
	if err != nil {
		return VerifyReport{}, err
	}
	defer end()
	return s.runVerifier(ctx, report, true)
}

func (s *store) runVerifier(ctx context.Context, report func(VerifyProgress), running bool) (VerifyReport, error) {
	v := &verifier{ctx: ctx, store: s, report: report}
	steps := []func() error{v.files, v.description, v.log, v.index, v.heads}
	if running {
		steps = append(steps, v.ids)
	}
	err := s.trap.guard(context.Background(), func() (err error) {
		// Before the snapshot: the note moves on with what is appended.
		if v.noted, err = readLogEnd(s.opt.fs, s.opt.dir); err != nil {
			return err
		}
		v.db = s.db.NewSnapshot()
		defer func() { err = errors.Join(err, v.db.Close()) }()
		for _, step := range steps {
			// Behind a damaged file, reading keys would only fail the store.
			if err := step(); err != nil || v.unsound {
				return err
			}
		}
		return nil
	})
	if s.failure() != nil {
		return VerifyReport{}, err // it may be running still
	}
	return v.rep, err
}

// verifier is a verification under way.
type verifier struct {
	ctx    context.Context
	store  *store
	db     *pebble.Snapshot
	report func(VerifyProgress)
	rep    VerifyReport

	unsound bool   // what is damaged stands in the way of the steps behind
	noted   uint64 // up to where the log is known to have been safe
	end     uint64 // behind the last record
	entries uint64 // of the index
}

// progressEvery is how many keys are looked at between two reports.
const progressEvery = 4096

// tick reports now and then, and ends the work when the context does.
func (v *verifier) tick(step string, n, done, total uint64) error {
	if n%progressEvery != 0 {
		return nil
	}
	if v.report != nil {
		v.report(VerifyProgress{Step: step, Done: done, Total: total})
	}
	return context.Cause(v.ctx)
}

func (v *verifier) damage(where, format string, args ...any) {
	v.rep.Damaged++
	if len(v.rep.Damage) < maxDamage {
		v.rep.Damage = append(v.rep.Damage, Damage{Where: where, What: fmt.Sprintf(format, args...)})
	}
}

// keys hands every key with a prefix to look, in order. A damaged block ends
// the verification, as the keys behind it can't be seen.
func (v *verifier) keys(prefix byte, look func(key, value []byte) error) (err error) {
	it, err := v.db.NewIterWithContext(v.ctx, &pebble.IterOptions{LowerBound: []byte{prefix}, UpperBound: []byte{prefix + 1}})
	if err != nil {
		return fmt.Errorf("read the store: %w", err)
	}
	defer func() { err = v.unlessDamaged(errors.Join(err, it.Close())) }()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if err := look(it.Key(), value); err != nil {
			return err
		}
	}
	return it.Error()
}

// unlessDamaged turns an error that a damaged block caused into damage.
func (v *verifier) unlessDamaged(err error) error {
	if !pebble.IsCorruptionError(err) {
		return err
	}
	v.unsound = true
	v.damage("files", "%v", err)
	return nil
}

// description looks at the store's own keys.
func (v *verifier) description() error {
	_, found, err := readDescription(v.db)
	switch {
	case pebble.IsCorruptionError(err):
		return v.unlessDamaged(err)
	case err != nil:
		v.damage("description", "%v", err)
	case !found:
		v.damage("description", "the store's description is missing")
	}
	return nil
}
