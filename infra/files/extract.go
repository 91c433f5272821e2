package files

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/mholt/archives"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
)

// format is a kind of archive: compressed or not, of many files or of one.
type format struct {
	open  archives.Decompressor // nil: it is not compressed
	files archives.Extractor    // nil: it is one file
}

var (
	tarGz    = &format{archives.Gz{}, archives.Tar{}}
	tarBz2   = &format{archives.Bz2{}, archives.Tar{}}
	plainTar = &format{nil, archives.Tar{}}
	plainZip = &format{nil, archives.Zip{}}
	plainGz  = &format{archives.Gz{}, nil}
)

// What comes out of an archive may be so many times as large as the archive is,
// and this much in any case: what is larger was made to fill the disk.
const (
	bombRatio = 250
	bombFloor = 256 << 20
)

// extractor takes one archive apart into a temporary place.
type extractor struct {
	u    *unpacker
	size int64 // of the archive
	root *dir  // where the temporary place is
	name string

	top           *dir // the folder that it is taken apart into; nil for one file
	parent        *dir // the folder of the last file
	parentPath    storage.Path
	files, bytes  int64
	ownError      error // of the disk or the context, not of the archive
	buffer, zeros []byte
}

// extract takes the archive apart. An error that is a refusal is the archive's
// fault; all others are ours.
func (x *extractor) extract(in *os.File, f *format) (err error) {
	x.buffer, x.zeros = make([]byte, 64<<10), make([]byte, 64<<10)
	defer func() {
		// The formats are read by others' code, on what anybody may have written.
		if p := recover(); p != nil {
			err = &refusal{"it is damaged"}
		}
		x.close()
	}()
	switch {
	case f.files == nil:
		err = x.single(in, f)
	case f.open == nil:
		err = x.many(in, f)
	default:
		err = x.opened(in, f.open, func(r io.Reader) error { return x.many(r, f) })
	}
	var refused *refusal
	switch {
	case x.ownError != nil:
		return x.ownError
	case err == nil, errors.As(err, &refused):
		return err
	case x.u.ctx.Err() != nil:
		return x.u.ctx.Err()
	}
	return &refusal{"it is damaged, or no such archive"}
}

func (x *extractor) opened(in io.Reader, d archives.Decompressor, with func(io.Reader) error) error {
	r, err := d.OpenReader(in)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // only read
	return with(r)
}

// single unpacks what is one file.
func (x *extractor) single(in io.Reader, f *format) error {
	return x.opened(in, f.open, func(r io.Reader) error {
		x.files++
		return x.write(x.root, x.name, r, publicFile)
	})
}

func (x *extractor) many(in io.Reader, f *format) error {
	var err error
	if x.top, err = x.root.ensure(x.name, privateMode); err != nil {
		return x.own(err)
	}
	err = f.files.Extract(x.u.ctx, in, func(_ context.Context, info archives.FileInfo) error { return x.entry(info) })
	if err != nil {
		return err
	}
	return x.own(x.readOnly(x.top))
}

// own remembers an error that is not the archive's fault.
func (x *extractor) own(err error) error {
	if err != nil && x.ownError == nil {
		x.ownError = explain("unpack", "", err)
	}
	return err
}

func (x *extractor) entry(info archives.FileInfo) error {
	if x.files++; x.files > x.u.store.maxFiles {
		return &refusal{fmt.Sprintf("it holds more than %d files", x.u.store.maxFiles)}
	}
	name := info.NameInArchive
	for strings.HasPrefix(name, "./") { // as tar writes them
		name = name[2:]
	}
	if info.IsDir() {
		name = strings.TrimSuffix(name, "/")
	}
	if name == "" || name == "." {
		return nil
	}
	p, bad := storage.ParsePath(name)
	if bad != nil {
		return &refusal{"the name " + quote(shorten(info.NameInArchive)) + " in it is refused: " + strings.TrimSuffix(bad.Message, ".")}
	}
	if why := special(info); why != "" {
		return &refusal{quote(p.String()) + " in it is " + why + ", and only files and folders are unpacked"}
	}
	if info.IsDir() {
		d, err := build(x.top, p)
		if err != nil {
			return x.taken(p, err)
		}
		d.close()
		return nil
	}
	if err := x.enter(p.Dir()); err != nil {
		return x.taken(p, err)
	}
	if _, _, err := x.parent.lookup(p.Base()); err == nil {
		return &refusal{quote(p.String()) + " is in it twice"}
	}
	r, err := info.Open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // only read
	mode := fs.FileMode(publicFile)
	if info.Mode()&0o100 != 0 {
		mode = publicProgram
	}
	return x.write(x.parent, p.Base(), r, mode)
}

