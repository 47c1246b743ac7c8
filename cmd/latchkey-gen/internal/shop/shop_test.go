package shop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/cmd/latchkey-gen/internal/store"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// spy is a memlock that notes what it is asked for.
type spy struct {
	*memlock.Locker
	requests []lock.Request
}

func newSpy() *spy { return &spy{Locker: memlock.New()} }

func (s *spy) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	s.requests = append(s.requests, r)
	return s.Locker.Acquire(ctx, r)
}

// keys are those of the last call.
func (s *spy) keys() (keys []string) {
	for _, r := range s.requests {
		keys = append(keys, r.Key)
	}
	s.requests = nil
	return keys
}

// desk takes orders. It notes how it was called, and under which guard.
type desk struct{ calls []string }

// registered is what a guard that is switchable wants.
func registered() guard.Option { return guard.In(guard.Must(guard.NewRegistry())) }

var errDesk = errors.New("desk is closed")

func (d *desk) note(ctx context.Context, name string, args ...any) {
	if !guard.Held(ctx, name) {
		name = "unguarded " + name
	}
	d.calls = append(d.calls, name+fmt.Sprint(args...))
}

func (d *desk) Pay(ctx context.Context, id string, cents int64) (Receipt, error) {
	d.note(ctx, "Orders.Pay", id, " ", cents)
	return Receipt{7}, errDesk
}

func (d *desk) Refund(c context.Context, req RefundRequest) error {
	d.note(c, "Orders.Refund", req.OrderID)
	return errDesk
}

func (d *desk) Cancel(c context.Context, order *RefundRequest) (Receipt, bool, error) {
	d.note(c, "orders.cancel", order.OrderID)
	return Receipt{8}, true, errDesk
}

func (d *desk) Close(ctx context.Context) error { d.note(ctx, "Orders.Close"); return errDesk }

func (d *desk) Move(ctx context.Context, from, to string, how ...time.Duration) (int, int, error) {
	d.note(ctx, "Orders.Move", from, to, how)
	return 1, 2, errDesk
}

func (d *desk) Reserve(ctx context.Context, r *RefundRequest) (Receipt, error) {
	d.note(ctx, "Orders.Reserve", len(r.Lines))
	return Receipt{9}, errDesk
}

func (d *desk) Mark(ctx context.Context, r store.Place, err string, guard, lock int) (int, int, error) {
	d.note(ctx, "Orders.Mark", r.City, err, guard, lock)
	return guard, lock, errDesk
}

func (d *desk) List(ctx context.Context, since time.Time, _ int, g ...string) ([]Receipt, error) {
	d.note(ctx, "List", since.IsZero(), g)
	return []Receipt{{1}}, errDesk
}

func (d *desk) Forget()                          { d.calls = nil }
func (d *desk) WriteTo(io.Writer) (int64, error) { return 3, errDesk }
func (d *desk) Peek() bool                       { return true }

func (d *desk) Read(ctx context.Context, p store.Place) (int, error) {
	d.note(ctx, "Orders.Read", p.Zone)
	return 4, errDesk
}

func (d *desk) Archive(ctx context.Context, ids ...uint16) error {
	d.note(ctx, "Orders.Archive", ids)
	return errDesk
}

