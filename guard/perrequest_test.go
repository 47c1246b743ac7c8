package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/keyexpr/spel"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// Report is a request that has a limit and a lease of its own.
type Report struct {
	Customer string
	Slots    int
	Timeout  time.Duration
	Any      any
	Maybe    *uint8
	Later    *time.Duration
	IDs      []int
	Times    []time.Duration
	Name     string
	Share    float64
	Free     bool
}

var (
	slots   = guard.LimitFrom("#{req.Slots}")
	timeout = guard.LeaseFrom("#{req.Timeout}")
)

// reporting puts a guard named "report", whose key is the customer, in front of fn.
func reporting(t *testing.T, l lock.Locker, fn func(context.Context, Report) (string, error), opts ...guard.Option) func(context.Context, Report) (string, error) {
	t.Helper()
	g, err := guard.New(l, append([]guard.Option{guard.Name("report"), guard.Key("report:#{req.Customer}")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	f, err := guard.Func(g, fn)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func reported(context.Context, Report) (string, error) { return "reported", nil }

// asked returns what the calls of a spy have asked for.
func (s *spy) asked() []lock.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// A limit that goes up lets the next call in at once, and one that goes down keeps it out until fewer are inside, whom it leaves alone.
func TestLimitOfEachRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := reporting(t, memlock.New(), func(ctx context.Context, r Report) (string, error) {
			time.Sleep(r.Timeout)
			return "", ctx.Err()
		}, slots)
		var calls sync.WaitGroup
		call := func(slots int, takes time.Duration, want error) {
			calls.Go(func() {
				if _, err := report(t.Context(), Report{Customer: "a", Slots: slots, Timeout: takes}); !errors.Is(err, want) {
					t.Errorf("with %d slots: %v, want %v", slots, err, want)
				}
			})
			synctest.Wait()
		}
		call(1, time.Hour, nil)
		call(1, 0, guard.ErrBusy)
		call(3, time.Minute, nil)
		call(3, time.Minute, nil)
		call(3, 0, guard.ErrBusy)
		call(2, 0, guard.ErrBusy)
		call(10_000, 0, nil)
		time.Sleep(2 * time.Minute)
		call(1, 0, guard.ErrBusy)
		call(2, 0, nil)
		calls.Wait()
	})
}

// The locker is asked for what the request says, and for what is declared besides.
func TestLimitAndLeaseAreAskedFor(t *testing.T) {
	second, some, later := time.Second, uint8(200), 90*time.Minute
	for _, tt := range []struct {
		opts  []guard.Option
		r     Report
		limit int
		lease time.Duration
	}{
		{[]guard.Option{slots}, Report{Slots: 1}, 1, 0},
		{[]guard.Option{slots, guard.Lease(second)}, Report{Slots: 10_000}, 10_000, second},
		{[]guard.Option{guard.LimitFrom("#{ req.Maybe }")}, Report{Maybe: &some}, 200, 0},
		{[]guard.Option{guard.LimitFrom("#{req.Maybe ?? 4}")}, Report{}, 4, 0},
		{[]guard.Option{guard.LimitFrom("#{req.Free ? req.Slots : 2}")}, Report{Free: true, Slots: 7}, 7, 0},
		{[]guard.Option{guard.LimitFrom("#{req.Free ? req.Slots : 2}")}, Report{Slots: 7}, 2, 0},
		{[]guard.Option{guard.LimitFrom("#{len(req.IDs)}")}, Report{IDs: []int{4, 5}}, 2, 0},
		{[]guard.Option{guard.LimitFrom("#{req.Any}")}, Report{Any: json.Number("12")}, 12, 0},
		{[]guard.Option{guard.LimitFrom("#{req.Any}")}, Report{Any: "12"}, 12, 0},
		{[]guard.Option{guard.LimitFrom("#{req.Any.slots}")}, Report{Any: map[string]any{"slots": uint64(3)}}, 3, 0},
		{[]guard.Option{timeout}, Report{Timeout: time.Millisecond}, 0, time.Millisecond},
		{[]guard.Option{timeout, guard.Limit(20_000)}, Report{Timeout: 1234567 * time.Microsecond}, 20_000, 1234567 * time.Microsecond},
		{[]guard.Option{guard.LeaseFrom("#{req.Later}")}, Report{Later: &later}, 0, later},
		{[]guard.Option{guard.LeaseFrom("#{req.Later ?? req.Timeout}")}, Report{Timeout: second}, 0, second},
		{[]guard.Option{guard.LeaseFrom("#{req.Any}")}, Report{Any: "1h30m"}, 0, later},
		{[]guard.Option{guard.LeaseFrom("#{req.Any}")}, Report{Any: second}, 0, second},
		{[]guard.Option{slots, timeout}, Report{Slots: 5, Timeout: later}, 5, later},
		{[]guard.Option{guard.LimitFrom("#{slots(req.Name)}"), guard.TemplateFunc("slots", func(name string) int { return len(name) })}, Report{Name: "abc"}, 3, 0},
		{[]guard.Option{guard.LimitFrom("#{slots()}"), guard.TemplateFunc("slots", func() int { return 9 })}, Report{}, 9, 0},
	} {
		synctest.Test(t, func(t *testing.T) { // or the shortest of leases could be over too soon
			l := newSpy()
			tt.r.Customer = "a"
			if _, err := reporting(t, l, reported, append(tt.opts, guard.Wait(second), guard.MaxHold(2*later))...)(t.Context(), tt.r); err != nil {
				t.Errorf("%+v: %v", tt.r, err)
				return
			}
			want := lock.Request{Key: "report:a", Wait: second, MaxHold: 2 * later, Limit: tt.limit, Lease: tt.lease}
			if tt.limit > 0 {
				want.Kind = lock.Permit
			}
			if got := l.asked(); !reflect.DeepEqual(got, []lock.Request{want}) {
				t.Errorf("%+v: asks for %+v, want %+v", tt.r, got, want)
			}
		})
	}
}

// A value that is none is the request's fault. The error has the name of the fact, and never its value.
func TestRequestWithoutLimitOrLease(t *testing.T) {
	const limit, lease = "whole number from 1 to 10,000", "time.Duration of at least 1ms"
	big := uint8(0)
	for _, tt := range []struct {
		opt  guard.Option
		r    Report
		want string
	}{
		{slots, Report{Slots: 0}, "limit: keyexpr: unusable value: req.Slots is no " + limit},
		{slots, Report{Slots: -3}, "limit: keyexpr: unusable value: req.Slots is no " + limit},
		{slots, Report{Slots: 10_001}, "limit: keyexpr: unusable value: req.Slots is no " + limit},
		{guard.LimitFrom("#{req.Maybe}"), Report{}, "limit: keyexpr: unusable value: req.Maybe is nil"},
		{guard.LimitFrom("#{req.Maybe}"), Report{Maybe: &big}, "req.Maybe is no " + limit},
		{guard.LimitFrom("#{req.Any}"), Report{}, "limit: keyexpr: unusable value: req.Any is nil"},
		{guard.LimitFrom("#{req.Any}"), Report{Any: json.Number("1.5")}, "limit: keyexpr: unusable value: req.Any is a number with many spellings"},
		{guard.LimitFrom("#{req.Any}"), Report{Any: 1.5}, "limit: keyexpr: unusable value: req.Any is a float"},
		{guard.LimitFrom("#{req.Any}"), Report{Any: "many-5519"}, "req.Any is no " + limit},
		{guard.LimitFrom("#{req.Any}"), Report{Any: true}, "req.Any is no " + limit},
		{guard.LimitFrom("#{req.Any}"), Report{Any: "99999999999999999999"}, "req.Any is no " + limit},
		{guard.LimitFrom("#{req.Any}"), Report{Any: []int{3}}, "limit: keyexpr: unusable value: req.Any is a list"},
		{timeout, Report{}, "lease: keyexpr: unusable value: req.Timeout is no " + lease},
		{timeout, Report{Timeout: -time.Second}, "lease: keyexpr: unusable value: req.Timeout is no " + lease},
		{timeout, Report{Timeout: 999 * time.Microsecond}, "req.Timeout is no " + lease},
		{timeout, Report{Timeout: guard.Forever}, "req.Timeout is no " + lease},
		{guard.LeaseFrom("#{req.Later}"), Report{}, "lease: keyexpr: unusable value: req.Later is nil"},
		{guard.LeaseFrom("#{req.Any}"), Report{Any: 5519}, "req.Any is no " + lease},
		{guard.LeaseFrom("#{req.Any}"), Report{Any: json.Number("30")}, "req.Any is no " + lease},
		{guard.LeaseFrom("#{req.Any}"), Report{Any: "forever"}, "req.Any is no " + lease},
	} {
		l, seen := newSpy(), new(events)
		tt.r.Customer = "a"
		report := reporting(t, l, func(context.Context, Report) (string, error) {
			t.Error("ran")
			return "", nil
		}, tt.opt, guard.Observe(seen.add), guard.Busy(guard.RunUnlocked), guard.Outage(guard.RunUnlocked))
		_, err := report(t.Context(), tt.r)
		e, ok := errors.AsType[*guard.Error](err)
		if !ok || e.Err != guard.ErrKey || !strings.HasPrefix(e.Fact, "req.") || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), `guard "report": l`) {
			t.Errorf("%+v: %v (%#v), want ErrKey with %q", tt.r, err, e, tt.want)
			continue
		}
		if !errors.Is(err, keyexpr.ErrValue) || strings.Contains(err.Error(), "5519") || strings.Contains(e.Fact, "5519") {
			t.Errorf("%+v: %v", tt.r, err)
		}
		if e := seen.only(t); e.Outcome != guard.OutcomeKey || e.Keys != 0 || len(l.asked()) != 0 {
			t.Errorf("%+v: event %+v, asked %v", tt.r, e, l.asked())
		}
	}
}

