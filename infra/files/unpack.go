package files

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
)

// nesting is how many archives may lie inside each other.
const nesting = 8

// unpacked is a line of the note about what was unpacked in a cache. It stands
// there before the result takes its place: a result that is there without a line
// is the user's own.
type unpacked struct {
	Target    string    `json:"target"`
	Operation uuid.UUID `json:"operation"`
}

func unpackedName(cache string) string { return cache + ".unpacked" }

// UnpackCache unpacks the archives in the cache of a data set, each beside
// itself under the same name, also those inside others. An archive that is
// refused (a bomb, names that leave it, links, damage, a taken place) leaves
// nothing; all others are unpacked, and the error names the first refused one.
// What was unpacked before, by this operation or another one, stays.
func (s *Store) UnpackCache(ctx context.Context, tenant, dataSet, operation uuid.UUID, progress func(Progress)) (Progress, error) {
	work, j, err := s.cache(tenant, dataSet)
	if err != nil {
		return Progress{}, err
	}
	defer work.close()
	defer j.close()
	top, err := work.child(dataSet.String())
	if errors.Is(err, fs.ErrNotExist) {
		return Progress{}, fault.New(fault.State, fault.CodeInvalidState, "The data set isn't in the node cache; cache it first.")
	}
	if err != nil {
		return Progress{}, explain("unpack", "", err)
	}
	defer top.close()
	u := &unpacker{ctx: ctx, store: s, work: work, top: top, name: dataSet.String(), operation: operation, progress: progress}
	err = u.run()
	return u.done, errors.Join(err, work.sync())
}

// unpacker unpacks what lies in one cache.
type unpacker struct {
	ctx       context.Context // lives for one call
	store     *Store
	work, top *dir
	name      string
	operation uuid.UUID
	progress  func(Progress)

	known   map[string]uuid.UUID // targets → operations
	done    Progress
	refused []*fault.Fault
}

func (u *unpacker) run() (err error) {
	if u.known, err = u.read(); err != nil {
		return explain("unpack", "", err)
	}
	if err := discard(u.ctx, u.work, u.tempName(), u.work, u.name+".trash."); err != nil {
		return err
	}
	if err := u.folder(storage.Root, 0); err != nil {
		return err
	}
	if len(u.refused) == 0 {
		return nil
	}
	first := u.refused[0]
	if more := len(u.refused) - 1; more > 0 {
		first.Message += fmt.Sprintf(" %d more were refused.", more)
	}
	return first
}

func (u *unpacker) tempName() string { return u.name + ".unpacking" }

