package vet_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/keyexpr/spel"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// Tenant and Order are also in the source that is generated.
type (
	Tenant string
	Order  struct {
		ID     string `json:"order_id"`
		Tenant Tenant
		Level  *int
		Price  float64
		Lines  []struct {
			SKU string
			Qty int
		}
		Parent *Order
		At     time.Time
		note   string
	}
)

func (Tenant) Upper() Tenant     { return "" }
func (o *Order) GetNote() string { return o.note }

// randomSource is the beginning of the generated package, whose name is that of this one.
const randomSource = `package vet_test

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/keyexpr/spel"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

type (
	Tenant string
	Order  struct {
		ID     string ` + "`json:\"order_id\"`" + `
		Tenant Tenant
		Level  *int
		Price  float64
		Lines  []struct {
			SKU string
			Qty int
		}
		Parent *Order
		At     time.Time
		note   string
	}
)

func (Tenant) Upper() Tenant     { return "" }
func (o *Order) GetNote() string { return o.note }

var _ = spel.Expression
var _ lock.Request

func work(context.Context, Order) error { return nil }

func workOf(context.Context, *Order) error { return nil }

func job(context.Context) error { return nil }
`

// choice is an option, and how it is written.
type choice struct {
	written string
	option  guard.Option
}

// choices are options that are right, or wrong by themselves or beside others.
func choices(g *rand.Rand) []choice {
	template, condition, java := randomTemplate(g), randomCondition(g), "'o:' + #order."+pick(g, "id", "tenant", "lines.![sku]", "price", "parent.parent.id", "nothing")
	return []choice{
		{fmt.Sprintf("guard.Key(%q)", template), guard.Key(template)},
		{fmt.Sprintf("guard.Key(%q)", template), guard.Key(template)},
		{fmt.Sprintf("guard.When(%q)", condition), guard.When(condition)},
		{fmt.Sprintf("guard.KeyFrom(spel.Expression(%q, spel.Params(\"order\")))", java), guard.KeyFrom(spel.Expression(java, spel.Params("order")))},
		{`guard.Name("order.pay")`, guard.Name("order.pay")}, {`guard.Name(" x")`, guard.Name(" x")},
		{"guard.Wait(2*time.Second)", guard.Wait(2 * time.Second)}, {"guard.Wait(3)", guard.Wait(3)}, {"guard.Wait(guard.Forever)", guard.Wait(guard.Forever)},
		{"guard.Lease(time.Minute)", guard.Lease(time.Minute)}, {"guard.MaxHold(time.Second)", guard.MaxHold(time.Second)},
		{"guard.HoldAtLeast(-time.Second)", guard.HoldAtLeast(-time.Second)}, {"guard.Limit(2)", guard.Limit(2)}, {"guard.Waiters(3)", guard.Waiters(3)},
		{"guard.Fair()", guard.Fair()}, {"guard.Kind(lock.Permit)", guard.Kind(lock.Permit)}, {"guard.Busy(guard.Replace)", guard.Busy(guard.Replace)},
		{"guard.Busy(guard.RunFallback)", guard.Busy(guard.RunFallback)}, {"guard.Outage(9)", guard.Outage(9)}, {"guard.OneKey()", guard.OneKey()},
		{`guard.Methods("POST")`, guard.Methods("POST")}, {`guard.Args("from", "to")`, guard.Args("from", "to")}, {"guard.Switchable()", guard.Switchable()},
		{"guard.FromSpec(guard.Spec{Wait: time.Second, Busy: guard.Skip})", guard.FromSpec(guard.Spec{Wait: time.Second, Busy: guard.Skip})}, {"nil", nil},
	}
}

func pick(g *rand.Rand, list ...string) string { return list[g.IntN(len(list))] }

func randomTemplate(g *rand.Rand) string {
	var b strings.Builder
	for range 1 + g.IntN(3) {
		b.WriteString(pick(g, "order:", ":", "", "${req.ID}", "{{.ID}}", "{req.ID}:", "#", "; wait=2s"))
		if g.IntN(5) > 0 {
			b.WriteString("#{" + randomExpr(g, 2) + pick(g, "}", "}", "}", "}", ""))
		}
	}
	return b.String()
}

