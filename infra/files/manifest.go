package files

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Manifest says what an artefact holds. The fingerprint is the SHA-256 of the
// manifest's canonical text, so that anybody can check it with ordinary tools:
//
//	tallyard-manifest-v1
//	<SHA-256 in hex> <size> <x or -> <path>
//
// one line for each file, in bytewise order of the paths. An empty folder has a
// line with "-" as its sum, size 0 and "d". Names hold no newline.
type Manifest struct {
	Fingerprint string // 64 hex digits
	Files       int64
	Bytes       int64
}

const manifestHeader = "tallyard-manifest-v1\n"

// item is a line of a manifest.
type item struct {
	path string
	size int64
	mark byte // 'x' program, '-' file, 'd' empty folder
	sum  [sha256.Size]byte
}

func (i item) appendTo(b []byte) []byte {
	if i.mark == 'd' {
		b = append(b, '-')
	} else {
		b = hex.AppendEncode(b, i.sum[:])
	}
	b = append(b, ' ')
	b = strconv.AppendInt(b, i.size, 10)
	b = append(b, ' ', i.mark, ' ')
	b = append(b, i.path...)
	return append(b, '\n')
}

// writeManifest writes the canonical text and gives what it says.
func writeManifest(to io.Writer, items []item) (Manifest, error) {
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.path, b.path) })
	hash := sha256.New()
	out := bufio.NewWriter(io.MultiWriter(to, hash))
	_, _ = out.WriteString(manifestHeader) // a bufio.Writer keeps its error for Flush
	var m Manifest
	var line []byte
	for _, i := range items {
		line = i.appendTo(line[:0])
		_, _ = out.Write(line)
		if i.mark != 'd' {
			m.Files++
			m.Bytes += i.size
		}
	}
	if err := out.Flush(); err != nil {
		return Manifest{}, err
	}
	m.Fingerprint = hex.EncodeToString(hash.Sum(nil))
	return m, nil
}

// readManifest reads a stored manifest; visit, which may be nil, gets every line.
func readManifest(from io.Reader, visit func(item)) (Manifest, error) {
	hash := sha256.New()
	in := bufio.NewReaderSize(io.TeeReader(from, hash), 1<<16)
	header, err := in.ReadString('\n')
	if err != nil || header != manifestHeader {
		return Manifest{}, fmt.Errorf("files: not a manifest: %q: %w", header, err)
	}
	var m Manifest
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			break
		}
		if err != nil {
			return Manifest{}, fmt.Errorf("files: manifest cut short: %w", err)
		}
		i, err := parseItem(line)
		if err != nil {
			return Manifest{}, err
		}
		if i.mark != 'd' {
			m.Files++
			m.Bytes += i.size
		}
		if visit != nil {
			visit(i)
		}
	}
	m.Fingerprint = hex.EncodeToString(hash.Sum(nil))
	return m, nil
}

func parseItem(line []byte) (item, error) {
	broken := fmt.Errorf("files: broken manifest line %q", line)
	parts := bytes.SplitN(bytes.TrimSuffix(line, []byte("\n")), []byte(" "), 4)
	if len(parts) != 4 || len(parts[2]) != 1 {
		return item{}, broken
	}
	i := item{path: string(parts[3]), mark: parts[2][0]}
	size, err := strconv.ParseInt(string(parts[1]), 10, 64)
	if err != nil || size < 0 {
		return item{}, broken
	}
	i.size = size
	if i.mark == 'd' {
		return i, nil
	}
	if n, err := hex.Decode(i.sum[:], parts[0]); err != nil || n != sha256.Size || len(parts[0]) != 2*sha256.Size {
		return item{}, broken
	}
	return i, nil
}
