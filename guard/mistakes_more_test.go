package guard_test

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// keySource is a key in a language of its own.
type keySource struct{}

func (*keySource) String() string { return "x" }
func (*keySource) Check() error   { return nil }
func (*keySource) Parse(keyexpr.Roots, ...keyexpr.Option) (*keyexpr.Template, error) {
	return nil, nil
}

// made is a guard of these options, in which the mistake is not.
func made(opts ...guard.Option) *guard.Guard { return guard.Must(guard.New(memlock.New(), opts...)) }

// madeAs is made with a name and a key.
func madeAs(name string, opts ...guard.Option) *guard.Guard {
	return made(append(opts, guard.Name(name), guard.Key("order:#{req.ID}"))...)
}

// newly is what New says to options alone.
func newly(l lock.Locker, opts ...guard.Option) func() error {
	return func() error { _, err := guard.New(l, opts...); return err }
}

// valueMistakes are about single options: nothing in them, or the same once more.
func valueMistakes() []slip {
	reg := guard.Must(guard.NewRegistry())
	return []slip{
		{keyed(guard.ReleaseTimeout(time.Second), guard.ReleaseTimeout(time.Minute)), `guard "order.settle": ReleaseTimeout is given twice`},
		{keyed(guard.ReleaseTimeout(5)), `guard "order.settle": ReleaseTimeout of 5ns: give at least 1ms`},
		{keyed(guard.MaxRetryAfter(time.Second), guard.MaxRetryAfter(time.Second)), `guard "order.settle": MaxRetryAfter is given twice`},
		{keyed(guard.MaxRetryAfter(0)), `guard "order.settle": MaxRetryAfter of 0s: give at least 1ms`},
		{keyed(guard.TracerProvider(tracenoop.NewTracerProvider()), guard.TracerProvider(tracenoop.NewTracerProvider())), `guard "order.settle": TracerProvider is given twice`},
		{keyed(guard.MeterProvider(metricnoop.NewMeterProvider()), guard.MeterProvider(metricnoop.NewMeterProvider())), `guard "order.settle": MeterProvider is given twice`},
		{keyed(guard.Log(nil)), `guard "order.settle": Log without a logger: slog.Default() is one`},
		{keyed(guard.LogKeys(new(slog.Logger))), `guard "order.settle": Log without a logger: slog.Default() is one`},
		{keyed(guard.TemplateFunc("tenant", (func() string)(nil))), `guard "order.settle": TemplateFunc tenant without a function`},
		{keyed(guard.TemplateFunc("tenant", "acme")), `guard "order.settle": key: keyexpr: function tenant is of type string (at offset 0 of "order:#{req.ID}")`},
		{declared(guard.KeyFrom((*keySource)(nil))), `guard "order.settle": KeyFrom without a key`},
		{keyed(guard.When("")), `guard "order.settle": When without a text: leave it out`},
		{keyed(guard.When("true")), `guard "order.settle": when: true is the same for every call, as nothing of the request is read: a Registry switches guards off`},
		{keyed(guard.When("1 == 1")), `guard "order.settle": when: 1 == 1 is the same for every call, as nothing of the request is read: a Registry switches guards off`},
		{keyed(guard.When("not (1 == 1)")), `guard "order.settle": when: not (1 == 1) is false for every call, as nothing of the request makes a difference: a Registry switches guards off`},
		{keyed(guard.When("req.ID == '${x}'")), `guard "order.settle": when: keyexpr: ${…} is not filled in: a condition names what it reads, as in req.Tenant == req.Owner (at offset 10 of "req.ID == '${x}'")`},
		{keyed(guard.Methods()), `guard "order.settle": Methods without a text: leave it out`},
		{keyed(guard.Args()), `guard "order.settle": Args without a text: leave it out`},
		{keyed(guard.In(nil)), `guard "order.settle": In without a registry`},
		{keyed(guard.In(new(guard.Registry))), `guard "order.settle": In with a registry that NewRegistry did not make`},
		{keyed(guard.In(reg), guard.In(reg)), `guard "order.settle": In is given twice`},
		{keyed(guard.Switchable()), `guard "order.settle": switchable, but in no registry: give guard.In`},
		{keyed(guard.Fallback[func(context.Context, error) error](nil)), `guard "order.settle": Fallback without a function`},
		{keyed(guard.FromSpec(guard.Spec{Limit: 3, Kind: lock.Fair})), `guard "order.settle": limit 3 belongs to kind permit, not to kind fair`},
		{keyed(guard.FromSpec(guard.Spec{Waiters: 3})), `guard "order.settle": waiters without wait: nobody waits`},
		{keyed(guard.Busy(guard.Replace), guard.Read()), `guard "order.settle": busy=replace is for kinds that one call holds at a time, not for kind read`},
		{declared(guard.Key("order:#{req.ID} wait=2s")), `guard "order.settle": key: wait= would be a part of the key: in a tag it stands behind a semicolon, and else it is an option`},
		{declared(guard.Key("order:#{req.ID}|kind=fair")), `guard "order.settle": key: kind= would be a part of the key: in a tag it stands behind a semicolon, and else it is an option`},
		{declared(guard.Key("order:#{req.ID}；wait=2s")), `guard "order.settle": key: wait= would be a part of the key: in a tag it stands behind a semicolon, and else it is an option`},
		{declared(guard.Key("order:#{req.ID}, skip")), `guard "order.settle": key: skip would be a part of the key: in a tag it stands behind a semicolon, and else it is an option`},
		{declared(guard.Key("order:#{req.ID} ttl=30s")), `guard "order.settle": key: ttl= would be a part of the key: in a tag it stands behind a semicolon, and else it is an option`},
		{declared(guard.Key("order:#{req.ID}; wait=2s")), `guard "order.settle": key: wait= would be a part of the key: in a tag it stands behind a semicolon, and else it is an option`},
		{declared(guard.Key("order:#{req.ID} when req.Free == true")), `guard "order.settle": key: when would be a part of the key: in a tag it stands behind a semicolon, and else it is an option`},
		{newly(memlock.New(), guard.Name(" ")), `guard " ": name " " begins or ends with a blank: remove it`},
		{newly(memlock.New(), guard.Name("")), `guard without a name: Name without a text: leave it out`},
		{newly(memlock.New(), guard.Name("50%d"), guard.Wait(-time.Second)), `guard "50%d": negative wait -1s (use Forever to wait as long as the caller)`},
		{newly(memlock.New(), guard.Name("order.pay\n")), "guard \"order.pay\\n\": name \"order.pay\\n\" has bytes that are no text"},
		{newly(lockerFunc(nil), guard.Name("n")), `guard "n": nil locker`},
	}
}

