// Package options has guards that are declared by options.
package options

import (
	"context"
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/keyexpr/spel"
	"github.com/latchkey-go/latchkey/lock"
)

type Tenant string

type Order struct {
	ID     string
	Tenant Tenant
	Free   bool
	Lines  []Line
	At     time.Time
	Slots  int
	Until  time.Duration
}

type Line struct{ SKU string }

func pay(context.Context, Order) (string, error) { return "", nil }

const template = "order:#{req.Id}"

var locker lock.Locker

// Declared at the top, used below.
var settle = guard.Must(guard.New(locker,
	guard.Name("order.settle"),
	guard.Key("order:#{req.Tenant}:#{req.IDD}"), // want `guard "order.settle": key: keyexpr: unknown field IDD of Order, did you mean ID\? \(at offset 26 of "order:#{req.Tenant}:#{req.IDD}"\)`
	guard.Wait(2*time.Second),
))

var settled = guard.Must(guard.Func(settle, pay))

func values(l lock.Locker) {
	_, _ = guard.New(l, guard.Name("n"), guard.Wait(10))                                     // want `guard "n": wait 10ns is under 1ms: a bare number counts nanoseconds, write 10\*time.Second`
	_, _ = guard.New(l, guard.Name("n"), guard.Lease(time.Hour), guard.MaxHold(time.Minute)) // want `guard "n": lease 1h0m0s is over max-hold 1m0s`
	_, _ = guard.New(l, guard.Name("n"), guard.Fair(), guard.Read())                         // want `guard "n": kind is given twice, as "fair" and as "read"`
	_, _ = guard.New(l, guard.Name("n"), guard.Methods("post"))                              // want `unknown method "post", did you mean POST\?`
	_, _ = guard.New(l, guard.Name("n"), guard.Key("order:${req.ID}"))                       // want `\$\{…} is not filled in: write #{req.ID}`
	_, _ = guard.New(l, guard.Name("n"), guard.Key("order:#{req.ID; wait=2s"))               // want `the hole is not closed by }`
	_, _ = guard.New(l, guard.Name("n"), guard.Key("order:#{req.ID}; wait=2s"))              // want `wait= would be a part of the key`
	_, _ = guard.New(l, guard.Name("n"), guard.When("req.Free = true"))                      // want `when: keyexpr: nothing is assigned here, and == compares \(at offset 9`
	_, _ = guard.New(nil, guard.Name("n"))                                                   // want `guard "n": nil locker`
	_, _ = guard.New(l, guard.Name("n"), nil)                                                // want `guard "n": option 2 of 2 is nil`
	_, _ = guard.New(l, guard.FromSpec(guard.Spec{Name: "n", Lease: 5, Kind: lock.Fair}))    // want `guard "n": lease 5ns is under 1ms`
	_, _ = guard.New(l, guard.Name("n"), guard.KeyFrom(spel.Expression("'order:' + ")))      // want `key: keyexpr: unexpected`
	_, _ = guard.New(l, guard.Name("n"), guard.Observe(nil), guard.Log(slog.Default()))      // want `guard "n": Observe without a function`
	_, _ = guard.New(l, []guard.Option{guard.Name("n"), guard.Waiters(-1)}...)               // want `guard "n": negative waiters -1`
	_, _ = guard.New(l, guard.Name("n"), guard.LimitFrom("3"))                               // want `guard "n": limit "3": give one expression`
	_, _ = guard.New(l, guard.Name("n"), guard.LeaseFrom("#{req.Until +}"))                  // want `guard "n": lease: keyexpr: not an expression`
	_, _ = guard.New(l, guard.Name("n"), guard.Limit(1), guard.Level(20, "a,b"))             // want `guard "n": levels: bad level "b"`
	_, _ = guard.New(l, guard.Name("n"), guard.Rate(10, 0))                                  // want `guard "n": rate: bad rate "10/0s"`
	_, _ = guard.NewRegistry(guard.Wait(time.Second))                                        // want `NewRegistry takes options that are for all guards`
	_, _ = guard.ParseSpecs("order.pay: wiat=5s")                                            // want `unknown attribute "wiat", did you mean wait\?`
	_ = new(guard.Spec).UnmarshalText([]byte("order:#{req.ID}; wait=2"))                     // want `bad duration "2"`
	_ = new(guard.Spec).Set("wait", "soon")                                                  // want `bad duration "soon"`
}

