package guard

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/internal/suggest"
	"github.com/latchkey-go/latchkey/lock"
)

// fields is a set of the fields of a Spec.
type fields uint32

const (
	fieldName fields = 1 << iota
	fieldKey
	fieldWhen
	fieldKind
	fieldWait
	fieldLease
	fieldMaxHold
	fieldHold
	fieldLimit
	fieldLevels
	fieldRate
	fieldBurst
	fieldWaiters
	fieldBusy
	fieldOutage
	fieldArgs
	fieldMethods
	fieldOneKey
	fieldSwitchable
)

// attributes is the one table behind all spellings of a Spec: options, tags, text and JSON. Its order is that of texts.
// A new field of Spec needs a constant above, a row here and an option; a test walks the fields and fails without them.
var attributes = []attr{
	row(fieldName, "name", func(s *Spec) *string { return &s.Name }, nameValues),
	row(fieldKey, "key", func(s *Spec) *string { return &s.Key }, codeValues),
	row(fieldWhen, "when", func(s *Spec) *string { return &s.When }, codeValues),
	row(fieldKind, "kind", func(s *Spec) *lock.Kind { return &s.Kind }, kindValues),
	row(fieldWait, "wait", func(s *Spec) *time.Duration { return &s.Wait }, durations(parseWait, "use Forever to wait as long as the caller")),
	row(fieldLease, "lease", func(s *Spec) *time.Duration { return &s.Lease }, durations(parseDuration, "0 renews the lock until the work is done")).
		orExpression(func(s *Spec) *string { return &s.LeaseFrom }, `^<(any|time\.Duration)>$`, "time.Duration of at least 1ms"),
	row(fieldMaxHold, "max-hold", func(s *Spec) *time.Duration { return &s.MaxHold }, durations(parseDuration, "0 sets no bound")),
	row(fieldHold, "hold", func(s *Spec) *time.Duration { return &s.Hold }, durations(parseDuration, "0 gives the lock back when the work is done")),
	row(fieldLimit, "limit", func(s *Spec) *int { return &s.Limit }, counts("limit")).
		orExpression(func(s *Spec) *string { return &s.LimitFrom }, `^<(any|u?int(8|16|32|64)?)>$`, "whole number from 1 to 10,000"),
	row(fieldLevels, "levels", func(s *Spec) *string { return &s.Levels }, lists(code, readBy(splitLevels))),
	row(fieldRate, "rate", func(s *Spec) *string { return &s.Rate }, lists(word, readBy(func(v string) (lock.Rate, error) { return (&Spec{Rate: v}).rate() }))),
	row(fieldBurst, "burst", func(s *Spec) *int { return &s.Burst }, counts("burst")),
	row(fieldWaiters, "waiters", func(s *Spec) *int { return &s.Waiters }, counts("number of waiters")),
	row(fieldBusy, "busy", func(s *Spec) *Policy { return &s.Busy }, policyValues),
	row(fieldOutage, "outage", func(s *Spec) *Policy { return &s.Outage }, policyValues),
	row(fieldArgs, "args", func(s *Spec) *string { return &s.Args }, lists(word, parseArgs)),
	row(fieldMethods, "methods", func(s *Spec) *string { return &s.Methods }, lists(word, parseMethods)),
	row(fieldOneKey, "one-key", func(s *Spec) *bool { return &s.OneKey }, flags),
	row(fieldSwitchable, "switchable", func(s *Spec) *bool { return &s.Switchable }, flags),
}

// attr is one field of a Spec, and how it is written.
type attr struct {
	field fields
	name  string
	style style
	// parse sets the field from its text.
	parse func(s *Spec, text string) error
	// format returns the text of the field.
	format func(s *Spec) string
	// zero reports whether the field has its zero value.
	zero func(s *Spec) bool
	// copy sets the field of to from that of from.
	copy func(to, from *Spec)
	// fault describes what is wrong with the value of the field alone; it is empty for a good one.
	fault func(s *Spec) string
	// expression reads the value from requests; nil if they can't give it.
	expression *expression
}

// style is how the text of an attribute is written.
type style int

const (
	word   style = iota
	code         // a template or an expression: a semicolon in its quotes and brackets belongs to it
	number       // also a number in JSON
	flag         // a name without a value, true in JSON
)

