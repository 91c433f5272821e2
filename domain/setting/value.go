package setting

import (
	"encoding/json"
	"errors"
)

// Value is what a setting is set to: on or off, or a number.
type Value struct {
	number int64
	flag   bool
	isFlag bool
}

// Flag is a value that is on or off.
func Flag(on bool) Value { return Value{flag: on, isFlag: true} }

// Number is a value that counts something.
func Number(n int64) Value { return Value{number: n} }

// On tells whether a flag is on; no number is.
func (v Value) On() bool { return v.flag }

// Int is the number; 0 for a flag.
func (v Value) Int() int64 { return v.number }

// MarshalJSON implements json.Marshaler.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.isFlag {
		return json.Marshal(v.flag)
	}
	return json.Marshal(v.number)
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Value) UnmarshalJSON(b []byte) error {
	var on bool
	if json.Unmarshal(b, &on) == nil {
		*v = Flag(on)
		return nil
	}
	var n int64
	if json.Unmarshal(b, &n) != nil {
		return errors.New("a setting is neither a flag nor a whole number")
	}
	*v = Number(n)
	return nil
}