// Every method passes its arguments on and its results back, under its guard if it has one.
func TestMethodsPassOn(t *testing.T) {
	l, d := newSpy(), &desk{}
	o, err := GuardOrders(l, d, guard.MaxHold(time.Hour), registered())
	if err != nil {
		t.Fatal(err)
	}
	var orders Orders = o
	ctx := t.Context()
	req := RefundRequest{Tenant: "acme", OrderID: "ID7", Seq: 3, Customer: &Customer{Parent: &Customer{Name: "p"}}, audit: audit{"me"},
		Place: &store.Place{Zone: "z"}, Lines: []Line{{"b"}, {"a"}}}
	list := func(results ...any) []any { return results }
	for _, tt := range []struct {
		got  []any
		want []any // without the error
		call string
		keys string
	}{
		{list(orders.Pay(ctx, "7", 5)), list(Receipt{7}), "Orders.Pay7 5", "order:7"},
		{list(orders.Refund(ctx, req)), nil, "Orders.RefundID7", "refund:acme:id7-3/p/me"},
		{list(orders.Cancel(ctx, &req)), list(Receipt{8}, true), "orders.cancelID7", "order:ID7"},
		{list(orders.Close(ctx)), nil, "Orders.Close", "nightly-close"},
		{list(orders.Move(ctx, "b", "a", time.Second, 2)), list(1, 2), "Orders.Moveba[1s 2ns]", "a b"},
		{list(orders.Move(ctx, "b", "b")), list(1, 2), "Orders.Movebb[]", "b"},
		{list(orders.Move(ctx, "b", "a", 1, 2, 3)), list(1, 2), "unguarded Orders.Moveba[1ns 2ns 3ns]", ""},
		{list(orders.Reserve(ctx, &req)), list(Receipt{9}), "Orders.Reserve2", "stock:a:z stock:b:z"},
		{list(orders.Mark(ctx, store.Place{City: "x:y"}, "e", 5, 6)), list(5, 6), "Orders.Markx:ye5 6", "mark:x%3Ay:e"},
		{list(orders.List(ctx, time.Time{}, 3, "a", "b")), list([]Receipt{{1}}), "unguarded Listtrue [a b]", ""},
		{list(orders.WriteTo(nil)), list(int64(3)), "", ""},
		{list(orders.Read(ctx, store.Place{Zone: "z"})), list(4), "Orders.Readz", "store:z-0"},
		{list(orders.Archive(ctx, 2, 1)), nil, "Orders.Archive[2 1]", "archive:1 archive:2"},
	} {
		if want := append(tt.want, errDesk); !reflect.DeepEqual(tt.got, want) {
			t.Errorf("%s: %v, want %v", tt.call, tt.got, want)
		}
		if tt.call != "" && !slices.Contains(d.calls, tt.call) {
			t.Errorf("calls %q, want %q among them", d.calls, tt.call)
		}
		for key := range strings.FieldsSeq(tt.keys) {
			if len(l.requests) == 0 || l.requests[0].Key != key || l.requests[0].MaxHold != time.Hour {
				t.Fatalf("%s: requests %+v, want %s first", tt.call, l.requests, key)
			}
			l.requests = l.requests[1:]
		}
	}
	if len(l.requests) > 0 {
		t.Errorf("more requests: %+v", l.requests)
	}
	if orders.Forget(); len(d.calls) > 0 || !orders.Peek() {
		t.Error("Forget or Peek was not passed on")
	}
	if _, err := orders.Pay(ctx, "", 5); !errors.Is(err, guard.ErrKey) || len(d.calls) > 0 {
		t.Errorf("Pay without an id: %v, calls %v", err, d.calls)
	}
}