// values parses, formats and checks the values of a type, whichever field has them.
type values[T comparable] struct {
	style  style
	parse  func(text string) (T, error)
	format func(v T) string
	fault  func(name string, v T) string
}

func row[T comparable](field fields, name string, at func(*Spec) *T, v values[T]) attr {
	return attr{
		field: field, name: name, style: v.style,
		parse: func(s *Spec, text string) (err error) {
			value, err := v.parse(text)
			if err == nil {
				*at(s) = value
			}
			return err
		},
		format: func(s *Spec) string { return v.format(*at(s)) },
		zero:   func(s *Spec) bool { var zero T; return *at(s) == zero },
		copy:   func(to, from *Spec) { *at(to) = *at(from) },
		fault:  func(s *Spec) string { return v.fault(name, *at(s)) },
	}
}

// attributeNames are the names of all attributes, for suggestions.
var attributeNames = func() (names []string) {
	for _, a := range attributes {
		names = append(names, a.name)
	}
	return names
}()

// findAttribute returns the attribute called name, or an error that suggests the nearest.
func findAttribute(name string) (attr, error) {
	i := slices.Index(attributeNames, name)
	if before, value, ok := strings.Cut(name, ":"); i < 0 && ok && slices.Contains(attributeNames, before) {
		return attr{}, fmt.Errorf("unknown attribute %q: write %s=%s", name, before, strings.TrimSpace(value))
	}
	if owner := ownerOf(name); i < 0 && owner != "" {
		return attr{}, fmt.Errorf("unknown attribute %q: write %s=%s", name, owner, name)
	}
	if i < 0 {
		meant := cmp.Or(elsewhere[strings.ToLower(name)], name)
		return attr{}, fmt.Errorf("unknown attribute %q%s", name, suggest.Ending(meant, attributeNames))
	}
	return attributes[i], nil
}

// ownerOf names the attribute that has text as a value. It is empty if there is none.
func ownerOf(text string) string {
	if text == forever {
		return "wait"
	}
	if strings.Contains(text, "#{") {
		return "key"
	}
	if _, err := parseKind(text); err == nil {
		return "kind"
	}
	if slices.Contains(policyNames[:], text) {
		return "busy"
	}
	return ""
}

// given returns the fields of s that have a value. A zero that was written out counts.
func (s *Spec) given() fields {
	set := s.zeros
	for _, a := range attributes {
		if !a.zero(s) {
			set |= a.field
		}
	}
	return set
}

// merge copies the fields in set from another Spec.
func (s *Spec) merge(from Spec, set fields) {
	s.zeros &^= set
	for _, a := range attributes {
		if set&a.field != 0 {
			a.copy(s, &from)
		}
	}
	s.zeros |= set &^ s.given()
}

// set sets the field of a in s from its text.
func (a attr) set(s *Spec, text string) error {
	var one Spec
	err := a.parse(&one, text)
	if err == nil {
		s.merge(one, a.field)
	}
	return err
}

var (
	nameValues = values[string]{
		parse: asWritten, format: itself,
		fault: func(name, v string) string {
			switch {
			case !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl):
				return fmt.Sprintf("%s %q has bytes that are no text", name, v)
			case strings.TrimSpace(v) != v:
				return fmt.Sprintf("%s %q begins or ends with a blank: remove it", name, v)
			}
			return ""
		},
	}
	codeValues = values[string]{code, asWritten, itself, func(string, string) string { return "" }}
	kindValues = values[lock.Kind]{
		parse: parseKind, format: lock.Kind.String,
		fault: func(_ string, k lock.Kind) string {
			if _, err := k.MarshalText(); err == nil {
				return ""
			}
			return fmt.Sprintf("unknown kind %d, valid are 0 to %d", int(k), int(lock.Permit))
		},
	}
	policyValues = values[Policy]{
		parse:  func(text string) (p Policy, err error) { return p, p.UnmarshalText([]byte(text)) },
		format: Policy.String,
		fault: func(name string, p Policy) string {
			if p.valid() {
				return ""
			}
			return fmt.Sprintf("unknown %s policy %d, valid are %s", name, int(p), policyList)
		},
	}
	flags = values[bool]{
		style: flag, parse: strconv.ParseBool, format: strconv.FormatBool,
		fault: func(string, bool) string { return "" },
	}
)

// asWritten parses and formats a value that is its own text.
func asWritten(text string) (string, error) { return text, nil }

