package corpus

import (
	_ "embed"
	"encoding/json"
	"slices"

	"github.com/latchkey-go/latchkey/keyexpr/spel"
)

// Subject is a key, and how Java is asked for it.
type Subject struct {
	Key    *spel.Key
	Mode   string   `json:"mode"` // see Peer.java
	Text   string   `json:"text,omitempty"`
	Name   string   `json:"name,omitempty"`
	Texts  []string `json:"texts,omitempty"`
	orders func() []*Order
}

// Expression is a subject of SpringEL.
func Expression(text string) Subject {
	return Subject{
		Key:  spel.Expression(text, spel.Params("order"), spel.Method("latchkey.Peer", "pay")),
		Mode: "spring", Text: text, orders: Orders,
	}
}

// Lock4j is a subject of that library.
func Lock4j(keys ...string) Subject {
	return Subject{Key: spel.Lock4j("pay", keys, spel.Params("order")), Mode: "lock4j", Name: "pay", Texts: keys, orders: Orders}
}

// Klock is a subject of that library.
func Klock(keys ...string) Subject {
	return Subject{Key: spel.Klock("pay", keys, spel.Params("order")), Mode: "klock", Name: "pay", Texts: keys, orders: Orders}
}

// On returns s to be tried on other orders.
func (s Subject) On(orders []*Order) Subject {
	s.orders = func() []*Order { return orders }
	return s
}

// Orders are what the subject is tried on.
func (s Subject) Orders() []*Order { return s.orders() }

// Subjects returns all of them, in the order of the answers.
func Subjects() (list []Subject) {
	for _, text := range slices.Concat(basics, calls) {
		list = append(list, Expression(text))
	}
	for _, method := range []string{
		"toUpperCase()", "toLowerCase()", "trim()", "strip()", "isBlank()", "length()", "hashCode()", "equalsIgnoreCase('k')", "equalsIgnoreCase('SS')",
		"equalsIgnoreCase('ω')",
	} {
		for _, property := range []string{"name", "isbn"} {
			list = append(list, Expression("'x' + #order."+property+"."+method).On(Letters()))
		}
	}
	for _, text := range longCalls {
		list = append(list, Expression(text).On(Longs()))
	}
	for _, keys := range lock4jKeys {
		list = append(list, Lock4j(keys...))
	}
	for _, keys := range klockKeys {
		list = append(list, Klock(keys...))
	}
	for _, text := range javaExpressions {
		list = append(list, Subject{Key: spel.Redisson(text, spel.Params("order")), Mode: "java", Text: text, orders: Orders})
	}
	return list
}

// Answer is what Java made of a subject on an order: keys, sorted and distinct, or an error.
type Answer struct {
	Keys  []string `json:"keys,omitempty"`
	Error string   `json:"error,omitempty"`
}

// Sorted returns the answer with its keys as a template has them.
func (a Answer) Sorted() Answer {
	a.Keys = slices.Compact(slices.Sorted(slices.Values(a.Keys)))
	return a
}

//go:embed answers.json
var recorded []byte

// Answers returns what was recorded, for each subject by its order.
func Answers() (answers [][]Answer, err error) {
	err = json.Unmarshal(recorded, &answers)
	return answers, err
}
