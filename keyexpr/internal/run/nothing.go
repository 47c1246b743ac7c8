package run

import (
	"database/sql/driver"
	"math"
	"reflect"
	"strconv"
)

// Nothing is not a key, whatever type it has: a column of a database that is NULL, a network without an address, a month
// that there is not.

var valuer = reflect.TypeFor[driver.Valuer]()

// IsValuer reports whether values of type t, or pointers to them, may be NULL in a database.
func IsValuer(t reflect.Type) bool {
	return t.Kind() != reflect.Interface && !swallows(t) && (t.Implements(valuer) || t.Kind() != reflect.Pointer && PointerTo(t).Implements(valuer))
}

// valueOf returns what v is in a database; nil for NULL.
func valueOf(v reflect.Value) (any, error) {
	if !v.Type().Implements(valuer) {
		v = pointerTo(v)
	}
	x, err := v.Interface().(driver.Valuer).Value()
	if err != nil {
		return nil, Faulty("of type %v has no value", v.Type())
	}
	return x, nil
}

// pointerTo returns a pointer to a copy of v, whose methods can change nothing in the request.
func pointerTo(v reflect.Value) reflect.Value {
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p
}

// Nothing reports whether v is a value that a database would not have.
func Nothing(v reflect.Value) bool {
	if !v.IsValid() {
		return true
	}
	if k := v.Kind(); k == reflect.String || !IsValuer(v.Type()) {
		return false
	}
	x, err := valueOf(v)
	return err == nil && x == nil
}

// spellsNothing reports whether the text that v spells itself by stands for nothing.
func spellsNothing(s string, v reflect.Value) bool {
	switch s {
	case "<nil>":
		return true
	case "null", "nil":
		return Indirect(v).IsZero()
	}
	return len(s) > 2 && s[:2] == "%!" && Indirect(v).IsZero()
}

// nullable says why what a type holds beside its flag can't be in a key: sql.NullTime is a time.
func nullable(t reflect.Type) string {
	if t.Kind() != reflect.Struct {
		return ""
	}
	for _, f := range reflect.VisibleFields(t) {
		k := f.Type.Kind()
		if f.IsExported() && (f.Type == timeType || k == reflect.Float32 || k == reflect.Float64) {
			return Refusal(f.Type)
		}
	}
	return ""
}

// wholeFloat is the text of a float that is a whole number which a float holds exactly, as numbers of JSON are in an any.
func wholeFloat(v reflect.Value) (string, bool) {
	if !v.CanFloat() || v.Float() != math.Trunc(v.Float()) || math.Abs(v.Float()) > 1<<53 {
		return "", false
	}
	return strconv.FormatInt(int64(v.Float()), 10), true
}