// textMistakes are about tags and other texts.
func textMistakes() []slip {
	return []slip{
		{specified("key=order:#{req.ID}"), `guard: tag "key=order:#{req.ID}": the template stands first, without its name: write order:#{req.ID} (at offset 0)`},
		{specified("wait=2s"), `guard: tag "wait=2s": the template stands first, and attributes follow a semicolon: write ; wait=2s (at offset 0)`},
		{specified("name=pay; key=order:#{req.ID}"), `guard: tag "name=pay; key=order:#{req.ID}": the template stands first, and attributes follow a semicolon: write ; name=pay (at offset 0)`},
		{specified("order:#{req.ID}|wait=2s"), `guard: tag "order:#{req.ID}|wait=2s": attributes follow a semicolon, not a bar: write ; wait=2s (at offset 15)`},
		{specified("order:#{req.ID} | wait=2s"), `guard: tag "order:#{req.ID} | wait=2s": attributes follow a semicolon, not a bar: write ; wait=2s (at offset 16)`},
		{specified("order:#{req.ID}; timeout=2s"), `guard: tag "order:#{req.ID}; timeout=2s": unknown attribute "timeout", did you mean wait? (at offset 17)`},
		{specified("order:#{req.ID}; leaseTime=2s"), `guard: tag "order:#{req.ID}; leaseTime=2s": unknown attribute "leaseTime", did you mean lease? (at offset 17)`},
		{specified("order:#{req.ID}; retries=3"), `guard: tag "order:#{req.ID}; retries=3": unknown attribute "retries": there is args, burst, busy, hold, key, kind, lease, levels, limit, max-hold, methods, name, one-key, outage, rate, switchable, wait, waiters, when (at offset 17)`},
		{specified("order:#{req.ID}; max_hold=2s"), `guard: tag "order:#{req.ID}; max_hold=2s": unknown attribute "max_hold", did you mean max-hold? (at offset 17)`},
		{specified("order:#{req.ID}; waitForever"), `guard: tag "order:#{req.ID}; waitForever": unknown attribute "waitForever", did you mean wait? (at offset 17)`},
		{specified("order:#{req.ID}; skip"), `guard: tag "order:#{req.ID}; skip": unknown attribute "skip": write busy=skip (at offset 17)`},
		{specified("order:#{req.ID}; limit=0"), `guard: tag "order:#{req.ID}; limit=0": bad limit "0", want a number of at least 1 (at offset 23)`},
		{specified("order:#{req.ID}; wait=-2s"), `guard: tag "order:#{req.ID}; wait=-2s": negative duration "-2s" (at offset 22)`},
		{specified("order:#{req.ID}; wait=2m30"), `guard: tag "order:#{req.ID}; wait=2m30": bad duration "2m30", want one like 2s or 500ms (at offset 22)`},
		{specified("order:#{req.ID}; when="), `guard: tag "order:#{req.ID}; when=": attribute when has no value, write when=... (at offset 17)`},
		{specified("order:#{req.ID}; args=a b"), `guard: tag "order:#{req.ID}; args=a b": "a b" is no name for an argument (at offset 22)`},
		{requested[struct {
			_  struct{} `guards:"order:#{req.ID}"`
			ID string
		}](guard.Name("n")), `guard "n": field struct { _ struct {} "guards:\"order:#{req.ID}\""; ID string }._: tag guards:"..." is nobody's: write guard:"..."`},
		{bound(`guards:"order:#{req.ID}"`, dropOrder), `guard: Bind of Pay: tag guards:"..." is nobody's: write guard:"..."`},
		{bound(`json:"pay" Guard:"order:#{req.ID}"`, dropOrder), `guard: Bind of Pay: tag Guard:"..." is nobody's: write guard:"..."`},
		{besideGood(`guard :"order:#{req.ID}"`), `guard: Bind of Pay: malformed struct tag ` + strconv.Quote(`guard :"order:#{req.ID}"`) + `, want guard:"..." behind a blank`},
		{besideGood(`guard="order:#{req.ID}"`), `guard: Bind of Pay: malformed struct tag ` + strconv.Quote(`guard="order:#{req.ID}"`) + `, want guard:"..." behind a blank`},
		{besideGood(`guard=order:#{req.ID}`), `guard: Bind of Pay: malformed struct tag ` + strconv.Quote(`guard=order:#{req.ID}`) + `, want guard:"..." behind a blank`},
		{besideGood(`guard 'order:#{req.ID}'`), `guard: Bind of Pay: malformed struct tag ` + strconv.Quote(`guard 'order:#{req.ID}'`) + `, want guard:"..." behind a blank`},
		{besideGood(`guard;"order:#{req.ID}"`), `guard: Bind of Pay: malformed struct tag ` + strconv.Quote(`guard;"order:#{req.ID}"`) + `, want guard:"..." behind a blank`},
		{besideGood(`GUARD "order:#{req.ID}"`), `guard: Bind of Pay: malformed struct tag ` + strconv.Quote(`GUARD "order:#{req.ID}"`) + `, want guard:"..." behind a blank`},
		{besideGood("guard\u200b:\"order:#{req.ID}\""), `guard: Bind of Pay: malformed struct tag ` + strconv.Quote("guard\u200b:\"order:#{req.ID}\"") + `, want guard:"..." behind a blank`},
		{besideGood("\u00a0guard:\"order:#{req.ID}\""), `guard: Bind of Pay: malformed struct tag ` + strconv.Quote("\u00a0guard:\"order:#{req.ID}\"") + `, want guard:"..." behind a blank`},
		{besideGood(`json:"a" guard "order:#{req.ID}"`), `guard: Bind of Pay: malformed struct tag ` + strconv.Quote(`json:"a" guard "order:#{req.ID}"`) + `, want guard:"..." behind a blank`},
		{besideGood("json:\"a\"\tguard:\"order:#{req.ID}\""), `guard: Bind of Pay: malformed struct tag ` + strconv.Quote("json:\"a\"\tguard:\"order:#{req.ID}\"") + `, want guard:"..." behind a blank`},
		{besideGood(`json,guard:"order:#{req.ID}"`), `guard: Bind of Pay: malformed struct tag ` + strconv.Quote(`json,guard:"order:#{req.ID}"`) + `, want guard:"..." behind a blank`},
		{besideGood(`guarded:"order:#{req.ID}"`), `guard: Bind of Pay: tag guarded:"..." is nobody's: write guard:"..."`},
		{besideGood(`Guarding:"order:#{req.ID}"`), `guard: Bind of Pay: tag Guarding:"..." is nobody's: write guard:"..."`},
		{besideGood(`guardKey:"order:#{req.ID}"`), `guard: Bind of Pay: tag guardKey:"..." is nobody's: write guard:"..."`},
		{besideGood(`guards:"order:#{req.ID}"`), `guard: Bind of Pay: tag guards:"..." is nobody's: write guard:"..."`},
		{besideGood(`guard:"order:#{req.ID}; when=req.ID matches '\d'"`), `guard: Bind of Pay: guard tag "order:#{req.ID}; when=req.ID matches '\d'" is no string of Go: a backslash is written as two`},
		{bound(`guard:"order:#{req.ID}" guard:"wait=2s"`, dropOrder), `guard: Bind of Pay: two guard tags in "guard:\"order:#{req.ID}\" guard:\"wait=2s\"": write one, with semicolons between its parts`},
		{bound(`guard:"order:#{req.ID}; name=\" x\""`, dropOrder), `guard: Bind of Pay: guard " x": name " x" begins or ends with a blank: remove it`},
		{bound(`guard:"order:#{req.ID}"`, &dropOrder), `guard: Bind of Pay: field has a guard tag, but is of type *func(context.Context, guard_test.Order) error, not a function that takes a context.Context first and returns an error last`},
		{bound(`guard:"order:#{ids.ID}; args=ids"`, func(context.Context, ...string) error { return nil }), `guard: Bind of Pay: guard "Pay": key: keyexpr: ids is a list of string: it has no fields, and ids[0] is its first element (at offset 12 of "order:#{ids.ID}")`},
		{bound(`guard:"nightly:#{date}; args=date"`, clean), `guard: Bind of Pay: args=date names 1, but func(context.Context) error has 0 behind its context`},
		{overriding(`order.pay: wait=5`), `guard: specs: guard "order.pay": bad duration "5", want one like 2s or 500ms (line 1, column 17)`},
		{overriding(`order.pay; wait=5s`), `guard: specs: "order.pay": want the name of a guard and a colon, as in order.pay: wait=5s (line 1, column 1)`},
		{overriding(`order.pay: wiat=5s`), `guard: specs: guard "order.pay": unknown attribute "wiat", did you mean wait? (line 1, column 12)`},
		{overriding(`order.pay: name=x`), `guard: specs: guard "order.pay": name can't be overridden: it says which guard is meant (line 1, column 1)`},
		{overriding(`order.pay:`), `guard: specs: guard "order.pay": nothing between semicolons or behind the last one (line 1, column 11)`},
		{overriding(`order.pay: wait=5s | order.pay: busy=skip`), `guard: specs: guard "order.pay": is given twice (line 1, column 22)`},
		{overriding(`{"order.pay": {"wait": 5}}`), `guard: specs: guard "order.pay": wait: a number without a unit or quotes: 5 (line 1, column 25)`},
		{overriding(`{"order.pay": "order:#{req.ID}"}`), `guard: specs: guard "order.pay": tag "order:#{req.ID}": unknown attribute "order:#{req.ID}": write key=order:#{req.ID} (at offset 0) (line 1, column 32)`},
		{overriding(`order.pay: order:#{req.ID}; wait=5s`), `guard: specs: guard "order.pay": unknown attribute "order:#{req.ID}": write key=order:#{req.ID} (line 1, column 12)`},
		{overriding(`order.pay: wait=5s, busy=skip`), `guard: specs: guard "order.pay": bad duration "5s, busy=skip", want one like 2s or 500ms (line 1, column 17)`},
	}
}