// special tells what an entry is that is neither a file nor a folder.
func special(info archives.FileInfo) string {
	header, isTar := info.Header.(*tar.Header)
	switch {
	case info.LinkTarget != "", info.Mode()&fs.ModeSymlink != 0, isTar && header.Typeflag == tar.TypeLink:
		return "a link"
	case !info.IsDir() && !info.Mode().IsRegular(),
		isTar && header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir && header.Typeflag != tar.TypeGNUSparse:
		return "a device or another special file"
	}
	return ""
}

func shorten(name string) string {
	const most = 200
	if len(name) > most {
		return name[:most] + "…"
	}
	return name
}

// taken turns a place that another entry stands in into a refusal.
func (x *extractor) taken(p storage.Path, err error) error {
	if _, isFault := fault.All(err); isFault {
		return &refusal{quote(p.String()) + " in it has the place of another"}
	}
	return x.own(err)
}

// enter opens the folder that the next file goes into; files of one folder
// mostly follow each other.
func (x *extractor) enter(p storage.Path) error {
	if x.parent != nil && x.parentPath == p {
		return nil
	}
	d, err := build(x.top, p)
	if err != nil {
		return err
	}
	if x.parent != nil {
		x.parent.close()
	}
	x.parent, x.parentPath = d, p
	return nil
}

func (x *extractor) close() {
	for _, d := range []*dir{x.parent, x.top} {
		if d != nil {
			d.close()
		}
	}
}

// write writes one file. Blocks of zeros become holes: a file that was sparse
// when it was packed is sparse again.
func (x *extractor) write(in *dir, name string, r io.Reader, mode fs.FileMode) (err error) {
	f, err := in.create(name)
	if err != nil {
		return x.own(err)
	}
	defer func() {
		if closed := f.Close(); closed != nil && err == nil {
			err = x.own(closed)
		}
	}()
	var at int64
	for {
		if err := x.u.ctx.Err(); err != nil {
			return x.own(err)
		}
		n, err := io.ReadFull(r, x.buffer)
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return err
		}
		if err := x.charge(int64(n)); err != nil {
			return err
		}
		if !bytes.Equal(x.buffer[:n], x.zeros[:n]) {
			if _, err := f.WriteAt(x.buffer[:n], at); err != nil {
				return x.own(err)
			}
		}
		at += int64(n)
		if ended {
			break
		}
	}
	x.u.done.DoneFiles++
	return x.own(errors.Join(f.Truncate(at), f.Chmod(mode)))
}

// charge counts what comes out, before it is written.
func (x *extractor) charge(n int64) error {
	x.bytes += n
	x.u.done.DoneBytes += n
	switch {
	case x.bytes > bombFloor && x.bytes/bombRatio > x.size:
		return &refusal{fmt.Sprintf("more than %d times its size comes out of it", bombRatio)}
	case x.u.done.DoneBytes > x.u.store.maxBytes:
		return &refusal{fmt.Sprintf("more than %d bytes would be unpacked", x.u.store.maxBytes)}
	}
	report(x.u.progress, x.u.done)
	return nil
}

// readOnly gives folders their final mode, the inner ones first.
func (x *extractor) readOnly(d *dir) error {
	names, err := d.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		st, err := d.lstat(name)
		if err != nil {
			return err
		}
		if !st.dir {
			continue
		}
		sub, err := d.child(name)
		if err != nil {
			return err
		}
		err = x.readOnly(sub)
		sub.close()
		if err != nil {
			return err
		}
	}
	return d.chmod(publicFolder)
}