// What a function behind an expression says of the outage of a service, or of its own fault, is not the request's.
func TestExpressionFails(t *testing.T) {
	for _, tt := range []struct {
		err, want error
		outcome   string
	}{
		{fmt.Errorf("plans: %w", guard.ErrOutage), guard.ErrOutage, guard.OutcomeOutage},
		{errors.New("boom"), guard.ErrFault, guard.OutcomeFault},
		{fmt.Errorf("plans: %w", guard.ErrKey), guard.ErrKey, guard.OutcomeKey},
	} {
		seen := new(events)
		report := reporting(t, newSpy(), reported, guard.Observe(seen.add), guard.LimitFrom("#{slots(req.Customer)}"),
			guard.TemplateFunc("slots", func(string) (int, error) { return 1, tt.err }))
		_, err := report(t.Context(), Report{Customer: "a"})
		if e, ok := errors.AsType[*guard.Error](err); !ok || e.Err != tt.want || !errors.Is(err, tt.err) || e.Fact != "slots(req.Customer)" {
			t.Errorf("%v: %#v", tt.err, err)
		}
		if got := seen.only(t).Outcome; got != tt.outcome {
			t.Errorf("%v: outcome %s", tt.err, got)
		}
	}
	report := reporting(t, newSpy(), reported, guard.Outage(guard.RunUnlocked), guard.LimitFrom("#{slots(req.Customer)}"),
		guard.TemplateFunc("slots", func(string) (int, error) { return 0, guard.ErrOutage }))
	if got, err := report(t.Context(), Report{Customer: "a"}); got != "reported" || err != nil {
		t.Errorf("with run-unlocked: %q, %v", got, err)
	}
}

