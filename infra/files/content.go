package files

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// copyContent makes the new file with in's content and gives its SHA-256.
func (c *copier) copyContent(dst *dir, in *os.File, n *node, path string) (sum []byte, err error) {
	out, err := dst.create(n.name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	digest := sha256.New()
	if c.clone(out, in) {
		err = c.hashClone(digest, out, n.stat.size)
	} else {
		err = c.stream(digest, out, in, n.stat.size)
	}
	if errors.Is(err, errSize) {
		return nil, sourceChanged(c.scan.inSpace(path))
	}
	if err != nil {
		return nil, err
	}
	after, err := statFile(in)
	if err != nil {
		return nil, err
	}
	if !after.same(n.stat) {
		return nil, sourceChanged(c.scan.inSpace(path))
	}
	mode := c.modes.file
	if n.stat.exec {
		mode = c.modes.program
	}
	if err := out.Chmod(mode); err != nil {
		return nil, err
	}
	if err := dst.setModified(n.name, n.stat.modified); err != nil {
		return nil, err
	}
	if n.stat.size >= largeFile {
		if err := out.Sync(); err != nil {
			return nil, err
		}
	}
	return digest.Sum(nil), nil
}

// errSize: there are more or fewer bytes than the file had.
var errSize = errors.New("size changed")

// clone shares the blocks of the file, where the file system can do that.
func (c *copier) clone(out, in *os.File) bool {
	if c.cannotClone {
		return false
	}
	err := cloneFile(out, in)
	for _, never := range []error{unix.EXDEV, unix.EOPNOTSUPP, unix.ENOTTY, unix.ENOSYS, unix.EINVAL, errors.ErrUnsupported} {
		c.cannotClone = c.cannotClone || errors.Is(err, never)
	}
	return err == nil
}

// hashClone reads the copy, not the source, which may change while it is read.
func (c *copier) hashClone(digest hash.Hash, out *os.File, size int64) error {
	var total int64
	err := c.blocks(out, func(block []byte) error {
		total += int64(len(block))
		_, _ = digest.Write(block) // never fails
		return nil
	})
	if err == nil && total != size {
		err = errSize
	}
	return err
}

// stream copies the bytes. Stretches of zeros become holes, so that a sparse
// file doesn't grow to its full size.
func (c *copier) stream(digest hash.Hash, out, in *os.File, size int64) error {
	var total int64
	err := c.blocks(in, func(block []byte) error {
		if total+int64(len(block)) > size {
			return errSize // it grows: don't follow it for ever
		}
		_, _ = digest.Write(block) // never fails
		err := writeSparse(out, block, total)
		total += int64(len(block))
		return err
	})
	if err == nil && total != size {
		err = errSize
	}
	if err != nil {
		return err
	}
	return out.Truncate(size)
}

// blocks hands out the bytes of a file and counts them as done.
func (c *copier) blocks(in *os.File, visit func([]byte) error) error {
	if c.buffer == nil {
		c.buffer = make([]byte, c.store.rate.block())
	}
	before := c.done.DoneBytes
	for {
		if err := c.ctx.Err(); err != nil {
			c.done.DoneBytes = before // the next try copies the file from its start
			return err
		}
		n, err := in.Read(c.buffer)
		if n > 0 {
			if err := visit(c.buffer[:n]); err != nil {
				return err
			}
			c.done.DoneBytes += int64(n)
			if n == len(c.buffer) { // smaller ones are told with the file
				report(c.progress, c.done)
			}
			if err := c.store.rate.pay(c.ctx, n); err != nil {
				c.done.DoneBytes = before
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

const holeSize = 64 << 10

var zeros [holeSize]byte

func writeSparse(out *os.File, block []byte, at int64) error {
	for len(block) > 0 {
		piece := block[:min(holeSize, len(block))]
		if !bytes.Equal(piece, zeros[:len(piece)]) {
			if _, err := out.WriteAt(piece, at); err != nil {
				return err
			}
		}
		block, at = block[len(piece):], at+int64(len(piece))
	}
	return nil
}
