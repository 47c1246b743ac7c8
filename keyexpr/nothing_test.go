package keyexpr

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Types of usual packages that can spell nothing: it makes no key, and what is set is its value.

// nullUUID is what the usual packages have, with a text for nothing.
type nullUUID struct {
	UUID  uuid
	Valid bool
}

func (u nullUUID) Value() (driver.Value, error) {
	if !u.Valid {
		return nil, nil
	}
	return u.UUID.String(), nil
}

func (u nullUUID) MarshalText() ([]byte, error) {
	if !u.Valid {
		return []byte("null"), nil
	}
	return []byte(u.UUID.String()), nil
}

// optional is a pointer in a struct, as other packages have it.
type optional struct{ of *string }

func (o optional) Value() (driver.Value, error) {
	if o.of == nil {
		return nil, nil
	}
	return *o.of, nil
}

// spelled has the text that it is made of.
type spelled struct{ text string }

func (s spelled) String() string {
	if s.text == "" {
		return "nil"
	}
	return s.text
}

// nullText is a string of a database with a nil pointer for NULL.
type nullText string

func (n *nullText) String() string { return string(*n) }

func nullable[T any](null, set T, want string) func(t *testing.T, name string) {
	return func(t *testing.T, name string) {
		type box struct {
			V T
			P *T
			A any
		}
		for path, roots := range map[string]Roots{
			"x":                  {"x": TypeFor[T]()},
			"x.V":                {"x": TypeFor[box]()},
			"x.P":                {"x": TypeFor[*box]()},
			"x.A":                {"x": TypeFor[box]()},
			"string(x.V)":        {"x": TypeFor[box]()},
			"lower(string(x.P))": {"x": TypeFor[box]()},
		} {
			tmpl, err := Parse("k:#{"+path+"}", roots)
			if err != nil {
				t.Errorf("%s as %s: %v", name, path, err)
				continue
			}
			expand := func(v T) ([]string, error) {
				return tmpl.Expand(context.Background(), func(string) (any, error) {
					switch {
					case path == "x":
						return v, nil
					case strings.HasPrefix(path, "x.P"):
						return &box{v, &v, v}, nil
					}
					return box{v, &v, v}, nil
				})
			}
			if keys, err := expand(null); !errors.Is(err, ErrValue) {
				t.Errorf("%s as %s: nothing makes %q, %v", name, path, keys, err)
			}
			text := want
			if strings.Contains(path, "lower") {
				text = strings.ToLower(want)
			}
			if keys, err := expand(set); err != nil || len(keys) != 1 || keys[0] != "k:"+text {
				t.Errorf("%s as %s: %q, %v; want %q", name, path, keys, err, "k:"+text)
			}
		}
	}
}

func TestNothingIsNoKey(t *testing.T) {
	t.Parallel()
	ab, text := "ab", nullText("ab")
	id := uuid{1, 2, 3}
	for name, test := range map[string]func(*testing.T, string){
		"*string":               nullable(nil, &ab, "ab"),
		"string":                nullable("", "ab", "ab"),
		"[]byte":                nullable(nil, []byte{1, 0xff}, "01ff"),
		"*int":                  nullable(nil, new(int), "0"),
		"json.Number":           nullable(json.Number(""), json.Number("7"), "7"),
		"sql.NullString":        nullable(sql.NullString{}, sql.NullString{String: "ab", Valid: true}, "ab"),
		"sql.NullString, empty": nullable(sql.NullString{Valid: true}, sql.NullString{String: "ab", Valid: true}, "ab"),
		"sql.NullString, stale": nullable(sql.NullString{String: "old"}, sql.NullString{String: "ab", Valid: true}, "ab"),
		"sql.NullInt64":         nullable(sql.NullInt64{}, sql.NullInt64{Valid: true}, "0"),
		"sql.NullInt32":         nullable(sql.NullInt32{}, sql.NullInt32{Int32: -3, Valid: true}, "-3"),
		"sql.NullInt16":         nullable(sql.NullInt16{}, sql.NullInt16{Int16: 3, Valid: true}, "3"),
		"sql.NullByte":          nullable(sql.NullByte{}, sql.NullByte{Byte: 3, Valid: true}, "3"),
		"sql.NullBool":          nullable(sql.NullBool{}, sql.NullBool{Valid: true}, "false"),
		"sql.Null[string]":      nullable(sql.Null[string]{}, sql.Null[string]{V: "ab", Valid: true}, "ab"),
		"sql.Null[int]":         nullable(sql.Null[int]{}, sql.Null[int]{V: 5, Valid: true}, "5"),
		"sql.Null[[]byte]":      nullable(sql.Null[[]byte]{}, sql.Null[[]byte]{V: []byte{9}, Valid: true}, "09"),
		"NullUUID":              nullable(nullUUID{}, nullUUID{id, true}, id.String()),
		"*NullUUID":             nullable(nil, &nullUUID{id, true}, id.String()),
		"a valuer":              nullable(optional{}, optional{&ab}, "ab"),
		"a Stringer, nil":       nullable(spelled{}, spelled{"ab"}, "ab"),
		"a pointer's Stringer":  nullable(nil, &text, "ab"),
		"time.Month":            nullable(time.Month(0), time.May, "May"),
		"net.IP":                nullable(nil, net.IPv4(10, 0, 0, 1), "10.0.0.1"),
		"net.IPMask":            nullable(nil, net.CIDRMask(8, 32), "ff000000"),
		"net.IPNet":             nullable(&net.IPNet{}, &net.IPNet{IP: net.IPv4(10, 0, 0, 0), Mask: net.CIDRMask(8, 32)}, "10.0.0.0/8"),
		"net.HardwareAddr":      nullable(nil, net.HardwareAddr{0, 1, 2, 3, 4, 5}, "00:01:02:03:04:05"),
		"netip.Addr":            nullable(netip.Addr{}, netip.MustParseAddr("10.0.0.1"), "10.0.0.1"),
		"netip.Prefix":          nullable(netip.Prefix{}, netip.MustParsePrefix("10.0.0.0/8"), "10.0.0.0/8"),
		"netip.AddrPort":        nullable(netip.AddrPort{}, netip.MustParseAddrPort("10.0.0.1:80"), "10.0.0.1:80"),
		"*url.URL":              nullable(nil, &url.URL{Path: "a"}, "a"),
		"*url.URL, empty":       nullable(&url.URL{}, &url.URL{Path: "a"}, "a"),
		"*big.Int":              nullable(nil, big.NewInt(12), "12"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, name)
		})
	}
}

// What has no spelling at all is refused at start.
func TestNoSpelling(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]Root{
		"sql.NullTime":        TypeFor[sql.NullTime](),
		"sql.NullFloat64":     TypeFor[sql.NullFloat64](),
		"sql.Null[time.Time]": TypeFor[sql.Null[time.Time]](),
		"json.RawMessage":     TypeFor[json.RawMessage](),
		"time.Time":           TypeFor[time.Time](),
		"*time.Time":          TypeFor[*time.Time](),
		"float64":             TypeFor[float64](),
		"big.Float":           TypeFor[*big.Float](),
		"wrapperspb":          TypeFor[*wrapperspb.StringValue](),
		"struct":              TypeFor[line](),
		"map":                 TypeFor[map[string]string](),
	} {
		if tmpl, err := Parse("k:#{x}", Roots{"x": of}); err == nil {
			t.Errorf("%s: a template was made: %v", name, tmpl.Shape())
		}
	}
}
