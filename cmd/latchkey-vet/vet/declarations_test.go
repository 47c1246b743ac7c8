package vet_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/keyexpr/spel"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// declarations are strange ones, which run as they stand here and are analysed as they stand here. In this file, nothing is used that
// another one of the tests has.
var declarations = []struct {
	name  string
	start func() error
	// quiet says that the analyser can't see what is wrong, and so says nothing.
	quiet bool
}{
	// constants
	{name: "text of two constants", start: func() error { return newly(guard.New(memlock.New(), guard.Name("n"), guard.Key(prefix+"#{req.IDD"))) }},
	{name: "text out of a constant", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key(prefix+hole)))
		return action(guard.Action(g, payBase))
	}},
	{name: "constant of its own type", start: func() error { return newly(guard.New(memlock.New(), guard.Name(string(ownName)), guard.Wait(ownWait))) }},
	{name: "iota as a duration", start: func() error { return newly(guard.New(memlock.New(), guard.Name("n"), guard.Wait(second))) }},
	{name: "iota as a policy", start: func() error {
		return newly(guard.New(memlock.New(), guard.Name("n"), guard.Busy(guard.Policy(second+70))))
	}},
	{name: "duration as a float", start: func() error {
		return newly(guard.New(memlock.New(), guard.Name("n"), guard.Wait(1e3), guard.Lease(0.5e9)))
	}},
	{name: "negative shift", start: func() error { return newly(guard.New(memlock.New(), guard.Name("n"), guard.Wait(-1<<40))) }},
	{name: "limit that overflows", start: func() error { return newly(guard.New(memlock.New(), guard.Name("n"), guard.Limit(1<<40))) }},
	{name: "rune as a limit", start: func() error { return newly(guard.New(memlock.New(), guard.Name("n"), guard.Limit(-'a'))) }},
	{name: "name of another constant", start: func() error { return newly(guard.New(memlock.New(), guard.Name(" "+ownText), guard.Wait(2))) }},

	// texts
	{name: "raw text of two lines", start: func() error {
		return newly(guard.New(memlock.New(), guard.Name("n"), guard.Key(`order:
#{req.ID`)))
	}},
	{name: "unicode before the hole", start: func() error {
		return newly(guard.New(memlock.New(), guard.Name("n"), guard.Key("订单😀:#{req.ID")))
	}},
	{name: "escapes before the hole", start: func() error {
		return newly(guard.New(memlock.New(), guard.Name("n"), guard.Key("\u8ba2\t\x41\"#{req.ID")))
	}},
	{name: "bytes that are no UTF-8", start: func() error { return newly(guard.New(memlock.New(), guard.Name("n"), guard.Key("\xff\xfe#{req.ID"))) }},
	{name: "NUL in a name", start: func() error { return newly(guard.New(memlock.New(), guard.Name("a\x00b"))) }},
	{name: "long text", start: func() error { return newly(guard.New(memlock.New(), guard.Name("n"), guard.Key(long+"${x}"))) }},
	{name: "only a hole", start: func() error { return newly(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{}"))) }},
	{name: "hole in a hole", start: func() error { return newly(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{#{req.ID}}"))) }},
	{name: "percent signs", start: func() error { return newly(guard.New(memlock.New(), guard.Name("%d"), guard.Key("%s%!(EXTRA) ${x}"))) }},
	{name: "same text twice", start: func() error {
		return newly(guard.New(memlock.New(), guard.Name("${x}"), guard.Key("${x}")))
	}},
	{name: "text with another's mistake in it", start: func() error {
		return newly(guard.New(memlock.New(), guard.Name(`key: keyexpr: unknown function lowr (at offset 2)`), guard.Key("#{lowr(req.ID)}")))
	}},

	// options
	{name: "no options", start: func() error { return newly(guard.New(memlock.New())) }},
	{name: "no locker and no options", start: func() error { return newly(guard.New(nil)) }},
	{name: "only nil", start: func() error { return newly(guard.New(memlock.New(), nil, nil)) }},
	{name: "nil of a type", start: func() error { return newly(guard.New(memlock.New(), guard.Option(nil))) }},
	{name: "spread of nothing", start: func() error { return newly(guard.New(memlock.New(), []guard.Option{}...)) }},
	{name: "spread of nil", start: func() error { return newly(guard.New(nil, []guard.Option(nil)...)) }},
	{name: "spread of a variable", start: func() error {
		opts := []guard.Option{guard.Name("n"), guard.Wait(2)}
		return newly(guard.New(memlock.New(), opts...))
	}},
	{name: "spread of one that grows", quiet: true, start: func() error {
		opts := []guard.Option{guard.Name("n")}
		opts = append(opts, guard.Wait(2))
		return newly(guard.New(memlock.New(), opts...))
	}},
	{name: "spread of one with an element that is set", start: func() error {
		opts := []guard.Option{guard.Name("n"), guard.Wait(2)}
		opts[1] = guard.Wait(time.Second)
		return newly(guard.New(memlock.New(), opts...))
	}},
	{name: "spread with places", start: func() error {
		return newly(guard.New(memlock.New(), []guard.Option{1: guard.Wait(time.Second), 0: guard.Name("n")}...))
	}},
	{name: "spread with holes", quiet: true, start: func() error {
		return newly(guard.New(memlock.New(), []guard.Option{2: guard.Wait(time.Second), 0: guard.Name("n")}...))
	}},
	{name: "option by another name", start: func() error {
		wait := guard.Wait
		return newly(guard.New(memlock.New(), guard.Name("n"), wait(time.Second)))
	}},
	{name: "option in parentheses", start: func() error { return newly((guard.New)(memlock.New(), (guard.Name)("n"), (guard.Wait((2))))) }},
	{name: "option that is set in a branch", start: func() error {
		opt := guard.Wait(2)
		if len(long) > 3 {
			opt = guard.Wait(time.Second)
		}
		return newly(guard.New(memlock.New(), guard.Name("n"), opt))
	}},
	{name: "option through a pointer", start: func() error {
		opt := guard.Wait(2) //nolint:staticcheck // it is set by way of the pointer
		p := &opt
		*p = guard.Wait(time.Second)
		return newly(guard.New(memlock.New(), guard.Name("n"), opt))
	}},
	{name: "option of a literal that runs", start: func() error {
		return newly(guard.New(memlock.New(), guard.Name("n"), func() guard.Option { return guard.Wait(time.Second) }()))
	}},
	{name: "option that a caller gives, or not", start: func() error { return given(nil) }},
	{name: "option that is set or nil", quiet: true, start: func() error {
		var opt guard.Option
		if len(long) > 300 {
			opt = guard.Name("m")
		}
		return newly(guard.New(memlock.New(), guard.Name("n"), opt))
	}},
	{name: "Spec that is set or not", start: func() error {
		var spec guard.Spec
		if len(long) > 300 {
			spec = guard.Spec{Wait: 2}
		}
		return newly(guard.New(memlock.New(), guard.Name("n"), guard.FromSpec(spec)))
	}},
	{name: "text that is set or not", start: func() error {
		text := "n"
		set := func() { text = " n" }
		if len(long) > 300 {
			set()
		}
		return newly(guard.New(memlock.New(), guard.Name(text)))
	}},
	{name: "result with a name", start: func() (err error) {
		var g *guard.Guard
		if g, err = guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.IDD}")); err != nil {
			return err
		}
		return action(guard.Action(g, payBase))
	}},
	{name: "all kinds", start: func() error {
		return newly(guard.New(memlock.New(), guard.Name("n"), guard.Fair(), guard.Spin(), guard.Fenced(), guard.Read(), guard.Write(), guard.Limit(3)))
	}},
	{name: "kind that is none", start: func() error { return newly(guard.New(memlock.New(), guard.Name("n"), guard.Kind(lock.Kind(77)))) }},
	{name: "Spec with places", start: func() error {
		return newly(guard.New(memlock.New(), guard.FromSpec(guard.Spec{Name: "n", Busy: 99, Methods: "GET,get,"})))
	}},
	{name: "Spec of a variable", start: func() error {
		spec := guard.Spec{Name: "n", Wait: -time.Second}
		return newly(guard.New(memlock.New(), guard.FromSpec(spec)))
	}},
	{name: "Spec that is set later", start: func() error {
		spec := guard.Spec{Name: "n", Wait: -time.Second}
		spec.Wait = time.Second
		return newly(guard.New(memlock.New(), guard.FromSpec(spec)))
	}},
	{name: "method value", start: func() error { return new(guard.Spec).Set("wait", "soon") }},
	{name: "method of a value", quiet: true, start: func() error {
		set := new(guard.Spec).Set
		return set("wait", "soon")
	}},
	{name: "template function that is none", start: func() error {
		return newly(guard.New(memlock.New(), guard.Name("n"), guard.TemplateFunc("f", 7), guard.TemplateFunc("g-h", strings.ToLower), guard.TemplateFunc("lower", strings.ToLower)))
	}},
	{name: "template function of a method", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.TemplateFunc("f", ownWait.String), guard.Key("#{f(req.ID)}")))
		return action(guard.Action(g, payBase))
	}},
	{name: "keys of Java", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.KeyFrom(spel.Expression("#order.idd + '}'", spel.Params("order")))))
		return action(guard.Action(g, payBase))
	}},

	// types of requests
	{name: "field that is promoted", start: func() error { return asked[embeds]("#{req.ID}:#{req.Base.ID}:#{req.base}") }, quiet: true},
	{name: "embedded", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.ID}:#{req.IDD}")))
		return action(guard.Action(g, func(context.Context, embeds) error { return nil }))
	}},
	{name: "embedded pointer", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.ID}:#{req.Idd}")))
		return action(guard.Action(g, func(context.Context, *embedsPointer) error { return nil }))
	}},
	{name: "alias", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.IDD}")))
		return action(guard.Action(g, func(context.Context, alias) error { return nil }))
	}},
	{name: "alias of a pointer", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.IDD}")))
		return action(guard.Action(g, func(context.Context, pointer) error { return nil }))
	}},
	{name: "instance of a generic type", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.Value.IDD}")))
		return action(guard.Action(g, func(context.Context, box[base]) error { return nil }))
	}},
	{name: "instance of an instance", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.Value.Value}")))
		return action(guard.Action(g, func(context.Context, box[box[[]base]]) error { return nil }))
	}},
	{name: "generic alias", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.Value.IDD}")))
		return action(guard.Action(g, func(context.Context, boxed[base]) error { return nil }))
	}},
	{name: "type that leads to itself", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.Next.Next.Nxt}")))
		return action(guard.Action(g, func(context.Context, node[int]) error { return nil }))
	}},
	{name: "type of a function", start: func() error {
		type base struct{ Number int }
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.ID}")))
		return action(guard.Action(g, func(context.Context, base) error { return nil }))
	}},
	{name: "struct without a name", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.Idd}")))
		return action(guard.Action(g, func(context.Context, struct{ ID, Other string }) error { return nil }))
	}},
	{name: "map", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.id}:#{req.lines}")))
		return action(guard.Action(g, func(context.Context, map[string][]float32) error { return nil }))
	}},
	{name: "interface", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.GetID()}:#{req.GetId()}")))
		return action(guard.Action(g, func(context.Context, interface{ GetID() string }) error { return nil }))
	}},
	{name: "any", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.ID}:#{req.}")))
		return action(guard.Action(g, func(context.Context, any) error { return nil }))
	}},
	{name: "function", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req}")))
		return action(guard.Action(g, func(context.Context, func(int) string) error { return nil }))
	}},
	{name: "channel", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req}")))
		return action(guard.Action(g, func(context.Context, <-chan base) error { return nil }))
	}},
	{name: "array", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req[3]}:#{req[0].IDD}")))
		return action(guard.Action(g, func(context.Context, [2]base) error { return nil }))
	}},
	{name: "complex", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req}")))
		return action(guard.Action(g, func(context.Context, complex128) error { return nil }))
	}},
	{name: "error", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req}")))
		return action(guard.Action(g, func(context.Context, error) error { return nil }))
	}},
	{name: "pointer to a pointer", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.IDD}")))
		return action(guard.Action(g, func(context.Context, **base) error { return nil }))
	}},
	{name: "letters of Greece", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.Ωmega}:#{req.Ωmegb}")))
		return action(guard.Action(g, func(context.Context, greek) error { return nil }))
	}},
	{name: "function of a parameter", quiet: true, start: func() error { return asked[base]("#{req.IDD}") }},
	{name: "explicit type arguments", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.IDD}")))
		_, err := guard.Func[base, int](g, func(context.Context, base) (int, error) { return 0, nil })
		return err
	}},
	{name: "method value as work", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.IDD}")))
		return action(guard.Action(g, new(shop).pay))
	}},
	{name: "method of a literal as work", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req}:#{reqq}")))
		_, err := guard.Job(g, shop{}.job)
		return err
	}},
	{name: "key of a leader", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("leader:#{reqq}")))
		return guard.Lead(context.Background(), g, shop{}.job)
	}},
	{name: "leader without work", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("leader")))
		return guard.Lead(context.Background(), g, nil)
	}},

	// tags
	{name: "tag of a request", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("tagged")))
		return action(guard.Action(g, func(context.Context, tagged) error { return nil }))
	}},
	{name: "tag of an embedded request", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("embedded")))
		return action(guard.Action(g, func(context.Context, *embedsTagged) error { return nil }))
	}},
	{name: "tag of two requests", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("both")))
		return action(guard.Action(g, func(context.Context, embedsTwo) error { return nil }))
	}},
	{name: "large tag", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("large")))
		return action(guard.Action(g, func(context.Context, large) error { return nil }))
	}},
	{name: "tag of an instance", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("instance")))
		return action(guard.Action(g, func(context.Context, taggedBox[base]) error { return nil }))
	}},
	{name: "tag in a function", start: func() error {
		type local struct {
			_  struct{} `guard:"#{req.IDD}"`
			ID string
		}
		g := guard.Must(guard.New(memlock.New(), guard.Name("local")))
		return action(guard.Action(g, func(context.Context, local) error { return nil }))
	}},
	{name: "tag and key", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("override"), guard.Key("#{req.Id2}"), guard.Wait(time.Minute)))
		return action(guard.Action(g, func(context.Context, overridden) error { return nil }))
	}},
	{name: "struct of functions", start: func() error {
		return guard.Bind(guard.Must(guard.New(memlock.New())), &functions{Pay: payBase, Inner: inner[base]{Move: payBase}})
	}},
	{name: "struct without a name, of functions", start: func() error {
		api := struct {
			Pay func(context.Context, base) error "guard:\"#{req.IDD}\" json:\"日本\\t\""
		}{payBase}
		return guard.Bind(guard.Must(guard.New(memlock.New())), &api)
	}},
	{name: "stack of itself", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.ID}")))
		return newly(guard.Stack(g, g))
	}},
	{name: "stack of nothing", start: func() error { return newly(guard.Stack()) }},
	{name: "stack of nil", start: func() error { return newly(guard.Stack(nil)) }},
	{name: "guard that is made later", start: func() error {
		g := guard.Must(guard.New(memlock.New(), guard.Name("late"), guard.Key(late)))
		return action(guard.Action(g, payBase))
	}},
	{name: "specs of a text", start: func() error { return specs(guard.ParseSpecs("a: wait=1s\nb: wiat=2s\n\nc: kind=faire; limit=x")) }},
	{name: "specs of nothing", start: func() error { return specs(guard.ParseSpecs("")) }},
}