// besideGood is a Bind of a struct whose field Pay has the tag, beside a field whose tag is good.
func besideGood(tag string) func() error {
	field := func(name, tag string) reflect.StructField {
		return reflect.StructField{Name: name, Type: reflect.TypeFor[func(context.Context, Order) error](), Tag: reflect.StructTag(tag)}
	}
	api := reflect.New(reflect.StructOf([]reflect.StructField{field("Pay", tag), field("Drop", `guard:"drop:#{req.ID}"`)}))
	api.Elem().Field(0).Set(reflect.ValueOf(dropOrder))
	api.Elem().Field(1).Set(reflect.ValueOf(dropOrder))
	return func() error { return guard.Bind(made(), api.Interface()) }
}

// overriding is what ParseSpecs says to a text.
func overriding(text string) func() error {
	return func() error { _, err := guard.ParseSpecs(text); return err }
}

// placeMistakes are about where a guard is put: structs, stacks and registries.
func placeMistakes() []slip {
	type api struct {
		Pay func(context.Context, Order) error `guard:"order:#{req.ID}"`
	}
	type Pay struct {
		Pay func(context.Context, Order) error
	}
	return []slip{
		{boundTo(&struct{ APIs map[string]api }{}), `guard: Bind of APIs: functions with guard tags in a map[string]guard_test.api, where Bind does not look: bind each element`},
		{boundTo(&struct{ APIs [2]api }{}), `guard: Bind of APIs: functions with guard tags in a [2]guard_test.api, where Bind does not look: bind each element`},
		{boundTo((*api)(nil)), `guard: Bind of a nil *guard_test.api`},
		{boundTo(new(*api)), `guard: Bind wants a pointer to a struct, not **guard_test.api`},
		{boundTo(&struct {
			Pay `guard:"order:#{req.ID}"`
		}{Pay{dropOrder}}), `guard: Bind of Pay: field has a guard tag, but is of type guard_test.Pay, not a function that takes a context.Context first and returns an error last`},
		{boundTo(&struct {
			Next fmt.Stringer `guard:"order:#{req.ID}"`
		}{}), `guard: Bind of Next: fmt.Stringer is nil`},
		{boundTo(&struct {
			Pay func(context.Context, Order) error `guard:"order:#{req.ID}; busy=skip; outage=fail"`
		}{dropOrder}, guard.Fallback(func(context.Context, Order, error) error { return nil })), `guard: Bind with a Fallback that never runs: the tags of all fields say busy and outage otherwise`},
		{func() error { _, err := guard.Func(new(guard.Guard), payOrder); return err }, `guard: Func with a guard that New did not make`},
		{func() error { return guard.Bind(new(guard.Guard), &api{dropOrder}) }, `guard: Bind with a guard that New did not make`},
		{func() error { return guard.Check[Order, string](new(guard.Guard)) }, `guard: Check of a guard that New did not make`},
		{func() error { _, err := adapter.Prepare(new(guard.Guard), nil); return err }, `guard: Prepare of a guard that New did not make`},
		{stackOf(madeAs("a")), `guard: Stack of 1 guards: give at least two`},
		{stackOf(madeAs("a"), nil), `guard: Stack: number 2 is a nil guard`},
		{stackOf(madeAs("a"), made(guard.Name("b"))), `guard "b": in a Stack: give it a Name and a Key`},
		{stackOf(madeAs("a"), guard.Must(guard.Stack(madeAs("b"), madeAs("c")))), `guard "b": in a Stack: it is a Stack itself: give its guards`},
		{stackOf(madeAs("a"), madeAs("a")), `guard "a": twice in a Stack`},
		{stackOf(madeAs("a"), madeAs("b", guard.Fallback(func(context.Context, Order, error) (string, error) { return "", nil }))), `guard "b": in a Stack: declare the Fallback with the first guard`},
		{stackOf(madeAs("a"), made(guard.Name("b"), guard.Key("#{req.IDD}"))), `guard "b": key: keyexpr: unknown field IDD of Order, did you mean ID? (at offset 6 of "#{req.IDD}")`},
		{func() error {
			g := guard.Must(guard.Stack(madeAs("a", guard.Methods("POST")), madeAs("b")))
			_, err := adapter.Prepare(g, keyexpr.Roots{"req": keyexpr.TypeFor[Order]()}, adapter.ServesMethods)
			return err
		}, `guard "b": in a Stack: for methods of all kinds, but "a" for POST: a request passes all guards or none, so give both the same`},
		{twice(func(in guard.Option) *guard.Guard { return madeAs("a", in) }), `guard "a": the name is taken by the guard declared at PLACE: guard.Name gives this one another`},
		{twice(func(in guard.Option) *guard.Guard { return made(guard.Key("#{req.ID}"), in) }), `guard without a name: give guard.Name, for errors, spans and metrics`},
		{func() error { _, err := guard.NewRegistry(guard.Wait(time.Second)); return err }, `guard: NewRegistry takes options that are for all guards: Observe, Log, LogKeys, TemplateFunc, TracerProvider, MeterProvider, ReleaseTimeout, MaxRetryAfter`},
		{func() error { _, err := guard.NewRegistry(nil); return err }, `guard: NewRegistry: option 1 of 1 is nil`},
		{registered(map[string]guard.Spec{"order.pya": {Wait: time.Second}}, func(r *guard.Registry) error { return r.Check() }), `guard: Override of "order.pya", which is the name of no guard, did you mean order.pay?`},
		{func() error { return guard.Must(guard.NewRegistry()).Override(map[string]guard.Spec{"a": {Name: "b"}}) }, `guard "a": Override can't change the name to "b": leave it out`},
		{registered(map[string]guard.Spec{"order.pay": {Limit: 3}}, nil, guard.Fair()), `guard "order.pay": limit 3 belongs to kind permit, not to kind fair`},
		{registered(nil, func(r *guard.Registry) error { return r.Switch("order.pay", guard.Off) }), `guard "order.pay": can't be switched off: its Spec does not say switchable`},
	}
}

func stackOf(guards ...*guard.Guard) func() error {
	return func() error {
		g, err := guard.Stack(guards...)
		if err == nil {
			_, err = guard.Func(g, payOrder)
		}
		return err
	}
}

// twice makes two guards in one registry.
func twice(declare func(in guard.Option) *guard.Guard) func() error {
	return func() error {
		in := guard.In(guard.Must(guard.NewRegistry()))
		if _, err := guard.Func(declare(in), payOrder); err != nil {
			return err
		}
		_, err := guard.Func(declare(in), payOrder)
		return err
	}
}

// registered makes a guard order.pay in a registry with overrides, and then does something with that.
func registered(overrides map[string]guard.Spec, then func(*guard.Registry) error, opts ...guard.Option) func() error {
	return func() error {
		r := guard.Must(guard.NewRegistry())
		if err := r.Override(overrides); err != nil {
			return err
		}
		if _, err := guard.Func(madeAs("order.pay", append(opts, guard.In(r))...), payOrder); err != nil {
			return err
		}
		return then(r)
	}
}