// TestExpressionMistakes is what a programmer hears at start of a limit or a lease that no request can have.
func TestExpressionMistakes(t *testing.T) {
	key, name := guard.Key("order:#{req.Customer}"), guard.Name("order.settle")
	for _, tt := range []mistake{
		{opts{guard.LimitFrom("")}, []string{"LimitFrom without a text"}},
		{opts{guard.LeaseFrom("")}, []string{"LeaseFrom without a text"}},
		{opts{guard.LimitFrom("3")}, []string{`limit "3": give one expression, as in #{req.X}`}},
		{opts{guard.LimitFrom("up to #{req.Slots}")}, []string{`limit "up to #{req.Slots}"`, "without text around it"}},
		{opts{guard.LeaseFrom("#{req.Timeout}s")}, []string{`lease "#{req.Timeout}s"`, "without text around it"}},
		{opts{guard.LimitFrom("##{req.Slots}")}, []string{`limit "##{req.Slots}"`}},
		{opts{guard.LimitFrom("#{req.Slots}0#{req.Slots}")}, []string{"limit: keyexpr: makes <int>0<int>"}},
		{opts{guard.LimitFrom("#{3}")}, []string{"limit: keyexpr: makes <int>, and should make one whole number from 1 to 10,000, out of the request"}},
		{opts{guard.LimitFrom(`#{"3"}`)}, []string{"limit: ", "out of the request"}},
		{opts{guard.LimitFrom("#{req.Slots")}, []string{"limit "}},
		{opts{guard.LimitFrom("#{req.Slots +}")}, []string{"limit: keyexpr: not an expression", "offset"}},
		{opts{guard.LimitFrom("#{req.Slot}")}, []string{"limit: keyexpr: unknown field Slot of Report, did you mean Slots? (at offset 6 "}},
		{opts{guard.LimitFrom("#{plan.Slots}")}, []string{"limit: keyexpr: ", "plan"}},
		{opts{guard.LimitFrom("#{req.IDs}")}, []string{"limit: keyexpr: makes", "one whole number"}},
		{opts{guard.LimitFrom("#{[req.Slots]}")}, []string{"limit: keyexpr: makes", "one whole number"}},
		{opts{guard.LimitFrom("#{req.Name}")}, []string{"limit: keyexpr: makes <string>"}},
		{opts{guard.LimitFrom("#{req.Free}")}, []string{"limit: keyexpr: makes <bool>"}},
		{opts{guard.LimitFrom("#{req.Share}")}, []string{"limit: keyexpr: req.Share is a float"}},
		{opts{guard.LimitFrom("#{req.Timeout}")}, []string{"limit: keyexpr: makes <time.Duration>"}},
		{opts{guard.LimitFrom("#{req}")}, []string{"limit: keyexpr: req is a struct"}},
		{opts{guard.LeaseFrom("#{req.Slots}")}, []string{"lease: keyexpr: makes <int>, and should make one time.Duration of at least 1ms"}},
		{opts{guard.LeaseFrom("#{req.Name}")}, []string{"lease: keyexpr: makes <string>"}},
		{opts{guard.LeaseFrom("#{req.Times}")}, []string{"lease: keyexpr: makes", "one time.Duration"}},
		{opts{guard.LeaseFrom(`#{30}`)}, []string{"lease: keyexpr: makes <int>"}},
		{opts{slots, guard.Limit(3)}, []string{`limit is given twice, as "#{req.Slots}" and as "3"`}},
		{opts{timeout, guard.Lease(time.Second)}, []string{`lease is given twice, as "#{req.Timeout}" and as "1s"`}},
		{opts{guard.FromSpec(guard.Spec{Limit: 3, LimitFrom: "#{req.Slots}"})}, []string{`limit "#{req.Slots}": give one expression`, "a value beside it"}},
		{opts{guard.FromSpec(guard.Spec{Lease: 3, LeaseFrom: "#{req.Timeout}"})}, []string{`lease "#{req.Timeout}": give one expression`, "a value beside it"}},
		{opts{slots, guard.Fair()}, []string{"limit #{req.Slots} belongs to kind permit, not to kind fair"}},
	} {
		g, err := guard.New(memlock.New(), append(tt.opts, name, key)...)
		if err == nil {
			_, err = guard.Func(g, reported)
		}
		if err == nil {
			t.Errorf("no error, want one with %q", tt.want)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q does not say %q", err, want)
			}
		}
		for line := range strings.Lines(err.Error()) {
			if !strings.HasPrefix(line, `guard "order.settle": `) {
				t.Errorf("error %q has a line that does not name the guard", err)
			}
		}
	}
	if err := (guard.Spec{LimitFrom: "#{", Kind: lock.Permit}).Validate(); err == nil {
		t.Error("Validate is happy with an expression that is none")
	}
}

