package live

import (
	"reflect"
	"sync"
	"time"
)

// sizeOf is about how many bytes of memory a value holds, itself included.
// What several values share counts for each of them, so that it is never
// less than what is given back when they are all let go of.
func sizeOf(v any) int {
	r := reflect.ValueOf(v)
	if !r.IsValid() {
		return 0
	}
	return int(r.Type().Size()) + pointed(r, 0)
}

// deepest bounds how far pointers are followed. Events and states are trees
// that are far less deep.
const deepest = 32

// perEntry is what a map needs for an entry beside key and value.
const perEntry = 16

// pointed is what a value points to.
func pointed(v reflect.Value, depth int) int {
	if depth > deepest || flat(v.Type()) {
		return 0
	}
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Slice:
		n := v.Cap() * int(v.Type().Elem().Size())
		return n + inside(v, depth)
	case reflect.Array:
		return inside(v, depth)
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 0
		}
		return int(v.Elem().Type().Size()) + pointed(v.Elem(), depth+1)
	case reflect.Map:
		n := v.Len() * (int(v.Type().Key().Size()) + int(v.Type().Elem().Size()) + perEntry)
		for i := v.MapRange(); i.Next(); {
			n += pointed(i.Key(), depth+1) + pointed(i.Value(), depth+1)
		}
		return n
	case reflect.Struct:
		n := 0
		for i := range v.NumField() {
			n += pointed(v.Field(i), depth+1)
		}
		return n
	}
	return 0
}

// inside is what the elements of a list point to.
func inside(v reflect.Value, depth int) (n int) {
	if flat(v.Type().Elem()) {
		return 0
	}
	for i := range v.Len() {
		n += pointed(v.Index(i), depth+1)
	}
	return n
}

var (
	flatTypes sync.Map // reflect.Type → bool
	timeType  = reflect.TypeFor[time.Time]()
)

// flat tells whether values of a type hold nothing but themselves. All times
// share the few places of the world that there are.
func flat(t reflect.Type) bool {
	if known, ok := flatTypes.Load(t); ok {
		return known.(bool) //nolint:forcetypeassert // only this function stores
	}
	is := t == timeType
	switch t.Kind() {
	case reflect.Array:
		is = is || flat(t.Elem())
	case reflect.Struct:
		if !is {
			is = true
			for i := range t.NumField() {
				is = is && flat(t.Field(i).Type)
			}
		}
	case reflect.String, reflect.Slice, reflect.Pointer, reflect.Interface, reflect.Map:
	default:
		is = true
	}
	flatTypes.Store(t, is)
	return is
}