const (
	prefix          = "or" + "der:"
	hole            = "#{req." + "IDD}"
	ownText         = "own"
	ownName ownTexT = "" + ownText
)

type ownTexT string

const ownWait = time.Duration(7)

const (
	zero = iota
	first
	second
)

var _ = zero + first

const long = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

var late = later // set once, before it

var later = "#{req.ID}"

type (
	base          struct{ ID string }
	embeds        struct{ base }
	embedsPointer struct {
		*base
		Other int
	}
	alias   = embeds
	pointer = *alias

	box[T any]   struct{ Value T }
	boxed[T any] = box[T]
	node[T any]  struct{ Next *node[T] }
	greek        struct{ Ωmega, id string }
	shop         struct{}
	inner[T any] struct {
		Move func(context.Context, T) error `guard:"#{req.ID}; wiat=1s"`
	}
	taggedBox[T any] struct {
		_     struct{} `guard:"#{req.Value.IDD}"`
		Value T
	}
	tagged struct {
		_  struct{} `json:"-" guard:"order:#{req.IDD}; wait=1s"`
		ID string
	}
	embedsTagged struct{ tagged2 }
	tagged2      struct {
		_  struct{} `guard:"order:#{req.IDD}"`
		ID string
	}
	embedsTwo struct {
		tagged3
		tagged4
	}
	tagged3 struct {
		_ struct{} `guard:"order:#{req.A}"`
		A string
	}
	tagged4 struct {
		_ struct{} `guard:"order:#{req.B}"`
		B string
	}
	large struct {
		_  struct{} `guard:"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789:#{req.IDD}" a:"b" c:"d"`
		ID string
	}
	overridden struct {
		_  struct{} `guard:"#{req.Id3}; wait=2s"`
		ID string
	}
	functions struct {
		Pay   func(context.Context, base) error `guard:"#{req.IDD}"`
		Inner inner[base]
	}
)

func (*shop) pay(context.Context, base) error { return nil }
func (shop) job(context.Context) error        { return nil }

var _ = fmt.Sprint(greek{}.id)

func payBase(context.Context, base) error { return nil }

func newly(_ *guard.Guard, err error) error { return err }

func action[Req any](_ func(context.Context, Req) error, err error) error { return err }

func given(opt guard.Option) error {
	if opt == nil {
		opt = guard.Name("a name")
	}
	return newly(guard.New(memlock.New(), opt, guard.Wait(time.Second)))
}

func specs(_ map[string]guard.Spec, err error) error { return err }

// asked is generic, so that the type of its request is not known in it.
func asked[Req any](key string) error {
	g, err := guard.New(memlock.New(), guard.Name("n"), guard.Key(key))
	if err != nil {
		return err
	}
	return action(guard.Action(g, func(context.Context, Req) error { return nil }))
}