// twoSlots is a request, and twoPermits what it asks for.
var (
	twoSlots   = Report{Customer: "a", Slots: 2, Timeout: time.Second}
	twoPermits = lock.Request{Key: "a", Kind: lock.Permit, Limit: 2, Lease: time.Second}
)

// expect checks what the last call has asked for.
func (s *spy) expect(t *testing.T, what string, err error, want ...lock.Request) {
	t.Helper()
	got := s.asked()
	s.requests = nil
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v, asked for %+v, want %+v", what, err, got, want)
	}
}

// An expression sees the facts that the key sees, wherever those come from.
func TestExpressionsInFrontOfAnything(t *testing.T) {
	type tagged struct {
		_    struct{} `guard:"; name=tagged; limit=#{req.slots ?? 1}; lease=#{req.For}"`
		ID   string   `guard:"key"`
		For  time.Duration
		Slot int
		More int `json:"slots"`
	}
	type api struct {
		Pay  func(context.Context, Report) error                     `guard:"#{req.Customer}; limit=#{req.Slots}; lease=#{req.Timeout}"`
		Move func(ctx context.Context, n int, d time.Duration) error `guard:"moves; one-key; limit=#{n}; lease=#{d}; args=n,d"`
		Many func(ctx context.Context, ids []string, r Report) error `guard:"#{ids}; lease=#{r.Timeout}; args=ids,r"`
	}
	l := newSpy()
	both := []guard.Option{guard.Name("n"), slots, timeout}
	newGuard := func(opts ...guard.Option) *guard.Guard { return guard.Must(guard.New(l, append(opts, both...)...)) }

	f := guard.Must(guard.Func(newGuard(guard.KeyFunc(func(r Report) (string, error) { return r.Customer, nil })), reported))
	_, err := f(t.Context(), twoSlots)
	l.expect(t, "KeyFunc", err, twoPermits)
	f = guard.Must(guard.Func(newGuard(guard.KeyFrom(spel.Expression("#r.customer", spel.Params("r")))), reported))
	_, err = f(t.Context(), twoSlots)
	l.expect(t, "KeyFrom", err, twoPermits)
	try := guard.Must(guard.Try(newGuard(guard.Key("#{req.Customer}")), reported))
	l.expect(t, "Try", try(t.Context(), twoSlots).Err, twoPermits)
	action := guard.Must(guard.Action(newGuard(guard.Key("#{req.Customer}"), guard.When("req.Slots > 0")), func(context.Context, Report) error { return nil }))
	l.expect(t, "Action", action(t.Context(), twoSlots), twoPermits)
	_, err = guard.Do(t.Context(), newGuard(guard.Key("#{req.Customer}")), twoSlots, func(context.Context) (int, error) { return 0, nil })
	l.expect(t, "Do", err, twoPermits)
	job := guard.Must(guard.Job(guard.Must(guard.New(l, guard.Name("n"), guard.Key("job"), guard.LimitFrom("#{slots()}"),
		guard.TemplateFunc("slots", func(context.Context) int { return 4 }))), func(context.Context) error { return nil }))
	l.expect(t, "Job", job(t.Context()), lock.Request{Key: "job", Kind: lock.Permit, Limit: 4})

	fn := guard.Must(guard.Action(guard.Must(guard.New(l)), func(context.Context, tagged) error { return nil }))
	l.expect(t, "request tag", fn(t.Context(), tagged{ID: "7", For: time.Minute, More: 5}),
		lock.Request{Key: "tagged:7", Kind: lock.Permit, Limit: 5, Lease: time.Minute})

	a := api{
		Pay:  func(context.Context, Report) error { return nil },
		Move: func(context.Context, int, time.Duration) error { return nil },
		Many: func(context.Context, []string, Report) error { return nil },
	}
	if err := guard.Bind(guard.Must(guard.New(l)), &a); err != nil {
		t.Fatal(err)
	}
	l.expect(t, "Bind", a.Pay(t.Context(), twoSlots), twoPermits)
	l.expect(t, "Bind of arguments", a.Move(t.Context(), 3, time.Hour), lock.Request{Key: "moves", Kind: lock.Permit, Limit: 3, Lease: time.Hour})
	l.expect(t, "Bind of a list", a.Many(t.Context(), []string{"y", "x"}, twoSlots),
		lock.Request{Key: "x", Lease: time.Second}, lock.Request{Key: "y", Lease: time.Second})
}