func randomExpr(g *rand.Rand, depth int) string {
	if depth == 0 {
		return pick(g, "req.ID", "req.order_id", "req.Tenant", "req.Level", "req.Price", "req.Parent.ID", "req.Parent?.Tenant", "req.At", "req.note", "req.Note()", "req.Idd",
			"req.Tenant.Upper()", "req.Lines[0].SKU", "'x'", "7", "req", "rec.ID", "nil")
	}
	x := func() string { return randomExpr(g, depth-1) }
	switch g.IntN(9) {
	case 0:
		return "lower(" + x() + ")"
	case 1:
		return x() + " + ':' + " + x()
	case 2:
		return "map(req.Lines, " + pick(g, ".SKU", ".Qty", "#", ".Sku", "req.Tenant", x()) + ")"
	case 3:
		return x() + " ?? " + x()
	case 4:
		return pick(g, "hash", "lowr", "string", "len", "now", "raw") + "(" + x() + ")"
	case 5:
		return "join(map(req.Lines, " + pick(g, ".SKU", "req.Tenant", ".Qty") + "), ',')"
	}
	return x()
}

func randomCondition(g *rand.Rand) string {
	return randomExpr(g, 1) + pick(g, " == ", " > ", " && ", " = ", " in ", " startsWith ") + randomExpr(g, 1)
}

// TestRandomDeclarations holds the analyser to what the program says to declarations that nobody thought of.
func TestRandomDeclarations(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	entries := []struct {
		written string
		request reflect.Type
	}{{"Action(g, work)", reflect.TypeFor[Order]()}, {"Action(g, workOf)", reflect.TypeFor[*Order]()}, {"Job(g, job)", nil}}
	var b strings.Builder
	b.WriteString(randomSource)
	var want []string
	for i := range 600 {
		entry := entries[g.IntN(len(entries))]
		list := choices(g)
		g.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		list = list[:1+g.IntN(4)]
		if i%2 == 0 { // more of them start
			template := "order:#{" + randomExpr(g, i/2%3) + "}"
			list = []choice{{fmt.Sprintf("guard.Key(%q)", template), guard.Key(template)}, {`guard.Name("n")`, guard.Name("n")}}
		}
		var opts []guard.Option
		fmt.Fprintf(&b, "\nfunc f%d() {\n\tg, err := guard.New(memlock.New()", i)
		for _, c := range list {
			opts = append(opts, c.option)
			b.WriteString(", " + c.written)
		}
		fmt.Fprintf(&b, ")\n\tif err == nil {\n\t\t_, _ = guard.%s\n\t}\n}\n", entry.written)
		made, err := guard.New(memlock.New(), opts...)
		if err == nil {
			err = adapter.CheckRequest(made, entry.request) // as package guard's tests hold it to Func and the like
		}
		want = append(want, lines(err))
	}
	got := make([][]string, len(want))
	pkg := generated(t, "random", b.String())
	for _, d := range diagnostics(t, pkg, "latchkeydecl") {
		for i := range want {
			if f := pkg.Types.Scope().Lookup(fmt.Sprintf("f%d", i)); f.Pos() < d.Pos {
				if next := pkg.Types.Scope().Lookup(fmt.Sprintf("f%d", i+1)); next == nil || next.Pos() > d.Pos {
					got[i] = append(got[i], d.Message)
				}
			}
		}
	}
	started := 0
	for i, want := range want {
		slices.Sort(got[i])
		if got := strings.Join(got[i], "\n"); got != want {
			t.Errorf("f%d:\n%s\nthe analyser says\n%s\nand the program\n%s", i, b.String()[strings.Index(b.String(), fmt.Sprintf("func f%d(", i)):][:300], got, want)
		}
		if want == "" {
			started++
		}
	}
	if started < 30 || started > 500 {
		t.Errorf("%d of %d declarations start", started, len(want))
	}
}

// lines are those of an error, in order.
func lines(err error) string {
	if err == nil {
		return ""
	}
	list := strings.Split(err.Error(), "\n")
	slices.Sort(list)
	return strings.Join(slices.Compact(list), "\n")
}