// folder unpacks the archives of a folder and of those in it, and then what
// came out of them.
func (u *unpacker) folder(at storage.Path, depth int) error {
	if err := u.ctx.Err(); err != nil {
		return err
	}
	d, err := descend(u.top, at)
	if err != nil {
		return err
	}
	names, err := d.names()
	d.close()
	if err != nil {
		return explain("unpack", at.String(), err)
	}
	for _, name := range names {
		p, f := at.Join(name)
		if f != nil {
			continue // no copy of a folder has such a name
		}
		if err := u.entry(p, depth); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) entry(p storage.Path, depth int) error {
	e, err := statPath(u.top, p)
	if err != nil {
		return err
	}
	if e.Kind == KindDirectory {
		// What came out of an archive is gone through with the archive, so that
		// it is known how deep it lies.
		if _, came := u.known[p.String()]; came {
			return nil
		}
		return u.folder(p, depth)
	}
	base, format := formatOf(p.Base())
	if e.Kind != KindFile || format == nil {
		return nil
	}
	target, bad := p.Dir().Join(base)
	if bad != nil { // a name such as "...zip"
		u.refuse(p, "its name without the ending can't be used: "+strings.TrimSuffix(bad.Message, "."))
		return nil //nolint:nilerr // it is told at the end, with all others that were refused
	}
	if depth >= nesting {
		u.refuse(p, fmt.Sprintf("it lies inside of more than %d others", nesting))
		return nil
	}
	before := u.done
	if err := u.archive(p, target, format); err != nil {
		var bad *refusal
		if !errors.As(err, &bad) {
			return err
		}
		u.done = before // nothing of it is left
		u.refuse(p, bad.reason)
		return explain("unpack", p.String(), u.discardTemp())
	}
	made, err := statPath(u.top, target)
	if err != nil {
		return err
	}
	if made.Kind == KindDirectory {
		return u.folder(target, depth+1)
	}
	return u.entry(target, depth+1) // a gz may hold an archive
}

func (u *unpacker) refuse(p storage.Path, why string) {
	u.refused = append(u.refused, fault.New(fault.Invalid, fault.CodeNotAllowed,
		"The archive "+quote(p.String())+" was not unpacked: "+why+". What is beside it stays as it is."))
}

func (u *unpacker) discardTemp() error {
	return discard(u.ctx, u.work, u.tempName(), u.work, u.name+".trash.")
}

// archive unpacks one archive, unless that was done already.
func (u *unpacker) archive(p, target storage.Path, format *format) error {
	there, err := statPath(u.top, target)
	if err != nil && !fault.Is(err, fault.CodeNotFound) {
		return err
	}
	_, known := u.known[target.String()]
	switch {
	case err == nil && known:
		return nil
	case err == nil:
		return &refusal{"there is " + quote(there.Path.String()) + " already"}
	}
	parent, err := descend(u.top, p.Dir())
	if err != nil {
		return err
	}
	defer parent.close()
	in, st, err := parent.open(p.Base(), unix.O_RDONLY)
	if err != nil {
		return explain("open", p.String(), err)
	}
	defer func() { _ = in.Close() }() // only read
	x := &extractor{u: u, size: st.size, root: u.work, name: u.tempName()}
	if err := x.extract(in, format); err != nil {
		return err
	}
	if err := u.note(target); err != nil {
		return explain("unpack", p.String(), err)
	}
	return explain("unpack", p.String(), u.place(parent, target.Base()))
}

// place gives what was unpacked its place, whole and durable.
func (u *unpacker) place(parent *dir, name string) error {
	if err := u.store.syncAround(u.work); err != nil {
		return err
	}
	if err := parent.chmod(privateMode); err != nil {
		return err
	}
	err := renameNew(u.work, u.tempName(), parent, name)
	return errors.Join(err, parent.sync(), parent.chmod(publicFolder))
}

// note writes a line before the result is put into its place.
func (u *unpacker) note(target storage.Path) error {
	u.known[target.String()] = u.operation
	f, st, err := u.work.openOrCreate(unpackedName(u.name))
	if err != nil {
		return err
	}
	line, err := json.Marshal(unpacked{Target: target.String(), Operation: u.operation})
	if err == nil {
		_, err = f.WriteAt(append(line, '\n'), st.size)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// read gives what the lines say; one that a crash cut short is of nothing that
// took its place.
func (u *unpacker) read() (known map[string]uuid.UUID, err error) {
	known = map[string]uuid.UUID{}
	f, _, err := u.work.open(unpackedName(u.name), unix.O_RDWR)
	if err != nil {
		return known, ignoreMissing(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := bufio.NewReader(f)
	var good int64
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return known, f.Truncate(good)
		}
		if err != nil {
			return known, err
		}
		var l unpacked
		if json.Unmarshal(line, &l) != nil {
			return known, f.Truncate(good)
		}
		good += int64(len(line))
		known[l.Target] = l.Operation
	}
}

// DiscardUnpacked removes what an operation unpacked. Nothing there is no error.
func (s *Store) DiscardUnpacked(ctx context.Context, tenant, dataSet, operation uuid.UUID) error {
	work, j, err := s.cache(tenant, dataSet)
	if err != nil {
		return err
	}
	defer work.close()
	defer j.close()
	u := &unpacker{ctx: ctx, store: s, work: work, name: dataSet.String(), operation: operation}
	if err := u.discardTemp(); err != nil {
		return err
	}
	if u.known, err = u.read(); err != nil {
		return explain("discard", "", err)
	}
	u.top, err = work.child(u.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return explain("discard", "", err)
	}
	defer u.top.close()
	kept := map[string]uuid.UUID{}
	for target, by := range u.known {
		if by != operation {
			kept[target] = by
			continue
		}
		if err := u.remove(target); err != nil {
			return err
		}
	}
	if err := work.unlink(unpackedName(u.name)); err != nil {
		return explain("discard", "", err)
	}
	for target, by := range kept {
		p, f := storage.ParsePath(target)
		if f != nil {
			continue
		}
		u.operation = by
		if err := u.note(p); err != nil {
			return explain("discard", "", err)
		}
	}
	return nil
}

func (u *unpacker) remove(target string) error {
	p, f := storage.ParsePath(target)
	if f != nil {
		return f
	}
	parent, err := descend(u.top, p.Dir())
	if fault.Is(err, fault.CodeNotFound) {
		return nil // it lay in another one, which is gone
	}
	if err != nil {
		return err
	}
	defer parent.close()
	if err := parent.chmod(privateMode); err != nil {
		return explain("discard", target, err)
	}
	err = discard(u.ctx, parent, p.Base(), u.work, u.name+".trash.")
	return errors.Join(err, explain("discard", target, parent.chmod(publicFolder)))
}

// refusal is why an archive is not unpacked, to people.
type refusal struct{ reason string }

// Error implements error.
func (r *refusal) Error() string { return "refused: " + r.reason }

// endings are the archives that are unpacked, the longer endings first.
var endings = []struct {
	ending string
	format *format
}{
	{".tar.gz", tarGz},
	{".tgz", tarGz},
	{".tar.bz2", tarBz2},
	{".tbz2", tarBz2},
	{".tbz", tarBz2},
	{".tar", plainTar},
	{".zip", plainZip},
	{".gz", plainGz},
}

// formatOf tells what kind of archive a file is by its name, and the name of
// what comes out; nil for what is none.
func formatOf(name string) (string, *format) {
	lower := strings.ToLower(name)
	for _, e := range endings {
		if base, ok := strings.CutSuffix(lower, e.ending); ok && base != "" {
			return name[:len(name)-len(e.ending)], e.format
		}
	}
	return "", nil
}