// An expression of an adapter sees the facts that the adapter has.
func TestExpressionsInFrontOfAdapters(t *testing.T) {
	l := newSpy()
	wrapped := func(context.Context, Report) (struct{}, error) { return struct{}{}, nil }
	var to func(context.Context, Report) (struct{}, error)
	if err := adapter.Wrap(l, nil, adapter.Directive[Report, struct{}]{
		Name: "Reports.Make", Text: "#{r.Customer}; limit=#{r.Slots}; lease=#{r.Timeout}", Of: func(context.Context, Report) error { return nil },
		Args: "r", Fact: func(req *Report, _ string) any { return *req }, Call: wrapped, To: &to,
	}); err != nil {
		t.Fatal(err)
	}
	_, err := to(t.Context(), twoSlots)
	l.expect(t, "Wrap", err, twoPermits)

	g := guard.Must(guard.New(l, guard.Key("#{path.id}"), guard.Name("n"), slots, timeout))
	runner := guard.Must(adapter.Prepare(g, keyexpr.Roots{"path": keyexpr.Names("id"), "req": keyexpr.TypeFor[Report]()}))
	_, err = runner.Run(t.Context(), func(root string) (any, error) {
		if root == "req" {
			return twoSlots, nil
		}
		return keyexpr.Lookup(func(string) (string, bool, error) { return "a", true, nil }), nil
	}, func(context.Context) error { return nil })
	l.expect(t, "Run", err, twoPermits)
}

// Nothing is evaluated of a request that needs no lock, and nothing twice of one that does.
func TestExpressionsAreLazy(t *testing.T) {
	reg, evaluated := newRegistry(t), 0
	report := reporting(t, newSpy(), reported, guard.In(reg), guard.Switchable(), guard.When("!req.Free"), guard.LimitFrom("#{slots(req.Slots)}"),
		guard.TemplateFunc("slots", func(n int) int { evaluated++; return n }))
	for _, tt := range []struct {
		mode guard.Mode
		r    Report
		err  error
		want int
	}{
		{guard.On, Report{Customer: "a", Free: true}, nil, 0},
		{guard.On, Report{Slots: 1}, guard.ErrKey, 0}, // has no key
		{guard.On, Report{Customer: "a", Slots: 1}, nil, 1},
		{guard.Off, Report{Customer: "a"}, nil, 0},
		{guard.Shadow, Report{Customer: "a"}, nil, 1},
	} {
		if err := reg.Switch("report", tt.mode); err != nil {
			t.Fatal(err)
		}
		evaluated = 0
		if _, err := report(t.Context(), tt.r); !errors.Is(err, tt.err) || evaluated != tt.want {
			t.Errorf("%v, %+v: %v, evaluated %d times, want %d", tt.mode, tt.r, err, evaluated, tt.want)
		}
	}
}

// In shadow mode, the shadow asks for what the guard would have.
func TestExpressionsInShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg, seen := newSpy(), newRegistry(t), new(events)
		report := reporting(t, l, func(context.Context, Report) (string, error) { time.Sleep(time.Second); return "", nil },
			guard.In(reg), guard.Switchable(), slots, timeout, guard.Observe(seen.add))
		if err := reg.Switch("report", guard.Shadow); err != nil {
			t.Fatal(err)
		}
		for _, slots := range []int{2, 0} {
			if _, err := report(t.Context(), Report{Customer: "a", Slots: slots, Timeout: time.Minute}); err != nil {
				t.Errorf("%d slots: %v", slots, err)
			}
			synctest.Wait()
		}
		want := lock.Request{Key: "latchkey-shadow:report:a", Kind: lock.Permit, Limit: 2, Lease: time.Minute}
		if got := l.asked(); !reflect.DeepEqual(got, []lock.Request{want}) {
			t.Errorf("asked for %+v, want %+v", got, want)
		}
		if refused := seen.all[1].Refused; seen.all[0].Refused != nil || !errors.Is(refused, guard.ErrKey) {
			t.Errorf("refused: %v, %v", seen.all[0].Refused, refused)
		}
	})
}

// A lease of the request's own ends the work, as a constant one does, and MaxHold bounds it.
func TestLeaseOfEachRequestEnds(t *testing.T) {
	for _, tt := range []struct {
		opts  []guard.Option
		lease time.Duration
		after time.Duration
		cause error
	}{
		{nil, time.Second, time.Second, lock.ErrLost},
		{nil, time.Minute, time.Minute, lock.ErrLost},
		{[]guard.Option{guard.MaxHold(10 * time.Second)}, time.Second, time.Second, lock.ErrLost},
		{[]guard.Option{guard.MaxHold(10 * time.Second)}, time.Minute, 10 * time.Second, lock.ErrMaxHold},
		{[]guard.Option{guard.HoldAtLeast(time.Hour)}, time.Second, time.Second, lock.ErrLost},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			report := reporting(t, memlock.New(), func(ctx context.Context, _ Report) (string, error) {
				<-ctx.Done()
				return "", context.Cause(ctx)
			}, append(tt.opts, timeout)...)
			_, err := report(t.Context(), Report{Customer: "a", Timeout: tt.lease})
			if took := time.Since(start); !errors.Is(err, guard.ErrLost) || !errors.Is(err, tt.cause) || took != tt.after {
				t.Errorf("lease %v: %v after %v, want %v after %v", tt.lease, err, took, tt.cause, tt.after)
			}
		})
	}
}