func itself(text string) string { return text }

func durations(parse func(string) (time.Duration, error), zero string) values[time.Duration] {
	return values[time.Duration]{
		parse: parse, format: printDuration,
		fault: func(name string, d time.Duration) string { return durationFault(name, d, zero) },
	}
}

func counts(what string) values[int] {
	return values[int]{
		style: number, format: strconv.Itoa,
		parse: func(text string) (int, error) {
			if n, err := strconv.Atoi(text); err == nil && n >= 1 {
				return n, nil
			}
			return 0, fmt.Errorf("bad %s %q, want a number of at least 1", what, text)
		},
		fault: func(name string, n int) string {
			if n >= 0 {
				return ""
			}
			return fmt.Sprintf("negative %s %d", name, n)
		},
	}
}

func parseKind(value string) (lock.Kind, error) {
	var names []string
	for k := lock.Exclusive; k <= lock.Permit; k++ {
		if k.String() == value {
			return k, nil
		}
		names = append(names, k.String())
	}
	return 0, fmt.Errorf("unknown kind %q%s", value, suggest.Ending(value, names))
}

func parseWait(value string) (time.Duration, error) {
	if value == forever {
		return Forever, nil
	}
	return parseDuration(value)
}

// forever is the text of Forever.
const forever = "forever"

func parseDuration(value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	switch {
	case value == forever:
		return 0, fmt.Errorf("bad duration %q: only wait lasts forever", value)
	case err != nil:
		return 0, fmt.Errorf("bad duration %q, want one like 2s or 500ms", value)
	case d < 0:
		return 0, fmt.Errorf("negative duration %q", value)
	case d == math.MaxInt64:
		return 0, fmt.Errorf("bad duration %q: that is 292 years", value)
	}
	return d, nil
}

// printDuration writes "1h" for what package time calls "1h0m0s".
func printDuration(d time.Duration) string {
	if d == Forever {
		return forever
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func durationFault(name string, d time.Duration, zero string) string {
	switch {
	case d < 0:
		return fmt.Sprintf("negative %s %v (%s)", name, d, zero)
	case d == Forever && name != "wait":
		return fmt.Sprintf("%s can't be Forever (%s)", name, zero)
	case d > 0 && d < time.Millisecond:
		return fmt.Sprintf("%s %v is under 1ms: a bare number counts nanoseconds, write %d*time.Second", name, d, d.Nanoseconds())
	}
	return ""
}

// parseList reads names between commas. Each must pass check, and no two may be the same.
func parseList(text, what string, check func(string) error) (string, error) {
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			return "", fmt.Errorf("no %s between commas", what)
		}
		if err := check(name); err != nil {
			return "", err
		}
		if slices.Contains(names, name) {
			return "", fmt.Errorf("%s %q is given twice", what, name)
		}
		names = append(names, name)
	}
	return strings.Join(names, ","), nil
}

// lists are texts of several parts, such as names between commas. A list that an option or a Spec has set was not
// parsed, and can have a fault.
func lists(s style, parse func(string) (string, error)) values[string] {
	return values[string]{style: s, parse: parse, format: itself, fault: func(name, list string) string {
		switch parsed, err := parse(list); {
		case list == "":
		case err != nil:
			return fmt.Sprintf("%s: %v", name, err)
		case parsed != list:
			return fmt.Sprintf("%s: write %q without blanks", name, parsed)
		}
		return ""
	}}
}

// readBy parses a value that is its own text, if read can read it.
func readBy[T any](read func(string) (T, error)) func(string) (string, error) {
	return func(text string) (string, error) { _, err := read(text); return text, err }
}

func parseArgs(text string) (string, error) {
	return parseList(text, "argument", func(name string) error {
		for i, r := range name {
			if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
				return fmt.Errorf("%q is no name for an argument", name)
			}
		}
		return nil
	})
}

// methods are the methods of HTTP and WebDAV. Another one would match no request, and leave all of them unguarded.
var methods = []string{
	"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE", "QUERY",
	"PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "SEARCH",
}

func parseMethods(text string) (string, error) {
	return parseList(text, "method", func(name string) error {
		if slices.Contains(methods, name) {
			return nil
		}
		return fmt.Errorf("unknown method %q%s", name, suggest.Ending(name, methods))
	})
}
