package spel

import (
	"context"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
)

type javaOrder struct {
	ID     int64 `json:"id"`
	Name   string
	Note   *string
	Items  []javaItem
	Tags   []string
	Attrs  map[string]string
	Urgent bool
	Owner  *javaOwner
}

type javaItem struct {
	SKU string
	Qty int32
}

type javaOwner struct{ Login string }

func javaFacts(string) (any, error) {
	return &javaOrder{
		ID: 42, Name: " Ab C ", Items: []javaItem{{"a", 1}, {"b", 5}}, Tags: []string{"x", "y"},
		Attrs: map[string]string{"k": "v"}, Urgent: true,
	}, nil
}

var javaRoots = keyexpr.Roots{"req": keyexpr.TypeFor[*javaOrder]()}

// keysOf makes the keys of a method that has one parameter, order.
func keysOf(t testing.TB, k *Key) ([]string, error) {
	t.Helper()
	tmpl, err := k.Parse(javaRoots, keyexpr.OneKey())
	if err != nil {
		return nil, err
	}
	return tmpl.Expand(context.Background(), javaFacts)
}