// A locker whose holds have no clock of their own goes by what the request says: work that is late has lost its lock.
func TestLeaseOfEachRequestIsJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bare := lockerFunc(func(ctx context.Context, r lock.Request) (lock.Hold, error) { return &bareHold{ctx}, nil })
		report := reporting(t, bare, func(context.Context, Report) (string, error) { time.Sleep(time.Minute); return "", nil }, timeout)
		for lease, want := range map[time.Duration]error{time.Second: guard.ErrLost, time.Hour: nil} {
			if _, err := report(t.Context(), Report{Customer: "a", Timeout: lease}); !errors.Is(err, want) {
				t.Errorf("lease %v: %v, want %v", lease, err, want)
			}
		}
	})
}

// bareHold is a hold without a clock.
type bareHold struct{ ctx context.Context }

func (h *bareHold) Context() context.Context      { return h.ctx }
func (h *bareHold) Release(context.Context) error { return nil }

// HoldAtLeast keeps what was had by a request's own limit and lease.
func TestLimitOfEachRequestIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := reporting(t, memlock.New(), reported, slots, timeout, guard.HoldAtLeast(time.Minute))
		for i, tt := range []struct {
			slots int
			want  error
		}{{1, nil}, {1, guard.ErrBusy}, {2, nil}, {2, guard.ErrBusy}} {
			if _, err := report(t.Context(), Report{Customer: "a", Slots: tt.slots, Timeout: time.Hour}); !errors.Is(err, tt.want) {
				t.Errorf("call %d: %v, want %v", i, err, tt.want)
			}
		}
		time.Sleep(time.Minute + time.Millisecond)
		if _, err := report(t.Context(), Report{Customer: "a", Slots: 1, Timeout: time.Hour}); err != nil {
			t.Errorf("after the hold: %v", err)
		}
	})
}

// A call under the work re-enters with a limit and a lease of its own.
func TestReentryWithAnotherLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var report func(context.Context, Report) (string, error)
		report = reporting(t, memlock.New(), func(ctx context.Context, r Report) (string, error) {
			if r.Name == "outer" {
				return report(ctx, Report{Customer: "a", Slots: 7, Timeout: time.Second})
			}
			left := remaining(ctx)
			return left.String(), nil
		}, slots, timeout)
		got, err := report(t.Context(), Report{Name: "outer", Customer: "a", Slots: 1, Timeout: time.Hour})
		if got != "1s" || err != nil {
			t.Errorf("inside = %q, %v", got, err)
		}
	})
}

// Without its lock, a call with an expression has the policies of any other.
func TestExpressionsWithPolicies(t *testing.T) {
	fallback := guard.Fallback(func(_ context.Context, r Report, err error) (string, error) { return "instead", err })
	for _, tt := range []struct {
		fault  error
		opts   []guard.Option
		result string
		err    error
	}{
		{lock.ErrBusy, nil, "", guard.ErrBusy},
		{lock.ErrBusy, []guard.Option{guard.Busy(guard.Skip)}, "", nil},
		{lock.ErrBusy, []guard.Option{guard.Busy(guard.RunUnlocked)}, "reported", nil},
		{lock.ErrBusy, []guard.Option{fallback}, "instead", guard.ErrBusy},
		{io.ErrUnexpectedEOF, nil, "", guard.ErrOutage},
		{io.ErrUnexpectedEOF, []guard.Option{guard.Outage(guard.Skip)}, "", nil},
		{io.ErrUnexpectedEOF, []guard.Option{guard.Outage(guard.RunUnlocked)}, "reported", nil},
		{io.ErrUnexpectedEOF, []guard.Option{fallback}, "instead", guard.ErrOutage},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newSpy()
			l.refuse = map[string]error{"report:a": tt.fault}
			report := reporting(t, l, reported, append(tt.opts, slots, timeout, guard.Wait(time.Second))...)
			got, err := report(t.Context(), Report{Customer: "a", Slots: 1, Timeout: time.Minute})
			if got != tt.result || !errors.Is(err, tt.err) {
				t.Errorf("%q, %v, want %q, %v", got, err, tt.result, tt.err)
			}
			if _, err := report(t.Context(), Report{Customer: "a"}); !errors.Is(err, guard.ErrKey) {
				t.Errorf("without a limit: %v", err)
			}
		})
	}
}

// Busy calls hear how long a holder's lease lasts; a lease that ends while another lock is waited for is contention.
func TestLeaseOfEachRequestAndBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memlock.New()
		hold := guard.Must(l.Acquire(t.Context(), lock.Request{Key: "b", Lease: time.Minute}))
		report := reporting(t, l, reported, guard.FromSpec(guard.Spec{Key: "#{[req.Customer, req.Name]}"}), timeout, guard.Wait(30*time.Second))
		r := Report{Customer: "a", Name: "b", Timeout: time.Second}
		if _, err := report(t.Context(), r); !errors.Is(err, guard.ErrBusy) || errors.Is(err, guard.ErrOutage) {
			t.Errorf("lost while waiting: %v, want ErrBusy", err)
		}
		r.Timeout = time.Hour
		_, err := report(t.Context(), r)
		if e, ok := errors.AsType[*guard.Error](err); !ok || e.Err != guard.ErrBusy || e.RetryAfter < 20*time.Second || e.RetryAfter > 30*time.Second {
			t.Errorf("%#v, want to come back when the lease is over", err)
		}
		_ = hold.Release(t.Context())
	})
}