func TestSpecsAreThoseOfTheDirectives(t *testing.T) {
	l := newSpy()
	reg := guard.Must(guard.NewRegistry())
	if _, err := GuardOrders(l, &desk{}, guard.In(reg), guard.Wait(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := guardReset(l, guard.In(reg)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for info := range reg.All() {
		got = append(got, fmt.Sprint(info.Spec))
	}
	want := []string{
		"archive:#{ids}; name=Orders.Archive; wait=1m",
		"nightly-close; name=Orders.Close; wait=1m; busy=skip; switchable",
		"mark:#{r.City}:#{err}; name=Orders.Mark; wait=1m",
		"#{[from, to]}; name=Orders.Move; when=len(how) < 3; wait=1m",
		"order:#{id}; name=Orders.Pay; kind=fair; wait=5s; lease=30s",
		"store:#{p.Zone}-#{p.Box}; name=Orders.Read; kind=read; wait=1m",
		"refund:#{req.Tenant}:#{lower(req.order_id)}-#{req.Seq}/#{req.Customer?.Parent.Name}/#{req.By}; name=Orders.Refund; when=req.Seq > 0; wait=1m",
		"stock:#{map(req.Lines, .SKU)}:#{req.Zone}; name=Orders.Reserve; wait=1m",
		"order:#{order.OrderID}; name=orders.cancel; wait=1m",
		"tagged:#{req.ID}; name=reset; wait=2s",
	}
	if !slices.Equal(got, want) {
		t.Errorf("specs %q, want %q", got, want)
	}
}

func TestConstructorsRefuse(t *testing.T) {
	l := memlock.New()
	o, err := GuardOrders(l, &desk{}, registered())
	if err != nil {
		t.Fatal(err)
	}
	for want, construct := range map[string]func() error{
		"GuardOrders: next is nil":                      func() error { _, err := GuardOrders(l, nil); return err },
		"GuardOrders: next is guarded already":          func() error { _, err := GuardOrders(l, o); return err },
		"guard without a name: nil locker":              func() error { _, err := GuardOrders(nil, &desk{}); return err },
		"switchable, but in no registry: give guard.In": func() error { _, err := GuardOrders(l, &desk{}); return err },
		"policy fallback without a fallback":            func() error { _, err := GuardNightly(l); return err },
		"k is a struct, shop.Line":                      func() error { _, err := GuardCache[Line, store.Name](l, nopCache[Line]{}); return err },
	} {
		if err := construct(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// nopCache is a Cache that does nothing.
type nopCache[K comparable] struct{}

func (nopCache[K]) Put(_ context.Context, _ K, v store.Name) (store.Name, error) { return v, errDesk }
func (nopCache[K]) Drop(context.Context, store.Place) error                      { return errDesk }
func (nopCache[K]) Get(K) (store.Name, bool)                                     { return "got", true }
func (nopCache[K]) Load(context.Context, string, *store.Name) error              { return errDesk }

func TestGenerics(t *testing.T) {
	l := newSpy()
	c, err := GuardCache(l, nopCache[Tenant]{})
	if err != nil {
		t.Fatal(err)
	}
	old, errPut := c.Put(t.Context(), "acme", "v")
	errDrop, errLoad := c.Drop(t.Context(), store.Place{City: "c"}), c.Load(t.Context(), "n", nil)
	if got, ok := c.Get("acme"); old != "v" || got != "got" || !ok || errPut != errDesk || errDrop != errDesk || errLoad != errDesk {
		t.Errorf("%v, %v, %v, %v, %v", old, got, errPut, errDrop, errLoad)
	}
	swap, err := GuardSwap[Tenant, []Tenant](l)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := swap(t.Context(), "b", "a", nil); got != "a" || err != nil {
		t.Errorf("swap = %q, %v", got, err)
	}
	if got := l.keys(); !slices.Equal(got, []string{"cache:acme", "place:c", "load:n", "a", "b"}) {
		t.Errorf("keys %q", got)
	}
}

func TestFunctions(t *testing.T) {
	l := newSpy()
	settle, errSettle := GuardSettle(l)
	reset, errReset := guardReset(l)
	fell := false
	nightly, errNightly := GuardNightly(l, guard.Fallback(func(context.Context, error) error { fell = true; return nil }))
	count, errCount := GuardCount(l)
	both, errBoth := GuardBoth(l)
	if err := errors.Join(errSettle, errReset, errNightly, errCount, errBoth); err != nil {
		t.Fatal(err)
	}
	if sum, err := settle(t.Context(), "7", "acme", 1, 2, 3); sum != 6 || err != nil {
		t.Errorf("settle = %d, %v", sum, err)
	}
	if _, err := settle(t.Context(), "7", "acme"); !errors.Is(err, guard.ErrBusy) { // hold=1m
		t.Errorf("settle = %v, want ErrBusy", err)
	}
	if err := reset(t.Context(), Tagged{ID: 5}); err != nil {
		t.Error(err)
	}
	if n, err := count(t.Context(), -5); n != -5 || err != nil {
		t.Errorf("count = %d, %v", n, err)
	}
	if _, _, err := both(t.Context()); err != nil {
		t.Error(err)
	}
	hold, err := l.Locker.Acquire(t.Context(), lock.Request{Key: "nightly"})
	if err != nil {
		t.Fatal(err)
	}
	if err := nightly(t.Context()); err != nil || !fell {
		t.Errorf("nightly while busy: %v, fell %v", err, fell)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"order:7:acme", "order:7:acme", "tagged:5", "count:-5", "both", "nightly"}
	if got := l.keys(); !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
}

func TestPointersWithin(t *testing.T) {
	l := newSpy()
	notify, err := GuardNotify(l)
	if err != nil {
		t.Fatal(err)
	}
	if name, err := notify(t.Context(), &RefundRequest{Customer: &Customer{Name: "a:b"}}); name != "a:b" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
	for _, order := range []*RefundRequest{nil, {}, {Customer: &Customer{}}} {
		if _, err := notify(t.Context(), order); !errors.Is(err, guard.ErrKey) {
			t.Errorf("%+v: %v, want ErrKey", order, err)
		}
	}
	if got, want := l.keys(), []string{"notify:a:b"}; !slices.Equal(got, want) {
		t.Errorf("locked %q, want %q", got, want)
	}
}
