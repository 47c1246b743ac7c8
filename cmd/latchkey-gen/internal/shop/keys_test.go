package shop

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/cmd/latchkey-gen/internal/store"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// random makes arguments of calls.
type random struct{ *rand.Rand }

var texts = []string{
	"42", "acme", "ACME", "a:b", "a/b", "%", "%3A", "{x}", "a b", "\n", "\x00", "é→", "\xff", "-", "7", "::", "", strings.Repeat("x", 500), strings.Repeat("/", 300),
}

func (r random) text() string { return texts[r.IntN(len(texts))] }

// rarely is true for one of five calls.
func (r random) rarely() bool { return r.IntN(5) == 0 }

func (r random) request() RefundRequest {
	q := RefundRequest{Tenant: Tenant(r.text()), OrderID: r.text(), Seq: 1 + r.Uint32()/2, audit: audit{r.text()}, Lines: []Line{{r.text()}, {r.text()}}}
	if !r.rarely() {
		q.Customer = &Customer{}
		if !r.rarely() {
			q.Customer.Parent = &Customer{Name: r.text()}
		}
	}
	if !r.rarely() {
		q.Place = &store.Place{Zone: r.text()}
	}
	return q
}

// Facts are the arguments of a call by their names.
type facts = map[string]any

// keyed is a method, its directive and the types of its arguments. Its call has arguments that are random, and returns them.
type keyed struct {
	name, key string
	roots     keyexpr.Roots
	call      func(ctx context.Context, r random) (facts, error)
}

// keyedMethods are all methods whose keys are made of their arguments, over l.
func keyedMethods(t *testing.T, l *spy) []keyed {
	t.Helper()
	o, err1 := GuardOrders(l, &desk{}, registered())
	settle, err2 := GuardSettle(l)
	count, err3 := GuardCount(l)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	str, tenant, number := keyexpr.TypeFor[string](), keyexpr.TypeFor[Tenant](), keyexpr.TypeFor[int]()
	req, pointer, place := keyexpr.TypeFor[RefundRequest](), keyexpr.TypeFor[*RefundRequest](), keyexpr.TypeFor[store.Place]()
	return []keyed{
		{"Pay", "order:#{id}", keyexpr.Roots{"id": str}, func(ctx context.Context, r random) (facts, error) {
			id := r.text()
			_, err := o.Pay(ctx, id, 5)
			return facts{"id": id}, err
		}},
		{"Refund", "refund:#{req.Tenant}:#{lower(req.order_id)}-#{req.Seq}/#{req.Customer?.Parent.Name}/#{req.By}", keyexpr.Roots{"req": req},
			func(ctx context.Context, r random) (facts, error) {
				q := r.request()
				return facts{"req": q}, o.Refund(ctx, q)
			}},
		{"Cancel", "order:#{order.OrderID}", keyexpr.Roots{"order": pointer}, func(ctx context.Context, r random) (facts, error) {
			q := r.request()
			order := &q
			if r.rarely() {
				order = nil
			}
			_, _, err := o.Cancel(ctx, order)
			return facts{"order": order}, err
		}},
		{"Move", "#{[from, to]}", keyexpr.Roots{"from": str, "to": str}, func(ctx context.Context, r random) (facts, error) {
			from, to := r.text(), r.text()
			_, _, err := o.Move(ctx, from, to)
			return facts{"from": from, "to": to}, err
		}},
		{"Reserve", "stock:#{map(req.Lines, .SKU)}:#{req.Zone}", keyexpr.Roots{"req": pointer}, func(ctx context.Context, r random) (facts, error) {
			q := r.request()
			_, err := o.Reserve(ctx, &q)
			return facts{"req": &q}, err
		}},
		{"Mark", "mark:#{r.City}:#{err}", keyexpr.Roots{"r": place, "err": str}, func(ctx context.Context, r random) (facts, error) {
			p, text := store.Place{City: r.text()}, r.text()
			_, _, err := o.Mark(ctx, p, text, 1, 2)
			return facts{"r": p, "err": text}, err
		}},
		{"Read", "store:#{p.Zone}-#{p.Box}", keyexpr.Roots{"p": place}, func(ctx context.Context, r random) (facts, error) {
			p := store.Place{Zone: r.text()}
			_, err := o.Read(ctx, p)
			return facts{"p": p}, err
		}},
		{"Settle", "order:#{id}:#{call}", keyexpr.Roots{"id": str, "call": tenant}, func(ctx context.Context, r random) (facts, error) {
			id, call := r.text(), Tenant(r.text())
			_, err := settle(ctx, id, call)
			return facts{"id": id, "call": call}, err
		}},
		{"Count", "count:#{n}", keyexpr.Roots{"n": number}, func(ctx context.Context, r random) (facts, error) {
			n := r.Int() - r.Int()
			_, err := count(ctx, n)
			return facts{"n": n}, err
		}},
	}
}

// TestKeysAreThoseOfTheTemplate makes keys of random values by generated code and by the template alone: they are the same, byte
// by byte, and so is what is wrong where there is none.
func TestKeysAreThoseOfTheTemplate(t *testing.T) {
	l := newSpy()
	r := random{rand.New(rand.NewPCG(1, 4))}
	for _, m := range keyedMethods(t, l) {
		template, err := keyexpr.Parse(m.key, m.roots)
		if err != nil {
			t.Fatal(err)
		}
		made := 0
		for range 1000 {
			args, err := m.call(t.Context(), r)
			want, wrong := template.Expand(t.Context(), func(root string) (any, error) { return args[root], nil })
			if got := l.keys(); !slices.Equal(got, want) {
				t.Fatalf("%s of %+v: keys %q, want %q", m.name, args, got, want)
			}
			if wrong == nil {
				made++
				continue
			}
			failure, _ := errors.AsType[*guard.Error](err)
			if failure == nil || failure.Cause.Error() != wrong.Error() {
				t.Fatalf("%s of %+v: %v, want %v", m.name, args, err, wrong)
			}
		}
		if made < 200 {
			t.Errorf("%s: %d keys of 1000", m.name, made)
		}
	}
}

// TestGeneratedKeysAreQuick counts the allocations of calls whose keys are made by generated code: the call, its lock and its key.
func TestGeneratedKeysAreQuick(t *testing.T) {
	count, err := GuardCount(memlock.New())
	if err != nil {
		t.Fatal(err)
	}
	got := testing.AllocsPerRun(100, func() {
		if _, err := count(t.Context(), 7); err != nil {
			t.Error(err)
		}
	})
	if got > 3 {
		t.Errorf("%v allocations a call, want 3", got)
	}
}