// The newest call wins, with the lease that it asks for.
func TestLeaseOfEachRequestAndReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memlock.New()
		report := reporting(t, l, func(ctx context.Context, r Report) (string, error) {
			select {
			case <-ctx.Done():
				return "", context.Cause(ctx)
			case <-time.After(r.Timeout / 2):
				return remaining(ctx).String(), nil
			}
		}, timeout, guard.Busy(guard.Replace))
		var older sync.WaitGroup
		older.Go(func() {
			if _, err := report(t.Context(), Report{Customer: "a", Timeout: time.Hour}); !errors.Is(err, guard.ErrReplaced) {
				t.Errorf("older: %v, want ErrReplaced", err)
			}
		})
		synctest.Wait()
		if got, err := report(t.Context(), Report{Customer: "a", Timeout: time.Minute}); got != "30s" || err != nil {
			t.Errorf("newer: %q, %v", got, err)
		}
		older.Wait()
	})
}

// Each guard of a Stack reads its own, also where the locker could take all locks at once.
func TestExpressionsInAStack(t *testing.T) {
	l := &reserving{spy: newSpy()}
	member := func(name, key string, opts ...guard.Option) *guard.Guard {
		return guard.Must(guard.New(l, append([]guard.Option{guard.Name(name), guard.Key(key)}, opts...)...))
	}
	for _, tt := range []struct {
		outer, inner []guard.Option
		reserves     int
	}{
		{nil, nil, 1},
		{[]guard.Option{slots}, nil, 1},
		{nil, []guard.Option{timeout}, 0},
		{[]guard.Option{slots, timeout}, []guard.Option{slots, timeout}, 0},
	} {
		l.reserved, l.requests = nil, nil
		f := guard.Must(guard.Func(guard.Must(guard.Stack(member("outer", "#{req.Customer}", tt.outer...), member("inner", "in:#{req.Customer}", tt.inner...))), reported))
		if _, err := f(t.Context(), Report{Customer: "a", Slots: 3, Timeout: time.Minute}); err != nil {
			t.Error(err)
		}
		want := []lock.Request{{Key: "a"}, {Key: "in:a"}}
		for i, opts := range [][]guard.Option{tt.outer, tt.inner} {
			if len(opts) > 0 && opts[0] != nil {
				s := guard.Must(guard.New(l, opts...)).Spec()
				if s.LimitFrom != "" {
					want[i].Kind, want[i].Limit = lock.Permit, 3
				}
				if s.LeaseFrom != "" {
					want[i].Lease = time.Minute
				}
			}
		}
		if got := l.asked(); !reflect.DeepEqual(got, want) {
			t.Errorf("asked for %+v, want %+v", got, want)
		}
		if len(l.reserved) != tt.reserves {
			t.Errorf("%d reservations, want %d: %+v", len(l.reserved), tt.reserves, l.reserved)
		}
		for _, rs := range l.reserved {
			for i := range rs {
				if rs[i].Holder = ""; !reflect.DeepEqual(rs[i], want[i]) {
					t.Errorf("reserved %+v, want %+v", rs[i], want[i])
				}
			}
		}
		if _, err := f(t.Context(), Report{Customer: "a"}); (err == nil) != (tt.outer == nil && tt.inner == nil) || err != nil && !errors.Is(err, guard.ErrKey) {
			t.Errorf("without a limit and a lease: %v", err)
		}
	}
}

// reserving is a locker that is asked for several locks at once, and leaves them to Acquire.
type reserving struct {
	*spy
	reserved [][]lock.Request
}

func (l *reserving) Reserve(ctx context.Context, rs []lock.Request) (context.Context, int, func(), error) {
	l.reserved = append(l.reserved, rs)
	return ctx, len(rs), func() {}, nil
}

// An override takes an expression in the place of a number, and the other way round.
func TestOverrideOfExpressions(t *testing.T) {
	l, reg := newSpy(), newRegistry(t)
	report := reporting(t, l, reported, guard.In(reg), guard.Limit(3), timeout)
	r := Report{Customer: "a", Slots: 5, Timeout: time.Minute}
	for _, tt := range []struct {
		text, want string
		limit      int
		lease      time.Duration
	}{
		{"report: limit=#{req.Slots}", "", 5, time.Minute},
		{"report: lease=30s", "", 5, 30 * time.Second},
		{`{"report": {"limit": 8, "lease": "#{req.Timeout}"}}`, "", 8, time.Minute},
		{`{"report": {"limit": "#{req.Slots}", "lease": "0s"}}`, "", 5, 0},
		{"report: limit=#{req.Slot}", "did you mean Slots?", 5, 0},
		{"report: limit=#{req.Name}; lease=#{req.Timeout}", "makes <string>", 5, 0},
	} {
		specs, err := guard.ParseSpecs(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		if err := reg.Override(specs); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Override of %s: %v, want %q", tt.text, err, tt.want)
		}
		l.requests = nil
		want := lock.Request{Key: "report:a", Kind: lock.Permit, Limit: tt.limit, Lease: tt.lease}
		if _, err := report(t.Context(), r); err != nil || !reflect.DeepEqual(l.asked()[0], want) {
			t.Errorf("after %s: %v, asked for %+v, want %+v", tt.text, err, l.asked(), want)
		}
	}
	for text, want := range map[string]string{
		"report: limit=#{req.Slots": "give one expression", "report: lease=1#{req.Timeout}": "give one expression", `{"report": {"limit": "#{+}"}}`: "not an expression",
	} {
		if _, err := guard.ParseSpecs(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `guard "report"`) {
			t.Errorf("ParseSpecs(%s): %v, want %q", text, err, want)
		}
	}
}

