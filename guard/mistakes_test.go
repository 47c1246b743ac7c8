package guard_test

import (
	"context"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/keyexpr/spel"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// slip is a declaration with a mistake, and the sentence that it gets when the program starts.
type slip struct {
	declare func() error
	want    string
}

// Functions to guard.
var (
	payOrder  = func(context.Context, Order) (string, error) { return "", nil }
	dropOrder = func(context.Context, Order) error { return nil }
	move      = func(ctx context.Context, from, to string) error { return nil }
	clean     = func(context.Context) error { return nil }
)

// declared is a guard named order.settle in front of a function of an Order.
func declared(opts ...guard.Option) func() error {
	return func() error {
		g, err := guard.New(memlock.New(), append([]guard.Option{guard.Name("order.settle")}, opts...)...)
		if err != nil {
			return err
		}
		_, err = guard.Func(g, payOrder)
		return checkRequest(g, reflect.TypeFor[Order](), err)
	}
}

// keyed is declared with a key that is good.
func keyed(opts ...guard.Option) func() error {
	return declared(append([]guard.Option{guard.Key("order:#{req.ID}")}, opts...)...)
}

// bound is a Bind of a struct whose field Pay is fn, with tag.
func bound(tag string, fn any, opts ...guard.Option) func() error {
	return func() error {
		g, err := guard.New(memlock.New(), opts...)
		if err != nil {
			return err
		}
		field := reflect.StructField{Name: "Pay", Type: reflect.TypeOf(fn), Tag: reflect.StructTag(tag)}
		api := reflect.New(reflect.StructOf([]reflect.StructField{field}))
		api.Elem().Field(0).Set(reflect.ValueOf(fn))
		return checkFields(g, api.Interface(), guard.Bind(g, api.Interface()))
	}
}

// boundTo is a Bind of target.
func boundTo(target any, opts ...guard.Option) func() error {
	return func() error {
		g, err := guard.New(memlock.New(), opts...)
		if err != nil {
			return err
		}
		return checkFields(g, target, guard.Bind(g, target))
	}
}

// requested is a guard in front of a function of a Req, whose tags have the mistake.
func requested[Req any](opts ...guard.Option) func() error {
	return func() error { return tryFunc[Req](memlock.New(), opts...) }
}

// specified is what a text of a Spec gets.
func specified(text string) func() error {
	return func() error { return new(guard.Spec).UnmarshalText([]byte(text)) }
}

func optionMistakes() []slip {
	fallback := guard.Fallback(func(context.Context, Order, error) (string, error) { return "", nil })
	key := func(Order) (string, error) { return "", nil }
	return []slip{
		{keyed(guard.Wait(2)), `guard "order.settle": wait 2ns is under 1ms: a bare number counts nanoseconds, write 2*time.Second`},
		{keyed(guard.Wait(-time.Second)), `guard "order.settle": negative wait -1s (use Forever to wait as long as the caller)`},
		{keyed(guard.Lease(30)), `guard "order.settle": lease 30ns is under 1ms: a bare number counts nanoseconds, write 30*time.Second`},
		{keyed(guard.Lease(guard.Forever)), `guard "order.settle": lease can't be Forever (0 renews the lock until the work is done)`},
		{keyed(guard.Lease(time.Hour), guard.MaxHold(time.Minute)), `guard "order.settle": lease 1h0m0s is over max-hold 1m0s, which would end it first`},
		{keyed(guard.MaxHold(-1)), `guard "order.settle": negative max-hold -1ns (0 sets no bound)`},
		{keyed(guard.HoldAtLeast(30)), `guard "order.settle": hold 30ns is under 1ms: a bare number counts nanoseconds, write 30*time.Second`},
		{keyed(guard.Wait(time.Second), guard.Wait(time.Minute)), `guard "order.settle": wait is given twice, as "1s" and as "1m"`},
		{keyed(guard.Key("order:#{req.ID}:x")), `guard "order.settle": key is given twice, as "order:#{req.ID}" and as "order:#{req.ID}:x"`},
		{keyed(guard.Name("another")), `guard "another": name is given twice, as "order.settle" and as "another"`},
		{keyed(guard.Fair(), guard.Limit(3)), `guard "order.settle": limit 3 belongs to kind permit, not to kind fair`},
		{keyed(guard.Read(), guard.Write()), `guard "order.settle": kind is given twice, as "read" and as "write"`},
		{keyed(guard.Kind(99)), `guard "order.settle": unknown kind 99, valid are 0 to 6`},
		{keyed(guard.Kind(lock.Permit)), `guard "order.settle": kind permit needs a limit of at least 1, not 0, or a rate`},
		{keyed(guard.Limit(0)), `guard "order.settle": kind permit needs a limit of at least 1, not 0, or a rate`},
		{keyed(guard.Limit(-3)), `guard "order.settle": negative limit -3`},
		{keyed(guard.Waiters(3)), `guard "order.settle": waiters without wait: nobody waits`},
		{keyed(guard.Waiters(-1)), `guard "order.settle": negative waiters -1`},
		{keyed(guard.Busy(42)), `guard "order.settle": unknown busy policy 42, valid are fail, skip, run-unlocked, fallback, replace`},
		{keyed(guard.Busy(guard.RunFallback)), `guard "order.settle": policy fallback without a fallback: give Fallback`},
		{keyed(guard.Outage(guard.Replace)), `guard "order.settle": outage=replace: only a busy lock has a holder to replace`},
		{keyed(guard.Busy(guard.Skip), guard.Outage(guard.Fail), fallback), `guard "order.settle": a Fallback that never runs: the policies are busy=skip and outage=fail`},
		{keyed(fallback, fallback), `guard "order.settle": two fallbacks: give one`},
		{keyed(guard.Fallback[func(context.Context, Order, error) (string, error)](nil)), `guard "order.settle": Fallback without a function`},
		{keyed(guard.Fallback(func(context.Context, string, error) (string, error) { return "", nil })), `guard "order.settle": Fallback is a func(context.Context, string, error) (string, error), but this function needs a func(context.Context, guard_test.Order, error) (string, error)`},
		{keyed(guard.Fallback(func(context.Context, Order, error) error { return nil })), `guard "order.settle": Fallback is a func(context.Context, guard_test.Order, error) error, but this function needs a func(context.Context, guard_test.Order, error) (string, error)`},
		{keyed(guard.Fallback("queued")), `guard "order.settle": Fallback is a string, but this function needs a func(context.Context, guard_test.Order, error) (string, error)`},
		{keyed(guard.KeyFunc(key)), `guard "order.settle": two sources of keys, Key and KeyFunc: give one`},
		{declared(guard.KeyFunc(key), guard.KeysFunc(func(Order) ([]string, error) { return nil, nil })), `guard "order.settle": two sources of keys, KeyFunc and KeysFunc: give one`},
		{declared(guard.KeyFunc(func(*Order) (string, error) { return "", nil })), `guard "order.settle": key: KeyFunc takes requests of type *guard_test.Order, which these are not`},
		{declared(guard.KeysFunc[Order](nil)), `guard "order.settle": KeysFunc without a function`},
		{declared(guard.KeyFrom(nil)), `guard "order.settle": KeyFrom without a key`},
		{declared(guard.KeyFrom(spel.Expression("'order:' + #order.id"))), `guard "order.settle": key: keyexpr: #order stands for order, and there is no such fact: there is req; Params and Var say what it stands for (at offset 11 of "'order:' + #order.id")`},
		{keyed(guard.Observe(nil)), `guard "order.settle": Observe without a function`},
		{keyed(nil), `guard "order.settle": option 3 of 3 is nil`},
		{keyed(guard.TemplateFunc("tenant", nil)), `guard "order.settle": TemplateFunc tenant without a function`},
		{declared(guard.Key("order:#{tenant()}"), guard.TemplateFunc("tenant", func() (string, int) { return "", 0 })), `guard "order.settle": key: keyexpr: function tenant must return a value, or a value and an error (at offset 0 of "order:#{tenant()}")`},
		{keyed(guard.TemplateFunc("two words", strings.ToLower)), `guard "order.settle": key: keyexpr: a function can't be called "two words" (at offset 0 of "order:#{req.ID}")`},
		{keyed(guard.Methods("post")), `guard "order.settle": methods: unknown method "post", did you mean POST?`},
		{keyed(guard.Methods("PSOT")), `guard "order.settle": methods: unknown method "PSOT", did you mean POST?`},
		{keyed(guard.Methods("POST")), `guard "order.settle": methods=POST is about requests of HTTP, which there are none of here`},
		{keyed(guard.Args("from")), `guard "order.settle": args=from is for functions that Bind finds`},
		{keyed(guard.Args("not a name")), `guard "order.settle": args: "not a name" is no name for an argument`},
		{declared(guard.FromSpec(guard.Spec{Key: "order:#{req.ID}", Lease: 5})), `guard "order.settle": lease 5ns is under 1ms: a bare number counts nanoseconds, write 5*time.Second`},
		{func() error { _, err := guard.New(nil, guard.Name("n")); return err }, `guard "n": nil locker`},
		{func() error { _, err := guard.New((*memlock.Locker)(nil), guard.Name("n")); return err }, `guard "n": nil locker`},
		{keyed(guard.Wait(-1), guard.Lease(-1), guard.Kind(99)), `guard "order.settle": unknown kind 99, valid are 0 to 6` + "\n" +
			`guard "order.settle": negative wait -1ns (use Forever to wait as long as the caller)` + "\n" +
			`guard "order.settle": negative lease -1ns (0 renews the lock until the work is done)`},
	}
}

func templateMistakes() []slip {
	return []slip{
		{declared(), `guard "order.settle": no key: give guard.Key`},
		{declared(guard.Key("")), `guard "order.settle": no key: give guard.Key`},
		{declared(guard.Key("order")), `guard "order.settle": key: keyexpr: all requests would share one key, as nothing of the request is read: write something like order:#{req.OrderID}; OneKey (one-key in a tag) says that it is meant (at offset 0 of "order")`},
		{declared(guard.Key("order:{req.ID}")), `guard "order.settle": key: keyexpr: {req.ID} is a hash tag, and req.ID could be read: write #{req.ID} (at offset 6 of "order:{req.ID}")`},
		{declared(guard.Key("order:${req.ID}")), `guard "order.settle": key: keyexpr: ${…} is not filled in: write #{req.ID} (at offset 6 of "order:${req.ID}")`},
		{declared(guard.Key("order:{{.ID}}")), `guard "order.settle": key: keyexpr: {{…}} is not filled in: write #{req.ID} (at offset 6 of "order:{{.ID}}")`},
		{declared(guard.Key("order:#{req.ID")), `guard "order.settle": key: keyexpr: the hole is not closed by } (at offset 6 of "order:#{req.ID")`},
		{declared(guard.Key("order:#{}")), `guard "order.settle": key: keyexpr: empty hole (at offset 6 of "order:#{}")`},
		{declared(guard.Key("order:#{request.ID}")), `guard "order.settle": key: keyexpr: unknown name request: there is req (at offset 8 of "order:#{request.ID}")`},
		{declared(guard.Key("order:#{ID}")), `guard "order.settle": key: keyexpr: unknown name ID: write req.ID (at offset 8 of "order:#{ID}")`},
		{declared(guard.Key("order:#{req}")), `guard "order.settle": key: keyexpr: req is a struct, guard_test.Order: name one of its fields (at offset 8 of "order:#{req}")`},
		{declared(guard.Key("order:#{req.ID}#{req.Free}")), `guard "order.settle": key: keyexpr: two holes without a literal between them: what is put in could not be told apart (at offset 15 of "order:#{req.ID}#{req.Free}")`},
		{declared(guard.Key("order:#{req.Items}:#{req.ID}:#{req.Items}")), `guard "order.settle": key: keyexpr: a second list: a template makes a key of each element of one (at offset 31 of "order:#{req.Items}:#{req.ID}:#{req.Items}")`},
		{declared(guard.Key("order:#{now()}")), `guard "order.settle": key: keyexpr: now is not allowed here: a key with the time in it is never the same twice; conditions may use it (at offset 8 of "order:#{now()}")`},
		{declared(guard.Key("order:#{lower(req.ID}")), `guard "order.settle": key: keyexpr: '(' is closed by '}' (at offset 13 of "order:#{lower(req.ID}")`},
		{declared(guard.Key("order:#{lowr(req.ID)}")), `guard "order.settle": key: keyexpr: unknown function lowr, did you mean lower? (at offset 8 of "order:#{lowr(req.ID)}")`},
		{keyed(guard.When("req.Free = true")), `guard "order.settle": when: keyexpr: unexpected "=": nothing is assigned here, and == compares (at offset 9 of "req.Free = true")`},
		{keyed(guard.When("req.ID")), `guard "order.settle": when: keyexpr: a condition is true or false, and this is of type string (at offset 0 of "req.ID")`},
		{keyed(guard.When("#{req.Free}")), `guard "order.settle": when: keyexpr: a condition has no holes: write the expression without #{ and } (at offset 0 of "#{req.Free}")`},
		{keyed(guard.When("req.Fre")), `guard "order.settle": when: keyexpr: unknown field Fre of Order, did you mean Free? (at offset 4 of "req.Fre")`},
	}
}

func tagMistakes() []slip {
	return []slip{
		{specified("order:#{req.ID}; wiat=2s"), `guard: tag "order:#{req.ID}; wiat=2s": unknown attribute "wiat", did you mean wait? (at offset 17)`},
		{specified("order:#{req.ID}; wait"), `guard: tag "order:#{req.ID}; wait": attribute wait has no value, write wait=... (at offset 17)`},
		{specified("order:#{req.ID}; wait=2"), `guard: tag "order:#{req.ID}; wait=2": bad duration "2", want one like 2s or 500ms (at offset 22)`},
		{specified("order:#{req.ID}; wait=2 seconds"), `guard: tag "order:#{req.ID}; wait=2 seconds": bad duration "2 seconds", want one like 2s or 500ms (at offset 22)`},
		{specified("order:#{req.ID}; wait:2s"), `guard: tag "order:#{req.ID}; wait:2s": unknown attribute "wait:2s": write wait=2s (at offset 17)`},
		{specified("order:#{req.ID}; wait=2s, lease=3s"), `guard: tag "order:#{req.ID}; wait=2s, lease=3s": bad duration "2s, lease=3s", want one like 2s or 500ms (at offset 22)`},
		{specified("order:#{req.ID}, wait=2s"), `guard: tag "order:#{req.ID}, wait=2s": attributes follow a semicolon, not a comma: write ; wait=2s (at offset 15)`},
		{specified("order:#{req.ID}, wiat=2s"), `guard: tag "order:#{req.ID}, wiat=2s": attributes follow a semicolon, not a comma: write ; wiat=2s (at offset 15)`},
		{specified("order:#{req.ID} wait=2s"), `guard: tag "order:#{req.ID} wait=2s": attributes follow a semicolon, not a blank: write ; wait=2s (at offset 15)`},
		{specified("order:#{req.ID} waits=2s"), `guard: tag "order:#{req.ID} waits=2s": attributes follow a semicolon, not a blank: write ; waits=2s (at offset 15)`},
		{specified("order:#{req.ID};"), `guard: tag "order:#{req.ID};": nothing between semicolons or behind the last one (at offset 16)`},
		{specified("order:#{req.ID};; wait=2s"), `guard: tag "order:#{req.ID};; wait=2s": nothing between semicolons or behind the last one (at offset 16)`},
		{specified("order:#{req.ID}; wait=2s; wait=3s"), `guard: tag "order:#{req.ID}; wait=2s; wait=3s": attribute wait is given twice (at offset 26)`},
		{specified("order:#{req.ID}; key=other"), `guard: tag "order:#{req.ID}; key=other": attribute key is given twice (at offset 17)`},
		{specified("order:#{req.ID}; name=pay, wait=2s"), `guard: tag "order:#{req.ID}; name=pay, wait=2s": attributes follow a semicolon, not a comma: write ; wait=2s (at offset 25)`},
		{specified("order:#{req.ID}; lease=forever"), `guard: tag "order:#{req.ID}; lease=forever": bad duration "forever": only wait lasts forever (at offset 23)`},
		{specified("order:#{req.ID}; kind=reentrant"), `guard: tag "order:#{req.ID}; kind=reentrant": unknown kind "reentrant": there is exclusive, fair, fenced, permit, read, spin, write (at offset 22)`},
		{specified("order:#{req.ID}; kind=Fair"), `guard: tag "order:#{req.ID}; kind=Fair": unknown kind "Fair", did you mean fair? (at offset 22)`},
		{specified("order:#{req.ID}; busy=ignore"), `guard: tag "order:#{req.ID}; busy=ignore": unknown policy "ignore": there is fail, fallback, replace, run-unlocked, skip (at offset 22)`},
		{specified("order:#{req.ID}; limit=many"), `guard: tag "order:#{req.ID}; limit=many": bad limit "many", want a number of at least 1 (at offset 23)`},
		{specified("order:#{req.ID}; one-key=true"), `guard: tag "order:#{req.ID}; one-key=true": attribute one-key has no value, write it alone (at offset 17)`},
		{specified("order:#{req.ID}; args=from,,to"), `guard: tag "order:#{req.ID}; args=from,,to": no argument between commas (at offset 22)`},
		{specified("order:#{req.ID}; args=from,from"), `guard: tag "order:#{req.ID}; args=from,from": argument "from" is given twice (at offset 22)`},
		{specified("order:#{req.ID}; methods=post"), `guard: tag "order:#{req.ID}; methods=post": unknown method "post", did you mean POST? (at offset 25)`},
		{requested[struct {
			ID string `guard:"key"`
		}](), `guard without a name: fields marked as key follow the guard's name in the key, and types of two packages can have the same: give guard.Name, or name=... in a tag`},
		{requested[marked](), `guard "marked": fields marked as key follow the guard's name in the key, and types of two packages can have the same: give guard.Name, or name=... in a tag`},
		{requested[unexported](), `guard "unexported": field guard_test.unexported.id: part of the key, but not exported`},
		{requested[wrongPlace](), "guard \"wrongPlace\": field guard_test.wrongPlace.ID: tag \"order:#{req.ID}\": want `key` (a template goes on a blank field, _ struct{})"},
		{requested[twoTags](), `guard "twoTags": field guard_test.twoTags._: second guard tag of this request type`},
		{requested[markedInside](), `guard "markedInside": field guard_test.markedInside.Ref.ID: part of the key, in a field that is not embedded: write a template, with #{req.Ref.ID}`},
		{requested[markedHidden](), `guard "markedHidden": field guard_test.markedHidden.Region: part of the key in an embedded struct, and hidden by another field of its name: mark that one, or rename one`},
		{requested[markedTwice](), `guard "markedTwice": field guard_test.markedTwice.Other.Region: part of the key, in a field that is not embedded: write a template, with #{req.Other.Region}`},
		{requested[markedDeep](), `guard "markedDeep": field guard_test.markedDeep.Ref.markedBase.Region: part of the key, in a field that is not embedded: write a template, with #{req.Ref.markedBase.Region}`},
		{requested[twoSources](), `guard "twoSources": two sources of keys in guard_test.twoSources: a template and fields marked as key`},
		{requested[unkeyable](guard.Name("n")), `guard "n": key: keyexpr: req.At is a struct, struct { X int }: name one of its fields (at offset 4 of "n:#{req.At}")`},
		{requested[struct {
			_  struct{} `guard:"order:#{req.ID}; args=id"`
			ID string
		}](guard.Name("n")), `guard "n": args=id is for functions that Bind finds`},
	}
}

func bindMistakes() []slip {
	type api struct {
		Pay  func(context.Context, Order) error `guard:"order:#{req.ID}"`
		Drop func(context.Context, Order) error `guard:"order:#{req.ID}"`
	}
	type inside struct{ API api }
	type pointed struct{ API *api }
	type listed struct{ APIs []api }
	type hidden struct{ api api }
	type boxed struct{ API any }
	type deep struct{ Outer struct{ *embedsPointer } }
	good := api{dropOrder, dropOrder}
	guarded := good
	if err := guard.Bind(guard.Must(guard.New(memlock.New())), &guarded); err != nil {
		panic(err)
	}
	byFunc := guard.Must(guard.Action(guard.Must(guard.New(memlock.New(), guard.Name("n"), guard.Key("#{req.ID}"))), dropOrder))
	return []slip{
		{func() error { return guard.Bind(nil, &good) }, `guard: Bind with a nil guard`},
		{boundTo(nil), `guard: Bind wants a pointer to a struct, not <nil>`},
		{boundTo(good), `guard: Bind wants a pointer to a struct, not guard_test.api`},
		{boundTo(&struct {
			Pay func(context.Context, Order) error
		}{dropOrder}), `guard: Bind of *struct { Pay func(context.Context, guard_test.Order) error }: no field has a guard tag`},
		{bound(`guard:"order:#{req.IDD}"`, dropOrder), `guard: Bind of Pay: guard "Pay": key: keyexpr: unknown field IDD of Order, did you mean ID? (at offset 12 of "order:#{req.IDD}")`},
		{bound(`guard:"order:#{req.ID}; wiat=2s"`, dropOrder), `guard: Bind of Pay: tag "order:#{req.ID}; wiat=2s": unknown attribute "wiat", did you mean wait? (at offset 17)`},
		{bound(`guard:order`, dropOrder), `guard: Bind of Pay: malformed struct tag "guard:order", want guard:"..." behind a blank`},
		{bound(`json:"pay",guard:"order:#{req.ID}"`, dropOrder), `guard: Bind of Pay: malformed struct tag "json:\"pay\",guard:\"order:#{req.ID}\"", want guard:"..." behind a blank`},
		{bound(`guard:""`, dropOrder), `guard: Bind of Pay: guard "Pay": no key: give guard.Key`},
		{bound(`guard:"order"`, dropOrder), `guard: Bind of Pay: guard "Pay": key: keyexpr: all requests would share one key, as nothing of the request is read: write something like order:#{req.OrderID}; OneKey (one-key in a tag) says that it is meant (at offset 0 of "order")`},
		{bound(`guard:"order"`, 7), `guard: Bind of Pay: field has a guard tag, but is of type int, not a function that takes a context.Context first and returns an error last`},
		{bound(`guard:"order"`, func(Order) error { return nil }), `guard: Bind of Pay: field has a guard tag, but is of type func(guard_test.Order) error, not a function that takes a context.Context first and returns an error last`},
		{bound(`guard:"order"`, func(Order, context.Context) error { return nil }), `guard: Bind of Pay: field has a guard tag, but is of type func(guard_test.Order, context.Context) error, not a function that takes a context.Context first and returns an error last`},
		{bound(`guard:"order"`, func(context.Context, Order) string { return "" }), `guard: Bind of Pay: field has a guard tag, but is of type func(context.Context, guard_test.Order) string, not a function that takes a context.Context first and returns an error last`},
		{bound(`guard:"order"`, func(context.Context, Order) (error, string) { return nil, "" }), `guard: Bind of Pay: field has a guard tag, but is of type func(context.Context, guard_test.Order) (error, string), not a function that takes a context.Context first and returns an error last`}, //nolint:staticcheck // the mistake
		{bound(`guard:"order:#{from}"`, move), `guard: Bind of Pay: func(context.Context, string, string) error has 2 arguments behind its context: name them, as in args=a,b`},
		{bound(`guard:"order:#{from}; args=from"`, move), `guard: Bind of Pay: args=from names 1, but func(context.Context, string, string) error has 2 behind its context`},
		{bound(`guard:"order:#{from}; args=ctx,from,to"`, move), `guard: Bind of Pay: args=ctx,from,to names 3, but func(context.Context, string, string) error has 2 behind its context`},
		{bound(`guard:"order:#{form}; args=from,to"`, move), `guard: Bind of Pay: guard "Pay": key: keyexpr: unknown name form, did you mean from? (at offset 8 of "order:#{form}")`},
		{bound(`guard:"order:#{req.ID}; args=order"`, dropOrder), `guard: Bind of Pay: guard "Pay": key: keyexpr: unknown name req: there is order (at offset 8 of "order:#{req.ID}")`},
		{bound(`guard:"order:#{id}; args=order,id"`, func(context.Context, tagged, string) error { return nil }), `guard: Bind of Pay: the guard tags of argument order (guard_test.tagged) would be ignored: they are for a function without args`},
		{bound(`guard:"order:#{req.ID}"`, clean), `guard: Bind of Pay: guard "Pay": key: keyexpr: unknown name req: there is none (at offset 8 of "order:#{req.ID}")`},
		{bound(`guard:"order:#{req.ID}; methods=POST"`, dropOrder), `guard: Bind of Pay: guard "Pay": methods=POST is about requests of HTTP, which there are none of here`},
		{bound(`guard:"order:#{req.ID}; limit=3; kind=fair"`, dropOrder), `guard: Bind of Pay: guard "Pay": limit 3 belongs to kind permit, not to kind fair`},
		{bound(`guard:"order:#{req.ID}; busy=fallback"`, dropOrder), `guard: Bind of Pay: guard "Pay": policy fallback without a fallback: give Fallback`},
		{bound(`guard:"order:#{req.ID}"`, dropOrder, guard.Fallback(func(context.Context, Order, error) (string, error) { return "", nil })), `guard: Bind of Pay: guard "Pay": Fallback is a func(context.Context, guard_test.Order, error) (string, error), but this function needs a func(context.Context, guard_test.Order, error) error`},
		{bound(`guard:"order:#{req.ID}"`, (func(context.Context, Order) error)(nil)), `guard: Bind of Pay: function is nil`},
		{bound(`guard:"order:#{req.ID}"`, byFunc), `guard: Bind of Pay: function is guarded already (or made by package reflect, which looks the same)`},
		{boundTo(&guarded), `guard: Bind of api.Pay: function is guarded already (or made by package reflect, which looks the same)` + "\n" +
			`guard: Bind of api.Drop: function is guarded already (or made by package reflect, which looks the same)`},
		{boundTo(&api{Pay: dropOrder}), `guard: Bind of api.Drop: function is nil`},
		{boundTo(&api{dropOrder, dropOrder}, guard.Name("orders")), `guard: Bind of api.Drop: guard "orders" is also that of api.Pay: give each a name of its own`},
		{boundTo(&inside{api{Pay: dropOrder}}), `guard: Bind of inside.API.Drop: function is nil`},
		{boundTo(&pointed{}), `guard: Bind of pointed.API: nil *guard_test.api, but its fields have guard tags`},
		{boundTo(&deep{}), `guard: Bind of deep.Outer.embedsPointer: nil *guard_test.embedsPointer, but its fields have guard tags`},
		{boundTo(&listed{[]api{good}}), `guard: Bind of listed.APIs: functions with guard tags in a []guard_test.api, where Bind does not look: bind each element`},
		{boundTo(&hidden{good}), `guard: Bind of hidden.api: functions with guard tags, but the field is not exported`},
		{boundTo(&boxed{good}), `guard: Bind of boxed.API: functions with guard tags in a guard_test.api that is a copy: use a pointer`},
		{boundTo(&unexportedFunc{dropOrder}), `guard: Bind of unexportedFunc.f: field has a guard tag, but is not exported`},
	}
}

type embedsPointer struct{ *Extras }

func functionMistakes() []slip {
	g := guard.Must(guard.New(memlock.New(), guard.Name("g"), guard.Key("order:#{req.ID}")))
	one := guard.Must(guard.New(memlock.New(), guard.Name("g"), guard.Key("nightly"),
		guard.Fallback(func(context.Context, none, error) error { return nil })))
	return []slip{
		{func() error { _, err := guard.Func(nil, payOrder); return err }, `guard: Func with a nil guard`},
		{func() error { _, err := guard.Func[Order, string](g, nil); return err }, `guard "g": Func with a nil function`},
		{func() error { _, err := guard.Action[Order](g, nil); return err }, `guard "g": Action with a nil function`},
		{func() error { _, err := guard.Job(g, nil); return err }, `guard "g": Job with a nil function`},
		{func() error { _, err := guard.Job(g, clean); return err }, `guard "g": key: keyexpr: unknown name req: there is none (at offset 8 of "order:#{req.ID}")`},
		{func() error { _, err := guard.Job(one, clean); return err }, `guard "g": Fallback is a func(context.Context, struct {}, error) error, but this function needs a func(context.Context, error) error`},
		{func() error { _, err := guard.TryJob(g, nil); return err }, `guard "g": TryJob with a nil function`},
		{func() error { _, err := guard.TryJob(one, clean); return err }, `guard "g": Fallback is a func(context.Context, struct {}, error) error, but this function needs a func(context.Context, error) error`},
		{func() error { _, err := guard.Try[Order, string](g, nil); return err }, `guard "g": Try with a nil function`},
		{func() error { return guard.Check[string, string](g) }, `guard "g": key: keyexpr: type string has no field ID (at offset 12 of "order:#{req.ID}")`},
		{func() error { return guard.Check[Order, string](nil) }, `guard: Check of a nil guard`},
		{func() error { _, err := guard.Do[Order, string](context.Background(), g, Order{}, nil); return err }, `guard "g": fault of the program or of the lock service: guard "g": Do with a nil function`},
		{func() error {
			_, err := guard.Do(context.Background(), g, 7, func(context.Context) (string, error) { return "ran", nil })
			return err
		}, `guard "g": fault of the program or of the lock service: guard "g": key: keyexpr: type int has no field ID (at offset 12 of "order:#{req.ID}")`},
		{func() error {
			_, err := guard.Do(context.Background(), nil, 7, func(context.Context) (string, error) { return "ran", nil })
			return err
		}, `guard "": fault of the program or of the lock service: guard: Do with a nil guard`},
		{func() error { _, err := adapter.Prepare(g, nil); return err }, `guard "g": key: keyexpr: unknown name req: there is none (at offset 8 of "order:#{req.ID}")`},
	}
}

type none = struct{}

var keyexprSentence = regexp.MustCompile(`keyexpr: .* \(at offset`)

// ours is text without the words of package keyexpr, which has tests of them.
func ours(text string) string {
	return declaredAt.ReplaceAllString(keyexprSentence.ReplaceAllString(text, "keyexpr (at offset"), "declared at PLACE")
}

var declaredAt = regexp.MustCompile(`declared at [^ ]+go:[0-9]+`)

// TestMistakesHaveSentences holds that none of these declarations starts, none panics, and each is told what to write.
func TestMistakesHaveSentences(t *testing.T) {
	total := 0
	for name, slips := range map[string][]slip{
		"options": optionMistakes(), "templates": templateMistakes(), "tags": tagMistakes(), "bind": bindMistakes(), "functions": functionMistakes(),
		"values": valueMistakes(), "texts": textMistakes(), "places": placeMistakes(),
	} {
		for i, tt := range slips {
			total++
			err := tt.declare()
			if err == nil {
				t.Errorf("%s %d: no error, want %s", name, i, tt.want)
			} else if ours(err.Error()) != ours(tt.want) && !strings.Contains(err.Error(), "is not served by this version") {
				t.Errorf("%s %d: got\n%s\nwant\n%s", name, i, err, tt.want)
			}
			var fault *guard.Error
			if errors.As(err, &fault) && !errors.Is(err, guard.ErrFault) {
				t.Errorf("%s %d: %v is not the program's fault", name, i, err)
			}
		}
	}
	if total < 190 {
		t.Errorf("%d mistakes, want 190", total)
	}
}
