// Package text holds the rules for names and free text (GEN-01): compared and
// kept in Unicode NFC, counted in characters, control characters refused.
package text

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"tallyard/domain/fault"
)

// maxBytes bounds what is looked at at all; no rule allows more characters.
const maxBytes = 64 << 10

// Rule tells what a text may be.
type Rule struct {
	Min, Max int // characters
	// Allowed tells which characters may stand in it; nil allows every one
	// that is not a control character.
	Allowed func(rune) bool
	// First tells which character it may begin with; nil: any allowed one.
	First func(rune) bool
	// Says describes the rule to people, "letters, digits and underscore".
	Says string
	// Lines allows line breaks and tabs.
	Lines bool
}

// Name is the rule for names of algorithms and models (MDL-01).
var Name = Rule{
	Min: 1, Max: 64,
	Allowed: func(r rune) bool {
		return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
	},
	First: func(r rune) bool { return r != '_' && !unicode.IsMark(r) },
	Says:  "letters of any script, digits and underscore, not beginning with underscore",
}

// Label is the rule for the label of a version (ALG-01).
var Label = Rule{
	Min: 1, Max: 32,
	Allowed: func(r rune) bool {
		return r == '.' || r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
	},
	First: func(r rune) bool { return !unicode.IsMark(r) },
	Says:  "letters, digits, full stop, underscore and hyphen",
}

// Description is the rule for descriptions.
var Description = Rule{Max: 2000, Lines: true, Says: "any text without control characters"}

// Reason is the rule for reasons.
var Reason = Rule{Max: 500, Lines: true, Says: "any text without control characters"}

// Line is a rule for one line of free text with a maximum length.
func Line(minimum, maximum int) Rule {
	return Rule{Min: minimum, Max: maximum, Says: "one line of text without control characters"}
}

// Clean returns the text in NFC, or the fault that refuses it. The fault never
// repeats the text.
func (r Rule) Clean(value string, field ...string) (string, *fault.Fault) {
	if len(value) > maxBytes {
		return "", r.tooLong().At(field...)
	}
	if !utf8.ValidString(value) {
		return "", fault.New(fault.Invalid, fault.CodeInvalidCharacters, "This is not valid UTF-8; send the text in UTF-8.").At(field...)
	}
	value = norm.NFC.String(value)
	n := 0
	for _, c := range value {
		if bad := r.refuses(c, n == 0); bad != nil {
			return "", bad.At(field...)
		}
		n++
	}
	switch {
	case n == 0 && r.Min > 0:
		return "", fault.New(fault.Invalid, fault.CodeRequired, "This must not be empty; give "+r.Says+".").At(field...)
	case n < r.Min:
		return "", fault.New(fault.Invalid, fault.CodeTooShort, fmt.Sprintf("This is too short; give at least %d characters.", r.Min)).At(field...)
	case n > r.Max:
		return "", r.tooLong().At(field...)
	}
	return value, nil
}

func (r Rule) refuses(c rune, first bool) *fault.Fault {
	if unicode.IsControl(c) && (!r.Lines || (c != '\n' && c != '\r' && c != '\t')) {
		return fault.New(fault.Invalid, fault.CodeInvalidCharacters, "Control characters are not allowed; remove them.")
	}
	// What can't be seen hides in texts and makes twins of names: bidirectional
	// overrides, zero-width spaces, tags, fillers. Joiners are needed by some
	// scripts, and the variants of emoji in free text.
	if unicode.Is(unicode.Cf, c) && c != '\u200c' && c != '\u200d' ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, c) && c != '\u200c' ||
		r.Allowed != nil && unicode.Is(unicode.Variation_Selector, c) {
		return fault.New(fault.Invalid, fault.CodeInvalidCharacters, "Invisible formatting characters are not allowed; remove them.")
	}
	if r.Allowed != nil && !r.Allowed(c) || first && r.First != nil && !r.First(c) {
		return fault.New(fault.Invalid, fault.CodeInvalidCharacters, "Only "+r.Says+" are allowed; change this.")
	}
	return nil
}

func (r Rule) tooLong() *fault.Fault {
	return fault.New(fault.Invalid, fault.CodeTooLong, fmt.Sprintf("This is too long; give at most %d characters.", r.Max))
}