// Explain says what the call would ask for, and whether that could be had.
func TestExplainExpressions(t *testing.T) {
	l := memlock.New()
	g := guard.Must(guard.New(l, guard.Name("report"), guard.Key("report:#{req.Customer}"), slots, timeout))
	r := Report{Customer: "a", Slots: 1, Timeout: time.Minute}
	hold := guard.Must(l.Acquire(t.Context(), lock.Request{Key: "report:a", Kind: lock.Permit, Limit: 1}))
	for slots, busy := range map[int]bool{1: true, 2: false} {
		r.Slots = slots
		e, err := g.Explain(t.Context(), map[string]any{"req": r})
		if err != nil || e.Err != nil || e.Limit != slots || e.Lease != time.Minute || e.Keys[0].Busy != busy || e.Spec.LimitFrom != "#{req.Slots}" {
			t.Errorf("%d slots: %+v, %v", slots, e, err)
		}
		if want := fmt.Sprintf("for this call; lease=1m; limit=%d\n", slots); !strings.Contains(e.String(), want) || !strings.Contains(e.String(), "limit=#{req.Slots}") {
			t.Errorf("%q lacks %q", e, want)
		}
	}
	_ = hold.Release(t.Context())
	e, err := g.Explain(t.Context(), map[string]any{"req": Report{Customer: "a", Slots: 1}})
	if err != nil || !errors.Is(e.Err, guard.ErrKey) || e.Keys != nil || !strings.Contains(e.String(), "would fail") || strings.Contains(e.String(), "for this call") {
		t.Errorf("without a lease: %+v, %v", e, err)
	}
	g = guard.Must(guard.New(l, guard.Name("report"), guard.Key("report:#{req.Customer}"), guard.Limit(4)))
	if e, err := g.Explain(t.Context(), map[string]any{"req": r}); err != nil || e.Limit != 4 || strings.Contains(e.String(), "for this call") {
		t.Errorf("of a constant: %v, %v", e, err)
	}
}

// Options for all, tags and overrides have an order in which they win; a value takes the place of an expression as a whole.
func TestExpressionsAreMergedWhole(t *testing.T) {
	for _, tt := range []struct{ base, over, want string }{
		{"; limit=3; lease=1s", "; limit=#{req.Slots}", "; kind=permit; lease=1s; limit=#{req.Slots}"},
		{"; limit=#{req.Slots}; lease=#{req.Timeout}", "; limit=3", "; kind=permit; lease=#{req.Timeout}; limit=3"},
		{"; lease=#{req.Timeout}", "; lease=0", ""},
	} {
		var base, over guard.Spec
		if err := errors.Join(base.UnmarshalText([]byte(tt.base)), over.UnmarshalText([]byte(tt.over))); err != nil {
			t.Fatal(err)
		}
		if got := guard.Must(guard.New(memlock.New(), guard.FromSpec(base), guard.FromSpec(over))).Spec().String(); got != tt.want {
			t.Errorf("%s over %s = %s, want %s", tt.over, tt.base, got, tt.want)
		}
	}
}

// A customer has as many reports at once as the plan says, and each as long as it asks for.
func ExampleLimitFrom() {
	type Plan struct{ Slots int }
	type Report struct {
		Customer string
		Plan     Plan
		Timeout  time.Duration
	}
	g := guard.Must(guard.New(memlock.New(), guard.Name("report"), guard.Key("report:#{req.Customer}"),
		guard.LimitFrom("#{req.Plan.Slots}"), guard.LeaseFrom("#{req.Timeout}"), guard.MaxHold(time.Hour)))
	e, _ := g.Explain(context.Background(), map[string]any{"req": Report{"ann", Plan{2}, time.Minute}})
	fmt.Print(e)

	report := guard.Must(guard.Func(g, func(_ context.Context, r Report) (string, error) { return "report for " + r.Customer, nil }))
	fmt.Println(report(context.Background(), Report{"ann", Plan{2}, time.Minute}))
	_, err := report(context.Background(), Report{"bob", Plan{0}, time.Minute})
	fmt.Println(err)
	// Output:
	// guard "report", on: report:#{req.Customer}; name=report; kind=permit; lease=#{req.Timeout}; max-hold=1h; limit=#{req.Plan.Slots}
	// keys look like report:<string>
	// for this call; lease=1m; limit=2
	// key "report:ann", free now
	// report for ann <nil>
	// guard "report": limit: keyexpr: unusable value: req.Plan.Slots is no whole number from 1 to 10,000
}

// remaining is how long the lock around ctx is still good.
func remaining(ctx context.Context) time.Duration {
	hold, _ := guard.HoldFrom(ctx)
	return hold.Remaining()
}