func functions(l lock.Locker, reg *guard.Registry, wait time.Duration, more ...guard.Option) {
	name := guard.Name("order.pay")
	g := guard.Must(guard.New(l, name, guard.Key(template))) // fine: names are taken in any case
	_, _ = guard.Func(g, pay)
	_, _ = guard.Job(g, func(context.Context) error { return nil }) // want `guard "order.pay": key: keyexpr: unknown name req: there is none`
	_, _ = guard.TryJob(g, nil)                                     // want `guard "order.pay": TryJob with a nil function`

	g2, err := guard.New(l, name, guard.Key("order:#{req.At}")) // want `req.At is a time, which has many spellings`
	if err != nil {
		return
	}
	_, _ = guard.Try(g2, pay)

	constant, _ := guard.New(l, name, guard.Key("order")) // want `all requests would share one key`
	_, _ = guard.Func(constant, pay)

	// What is not known may say that it is meant.
	open := guard.Must(guard.New(l, append(more, guard.Key("order"))...))
	_, _ = guard.Func(open, pay)
	opened := guard.Must(guard.New(l, more...))
	_, _ = guard.Func(opened, pay)
	waits := guard.Must(guard.New(l, guard.Waiters(3), guard.Wait(wait), name, guard.Key("#{tenantOf(req.ID)}"), guard.In(reg), guard.Switchable()))
	_, _ = guard.Func(waits, pay)

	typed := guard.Must(guard.New(l, name, guard.TemplateFunc("line", func(Line) Tenant { return "" }),
		guard.Key("#{line(req.Tenant)}"))) // want `argument 1 of line is of type options.Tenant, and should be options.Line`
	_, _ = guard.Func(typed, pay)
	loops := guard.Must(guard.New(l, name, guard.Key("#{map(req.Lines, .SKUU)}"))) // want `unknown field SKUU of Line, did you mean SKU\?`
	_ = guard.Check[Order, string](loops)
	keyed := guard.Must(guard.New(l, name, guard.KeyFunc(func(Order) (string, error) { return "", nil }), guard.When("req.Fre"))) // want `unknown field Fre of Order, did you mean Free\?`
	_, _ = guard.Func(keyed, pay)
	java := guard.Must(guard.New(l, name, guard.KeyFrom(spel.Expression("'order:' + #order.idd", spel.Params("order"))))) // want `unknown property idd of options.Order, did you mean ID\?`
	_, _ = guard.Func(java, pay)

	// Types of the source are those of the program.
	read := guard.Must(guard.New(l, name, guard.Key("#{req.ID}"), guard.LimitFrom("#{req.Slots}"), guard.LeaseFrom("#{req.Until}")))
	_, _ = guard.Func(read, pay)
	text := guard.Must(guard.New(l, name, guard.Key("#{req.ID}"), guard.LimitFrom("#{req.Tenant}"))) // want `limit: keyexpr: makes <string>, and should make one whole number`
	_, _ = guard.Func(text, pay)
	seconds := guard.Must(guard.New(l, name, guard.Key("#{req.ID}"), guard.LeaseFrom("#{req.Slots}"))) // want `lease: keyexpr: makes <int>, and should make one time.Duration`
	_, _ = guard.Func(seconds, pay)
	levels := guard.Must(guard.New(l, name, guard.Key("#{req.ID}"), guard.Limit(1), guard.Level(20, "all"), guard.LevelFrom("#{req.Slots}", "t:#{req.Tenant}")))
	_, _ = guard.Func(levels, pay)
	level := guard.Must(guard.New(l, name, guard.Key("#{req.ID}"), guard.Limit(1), guard.Level(20, "t:#{req.Tenat}"))) // want `levels: keyexpr: unknown field Tenat of Order`
	_, _ = guard.Func(level, pay)
	rate := guard.Must(guard.New(l, name, guard.Key("#{req.ID}"), guard.Rate(10, time.Minute), guard.Burst(1), guard.Lease(time.Second)))
	_, _ = guard.Func(rate, pay)                                                                   // want `rate without limit holds nothing`
	slip := guard.Must(guard.New(l, name, guard.Key("#{req.ID}"), guard.LimitFrom("#{req.Slot}"))) // want `limit: keyexpr: unknown field Slot of Order, did you mean Slots\?`
	_, _ = guard.Func(slip, pay)

	stack := guard.Must(guard.Stack(waits, guard.Must(guard.New(l, guard.Name("b"), guard.Key("#{req.IDD}"))))) // want `guard "b": key: keyexpr: unknown field IDD of Order`
	_, _ = guard.Func(stack, pay)
	_, _ = guard.Stack(waits, waits) // want `guard "order.pay": twice in a Stack`

	_, _ = guard.Func[Order, string](settle, nil) // want `guard "order.settle": Func with a nil function`
	_, _ = guard.Func(nil, pay)                   // want `guard: Func with a nil guard`
	changed := guard.Must(guard.New(l, name, guard.Key("#{req.IDD}")))
	changed = g
	_, _ = guard.Func(changed, pay)
}

func generic[Req any](l lock.Locker) {
	g := guard.Must(guard.New(l, guard.Name("n"), guard.Key("#{req.Any}")))
	_, _ = guard.Action(g, func(context.Context, Req) error { return nil })
}
