// Package storage holds what spaces of files are and the rules of the paths in them.
package storage

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"tallyard/domain/fault"
)

// Limits of a path. They are the file system's own (counted in bytes, since
// that is what it counts), so that what is accepted here can be stored there.
const (
	MaxNameBytes = 255
	MaxPathBytes = 4096
	MaxPathDepth = 64
)

// ReservedName is the folder in which the platform keeps unfinished uploads and
// copies of a space. It's reserved at every depth, so that a published copy of
// a folder can't get one at its top.
const ReservedName = ".tallyard"

// Path is a place inside a storage space: names in Unicode NFC joined by
// slashes, without a slash at either end. The zero value is the root of the
// space. A Path that exists is valid; there is no other way to make one than
// the functions of this file.
type Path struct {
	text string
}

// Root is the space itself.
var Root = Path{}

// ParsePath reads the path of a file or folder inside a space (STO-01, GEN-01).
// The empty text is refused: use [ParseFolder] where the space itself may be meant.
func ParsePath(text string) (Path, *fault.Fault) {
	if text == "" {
		return Root, invalidPath("The path is empty; name a file or folder inside the space, such as \"code/train.py\".")
	}
	return parse(text)
}

// ParseFolder is [ParsePath], but the empty text is the root of the space.
func ParseFolder(text string) (Path, *fault.Fault) {
	if text == "" {
		return Root, nil
	}
	return parse(text)
}

func parse(text string) (Path, *fault.Fault) {
	// Normalising can shorten a text (a letter and its accent become one), but
	// not more than threefold: anything longer is refused before work is spent on it.
	if len(text) > 3*MaxPathBytes {
		return Root, pathTooLong()
	}
	if f := checkCharacters(text); f != nil {
		return Root, f
	}
	if strings.HasPrefix(text, "/") {
		return Root, invalidPath("The path starts with \"/\"; give it relative to the space, such as \"code/train.py\".")
	}
	text = norm.NFC.String(text)
	if len(text) > MaxPathBytes {
		return Root, pathTooLong()
	}
	names := strings.Split(text, "/")
	if len(names) > MaxPathDepth {
		return Root, fault.New(fault.Invalid, fault.CodeTooLong,
			fmt.Sprintf("The path is more than %d folders deep; use fewer folders inside each other.", MaxPathDepth))
	}
	for _, name := range names {
		if f := checkName(name); f != nil {
			return Root, f
		}
	}
	return Path{text: text}, nil
}

func checkCharacters(text string) *fault.Fault {
	if !utf8.ValidString(text) {
		return fault.New(fault.Invalid, fault.CodeInvalidCharacters, "The path isn't valid UTF-8; encode the names in UTF-8.")
	}
	for _, r := range text {
		switch {
		case r == 0:
			return fault.New(fault.Invalid, fault.CodeInvalidCharacters, "The path holds a NUL character; remove it.")
		case unicode.IsControl(r):
			return fault.New(fault.Invalid, fault.CodeInvalidCharacters,
				fmt.Sprintf("The path holds the control character U+%04X; remove it.", r))
		case unicode.Is(unicode.Bidi_Control, r):
			// They show a name in another order than it is written: "exe.txt" that
			// is "txt.exe".
			return fault.New(fault.Invalid, fault.CodeInvalidCharacters,
				fmt.Sprintf("The path holds U+%04X, which turns the direction of writing; remove it.", r))
		case r == '\\':
			// Almost always a path of another system, where a single name
			// with backslashes in it would surprise.
			return fault.New(fault.Invalid, fault.CodeInvalidCharacters, "The path holds a backslash; separate folders by \"/\".")
		}
	}
	return nil
}

func checkName(name string) *fault.Fault {
	switch {
	case name == "":
		return invalidPath("The path has an empty part (a \"/\" at the end, or two in a row); remove the extra \"/\".")
	case name == ".", name == "..":
		return invalidPath("The path holds \"" + name + "\"; write the path out from the root of the space.")
	case name == ReservedName:
		return invalidPath("The name \"" + ReservedName + "\" is kept by Tallyard; choose another one.")
	case len(name) > MaxNameBytes:
		return fault.New(fault.Invalid, fault.CodeTooLong,
			fmt.Sprintf("A name in the path is longer than %d bytes of UTF-8; shorten it.", MaxNameBytes))
	}
	return nil
}

func invalidPath(message string) *fault.Fault {
	return fault.New(fault.Invalid, fault.CodeInvalidPath, message)
}

func pathTooLong() *fault.Fault {
	return fault.New(fault.Invalid, fault.CodeTooLong,
		fmt.Sprintf("The path is longer than %d bytes of UTF-8; shorten it.", MaxPathBytes))
}

// String is the path as people write it; empty for the root.
func (p Path) String() string { return p.text }

// IsRoot tells whether the path is the space itself.
func (p Path) IsRoot() bool { return p.text == "" }

// Names are the parts of the path, from the outermost folder on; none for the root.
func (p Path) Names() []string {
	if p.IsRoot() {
		return nil
	}
	return strings.Split(p.text, "/")
}

// Base is the last name; empty for the root.
func (p Path) Base() string {
	return p.text[strings.LastIndexByte(p.text, '/')+1:]
}

// Dir is the folder that holds the path; the root's is the root.
func (p Path) Dir() Path {
	return Path{text: p.text[:max(strings.LastIndexByte(p.text, '/'), 0)]}
}

// Join is the path of something below this one.
func (p Path) Join(below string) (Path, *fault.Fault) {
	if p.IsRoot() {
		return ParsePath(below)
	}
	if _, f := ParsePath(below); f != nil {
		return Root, f
	}
	return parse(p.text + "/" + below)
}

// Within tells whether the path is the other one or lies below it.
func (p Path) Within(other Path) bool {
	return other.IsRoot() || p.text == other.text || strings.HasPrefix(p.text, other.text+"/")
}
