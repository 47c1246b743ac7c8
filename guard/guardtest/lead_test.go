package guardtest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// These are the tests of guard.Lead. They stand here because their lockers misbehave.

// ledger returns a guard for a leader.
func ledger(t *testing.T, l lock.Locker, opts ...guard.Option) *guard.Guard {
	t.Helper()
	g, err := guard.New(l, append([]guard.Option{guard.Name("ledger"), guard.Key("leader:ledger")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

var errWork = errors.New("disk full")

// untilTold is work that goes on for as long as its process leads.
func untilTold(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestLeadRefusesWhatIsNoGuardOfALeader(t *testing.T) {
	option := func(opts ...guard.Option) *guard.Guard { return ledger(t, memlock.New(), opts...) }
	stack := guard.Must(guard.Stack(option(), guard.Must(guard.New(memlock.New(), guard.Name("b"), guard.Key("b"), guard.Busy(guard.Skip)))))
	byRequest := guard.Must(guard.New(memlock.New(), guard.Name("ledger"), guard.Key("leader:#{req.ID}")))
	byFunc := guard.Must(guard.New(memlock.New(), guard.Name("ledger"), guard.KeyFunc(func(p Payment) (string, error) { return p.OrderID, nil })))
	reg := guard.Must(guard.NewRegistry())
	for _, tt := range []struct {
		name string
		g    *guard.Guard
		want string
	}{
		{"nil", nil, "Lead with a nil guard"},
		{"made by hand", new(guard.Guard), "Lead with a guard that New did not make"},
		{"no name", guard.Must(guard.New(memlock.New(), guard.Key("leader"))), "give guard.Name"},
		{"no key", guard.Must(guard.New(memlock.New(), guard.Name("ledger"))), "no key"},
		{"key of a request", byRequest, "unknown name req"},
		{"KeyFunc", byFunc, "guardtest_test.Payment"},
		{"wait", option(guard.Wait(time.Second)), "Lead with wait=1s"},
		{"no wait, in words", option(guard.Wait(0)), "Lead with wait=0"},
		{"skip", option(guard.Busy(guard.Skip)), "Lead with busy=skip"},
		{"replace", option(guard.Busy(guard.Replace)), "Lead with busy=replace"},
		{"unlocked", option(guard.Outage(guard.RunUnlocked)), "outage=run-unlocked"},
		{"fallback", option(guard.Fallback(func(context.Context, error) error { return nil })), "Fallback works with guard.Func"},
		{"condition", option(guard.TemplateFunc("mine", func() bool { return false }), guard.When("mine()")), "Lead with when=mine()"},
		{"switchable", option(guard.In(reg), guard.Switchable()), "Lead with switchable"},
		{"hold", option(guard.HoldAtLeast(time.Minute)), "Lead with hold=1m0s"},
		{"read", option(guard.Read()), "Lead with kind=read"},
		{"permit", option(guard.Limit(2)), "Lead with kind=permit"},
		{"methods", option(guard.Methods("POST")), "methods=POST"},
		{"in a Stack", stack, `guard "b": Lead with busy=skip`},
	} {
		err := guard.Lead(t.Context(), tt.g, func(context.Context) error {
			t.Errorf("%s: it leads", tt.name)
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Lead = %v, want %q", tt.name, err, tt.want)
		}
	}
	if err := guard.Lead(t.Context(), option(), nil); err == nil || !strings.Contains(err.Error(), `guard "ledger": Lead with a nil function`) {
		t.Errorf("without a function: %v", err)
	}
}

// TestOneLeadsAtATime has three candidates that each lead for a minute, with a token that grows.
func TestOneLeadsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ledger(t, memlock.New(), guard.Fenced())
		var tokens []int64
		var all sync.WaitGroup
		start := time.Now()
		for range 3 {
			all.Go(func() {
				if err := guard.Lead(t.Context(), g, func(ctx context.Context) error {
					token, _ := guard.Token(ctx)
					tokens = append(tokens, token) // a race unless one leads
					time.Sleep(time.Minute)
					return nil
				}); err != nil {
					t.Errorf("Lead = %v", err)
				}
			})
		}
		all.Wait()
		if took := time.Since(start); len(tokens) != 3 || tokens[0] < 1 || !slices.IsSorted(tokens) || tokens[0] == tokens[1] || tokens[1] == tokens[2] || took != 3*time.Minute {
			t.Errorf("tokens %v after %v, want three that grow, after 3m", tokens, took)
		}
	})
}

// pauses plays Lead with work that returns the errors in turn, each after its time, and nil at last. It returns the times between the leads.
func pauses(t *testing.T, g *guard.Guard, lasts []time.Duration, err error) (gaps []time.Duration) {
	var ended time.Time
	led := 0
	if err := guard.Lead(t.Context(), g, func(context.Context) error {
		if led > 0 {
			gaps = append(gaps, time.Since(ended))
		}
		if led == len(lasts) {
			return nil
		}
		time.Sleep(lasts[led])
		led++
		ended = time.Now()
		return err
	}); err != nil {
		t.Errorf("Lead = %v", err)
	}
	return gaps
}

// between fails t unless each pause is between a half and the whole of what it is cut from.
func between(t *testing.T, got []time.Duration, want ...time.Duration) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d pauses, want %d: %v", len(got), len(want), got)
	}
	cut := 0
	for i, d := range got {
		if d < want[i]/2 || d > want[i] {
			t.Errorf("pause %d is %v, want %v or down to a half", i+1, d, want[i])
		}
		if d != want[i] {
			cut++
		}
	}
	if cut < len(got)/2 {
		t.Errorf("the pauses %v are not random", got)
	}
}

func TestLeadStandsAgainAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms, s = time.Millisecond, time.Second
		lasts := []time.Duration{0, 0, s, 0, 0, 0, 29 * s, 0, 30 * s, 0}
		got := pauses(t, ledger(t, memlock.New()), lasts, errWork)
		between(t, got, 250*ms, 500*ms, s, 2*s, 4*s, 8*s, 8*s, 8*s, 250*ms, 500*ms)
	})
}

func TestMaxHoldIsATermOfOffice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ledger(t, memlock.New(), guard.MaxHold(time.Second))
		var causes []error
		start := time.Now()
		if err := guard.Lead(t.Context(), g, func(ctx context.Context) error {
			if len(causes) == 5 {
				return nil
			}
			<-ctx.Done()
			causes = append(causes, context.Cause(ctx))
			return nil
		}); err != nil {
			t.Errorf("Lead = %v", err)
		}
		for _, cause := range causes {
			if !errors.Is(cause, lock.ErrMaxHold) {
				t.Errorf("a term ended with %v, want ErrMaxHold", cause)
			}
		}
		if took := time.Since(start); took < 5*1125*time.Millisecond || took > 5*1250*time.Millisecond {
			t.Errorf("five terms took %v: the pauses grow", took)
		}
	})
}

// TestLeadWaitsForItsWorkAfterALoss has work that goes on for ten seconds after its lead was lost.
func TestLeadWaitsForItsWorkAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, events := guardtest.New(guardtest.LostAfter(time.Minute)), new(guardtest.Events)
		at := map[string]time.Duration{}
		start, led := time.Now(), 0
		if err := guard.Lead(t.Context(), ledger(t, l, guard.Observe(events.Observe)), func(ctx context.Context) error {
			if led++; led == 2 {
				at["second"] = time.Since(start)
				return nil
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), guard.ErrLost) {
				t.Errorf("the work ends with %v", context.Cause(ctx))
			}
			at["lost"] = time.Since(start)
			time.Sleep(10 * time.Second)
			return nil // which is no success
		}); err != nil {
			t.Errorf("Lead = %v", err)
		}
		if at["lost"] != time.Minute || at["second"] < 70*time.Second || at["second"] > 70*time.Second+250*time.Millisecond {
			t.Errorf("it was lost after %v and led again after %v, want 1m and 1m10s", at["lost"], at["second"])
		}
		events.WantOutcomes(t, "ledger", guard.OutcomeElected, guard.OutcomeLost, guard.OutcomeElected, guard.OutcomeOK)
		l.WantNothingHeld(t)
	})
}

func TestLeadStandsThroughAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, events := guardtest.New(guardtest.OutageFor(time.Minute, errors.New("connection refused"))), new(guardtest.Events)
		start := time.Now()
		if err := guard.Lead(t.Context(), ledger(t, l, guard.Observe(events.Observe)), func(context.Context) error { return nil }); err != nil {
			t.Errorf("Lead = %v", err)
		}
		if took := time.Since(start); took < time.Minute || took > 68*time.Second {
			t.Errorf("it led after %v, want within 8s of the end of the outage", took)
		}
		got := events.Outcomes("ledger")
		if n := len(got); n < 10 || n > 25 || !slices.Equal(got[n-2:], []string{guard.OutcomeElected, guard.OutcomeOK}) || slices.ContainsFunc(got[:n-2], func(o string) bool { return o != guard.OutcomeOutage }) {
			t.Errorf("observers heard %q", got)
		}
	})
}

// TestLeadWaitsWhereWaitersAreBounded has a candidate that finds the line full.
func TestLeadWaitsWhereWaitersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := new(guardtest.Events)
		g := ledger(t, memlock.New(), guard.Waiters(1), guard.Observe(events.Observe))
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if err := guard.Lead(t.Context(), g, func(context.Context) error { time.Sleep(time.Second); return nil }); err != nil {
					t.Errorf("Lead = %v", err)
				}
			})
		}
		all.Wait()
		if !slices.Contains(events.Outcomes("ledger"), guard.OutcomeBusy) {
			t.Error("the line was never full")
		}
	})
}

func TestLeadReturnsWhatTryingAgainCannotHelp(t *testing.T) {
	for _, tt := range []struct {
		opts []guard.Option
		err  error // of the locker
		want error
	}{
		{nil, fmt.Errorf("%w: NOPERM", lock.ErrRefused), guard.ErrFault},
		{nil, fmt.Errorf("%w: no such kind", lock.ErrUnsupported), guard.ErrUnsupported},
		{[]guard.Option{guard.TemplateFunc("mine", func() (string, error) { return "", guard.ErrKey }), guard.FromSpec(guard.Spec{Key: "leader:#{mine()}"})}, nil, guard.ErrKey},
		{[]guard.Option{guard.TemplateFunc("mine", func() (string, error) { return "", errWork }), guard.FromSpec(guard.Spec{Key: "leader:#{mine()}"})}, nil, guard.ErrFault},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := guardtest.New()
			if tt.err != nil {
				l.Set(guardtest.Outage(tt.err))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			start := time.Now()
			err := guard.Lead(ctx, ledger(t, l, tt.opts...), untilTold)
			if !errors.Is(err, tt.want) || time.Since(start) != 0 {
				t.Errorf("Lead = %v after %v, want %v at once", err, time.Since(start), tt.want)
			}
		})
	}
}

// TestWorkMayFailAsAGuardDoes has work whose own calls fail in ways that end a candidate, and not a leader.
func TestWorkMayFailAsAGuardDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if got := pauses(t, ledger(t, memlock.New()), make([]time.Duration, 2), &guard.Error{Guard: "inner", Err: guard.ErrFault}); len(got) != 2 {
			t.Errorf("it led again %d times, want twice", len(got))
		}
	})
}

var errStop = errors.New("this host is going down")

// TestEndOfALead ends the context of Lead in each of its states. The next candidate leads at once, and there is one release a lead.
func TestEndOfALead(t *testing.T) {
	for _, tt := range []struct {
		name string
		work func(context.Context) error
		want error // of Lead
		led  bool
	}{
		{"work that returns nil", func(ctx context.Context) error { <-ctx.Done(); return nil }, nil, true},
		{"work that returns the cause", untilTold, nil, true},
		{"work that returns the error", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil, true},
		{"work that says where", func(ctx context.Context) error { return fmt.Errorf("while reading: %w", untilTold(ctx)) }, nil, true},
		{"work that fails to end", func(ctx context.Context) error { <-ctx.Done(); return errWork }, errWork, true},
		{"work that is late", func(ctx context.Context) error { <-ctx.Done(); time.Sleep(time.Hour); return ctx.Err() }, guard.ErrLost, true},
		{"a pause", func(context.Context) error { return errWork }, nil, true},
		{"waiting", nil, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := guardtest.New()
				if tt.want == guard.ErrLost {
					l.Set(guardtest.LostAfter(2 * time.Hour))
				}
				g := ledger(t, l)
				ctx, stop := context.WithCancelCause(t.Context())
				done, led := make(chan error, 1), false
				if !tt.led {
					hold := guard.Must(l.Acquire(t.Context(), lock.Request{Key: "leader:ledger"}))
					time.AfterFunc(90*time.Minute, func() { _ = hold.Release(context.Background()) })
				}
				go func() {
					done <- guard.Lead(ctx, g, func(ctx context.Context) error { led = true; return tt.work(ctx) })
				}()
				time.Sleep(time.Hour)
				if tt.want == guard.ErrLost {
					time.Sleep(59 * time.Minute)
				}
				synctest.Wait()
				stop(errStop)
				synctest.Wait()
				if tt.want != guard.ErrLost {
					select {
					case err := <-done:
						done <- err
					default:
						t.Error("it has not returned at once")
					}
				}
				if err := <-done; !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
					t.Errorf("Lead = %v, want %v", err, tt.want)
				}
				if led != tt.led {
					t.Errorf("it led: %v, want %v", led, tt.led)
				}
				if tt.led {
					l.WantNothingHeld(t) // also not released twice
				}
			})
		})
	}
}

// TestEndOfALeadInAnOutage ends the context at the moment in which an attempt has failed.
func TestEndOfALeadInAnOutage(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	g := ledger(t, guardtest.New(guardtest.Outage(errDown)), guard.Observe(func(context.Context, guard.Event) { stop() }))
	if err := guard.Lead(ctx, g, untilTold); err != nil {
		t.Errorf("Lead = %v", err)
	}
}

// TestNextLeadsAtOnce ends the context of the leader while another candidate waits.
func TestNextLeadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := guardtest.New()
		g := ledger(t, l)
		leads := make(chan string, 2)
		stand := func(ctx context.Context, name string) {
			if err := guard.Lead(ctx, g, func(ctx context.Context) error { leads <- name; return untilTold(ctx) }); err != nil {
				t.Errorf("%s: Lead = %v", name, err)
			}
		}
		first, stop := context.WithCancel(t.Context())
		second, end := context.WithCancel(t.Context())
		go stand(first, "first")
		synctest.Wait()
		go stand(second, "second")
		synctest.Wait()
		start := time.Now()
		stop()
		if got := []string{<-leads, <-leads}; !slices.Equal(got, []string{"first", "second"}) || time.Since(start) != 0 {
			t.Errorf("%q led, the second after %v", got, time.Since(start))
		}
		end()
		synctest.Wait()
		l.WantNothingHeld(t)
	})
}

// TestDrainEndsLeads has a leader, a candidate that waits, one that pauses, and one that comes later.
func TestDrainEndsLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := guard.Must(guard.NewRegistry())
		g := ledger(t, memlock.New(), guard.In(reg))
		fails := guard.Must(guard.New(guardtest.New(guardtest.Outage(errWork)), guard.In(reg), guard.Name("fails"), guard.Key("fails")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // in case that nothing ends them
		defer cancel()
		var all sync.WaitGroup
		led := 0
		stand := func(g *guard.Guard) {
			all.Go(func() {
				if err := guard.Lead(ctx, g, func(ctx context.Context) error {
					led++
					if err := untilTold(ctx); !errors.Is(err, guard.ErrDraining) {
						t.Errorf("the work ends with %v", err)
					}
					time.Sleep(time.Second)
					return nil
				}); err != nil {
					t.Errorf("Lead = %v", err)
				}
			})
		}
		stand(g)
		stand(g)
		stand(fails)
		time.Sleep(time.Minute)
		start := time.Now()
		if report, err := reg.Drain(ctx); err != nil || report.Took != time.Second || report.Ended != 1 {
			t.Errorf("Drain = %+v, %v", report, err)
		}
		stand(g)
		all.Wait()
		if led != 1 || time.Since(start) > 2*time.Second {
			t.Errorf("%d led, and the last returned after %v", led, time.Since(start))
		}
	})
}

// TestPanicGivesTheLeadAway holds that a panic, and the end of the goroutine, are the caller's.
func TestPanicGivesTheLeadAway(t *testing.T) {
	for _, work := range []func(){func() { panic(errWork) }, runtime.Goexit} {
		l, events := guardtest.New(), new(guardtest.Events)
		var got any
		var all sync.WaitGroup
		all.Go(func() {
			defer func() { got = recover() }()
			_ = guard.Lead(t.Context(), ledger(t, l, guard.Observe(events.Observe)), func(context.Context) error { work(); return nil })
			t.Error("Lead returned")
		})
		all.Wait()
		if got != nil && got != any(errWork) {
			t.Errorf("the panic is %v", got)
		}
		l.WantNothingHeld(t)
		events.WantOutcomes(t, "", guard.OutcomeElected, guard.OutcomePanic)
	}
}

// TestObserversHearOfLeads holds what observers are told, and when.
func TestObserversHearOfLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := guardtest.New(guardtest.BusyFor(time.Second))
		var lines strings.Builder
		log := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if slices.Contains([]string{slog.TimeKey, "wait", "held"}, a.Key) {
				return slog.Attr{}
			}
			return a
		}}))
		var told []guard.Event
		var tokens []int64
		g := ledger(t, l, guard.Fenced(), guard.Log(log), guard.Observe(func(ctx context.Context, e guard.Event) {
			token, _ := guard.Token(ctx)
			told, tokens = append(told, e), append(tokens, token)
		}))
		failed := false
		if err := guard.Lead(t.Context(), g, func(context.Context) error {
			time.Sleep(time.Minute)
			if failed = !failed; failed {
				return errWork
			}
			return nil
		}); err != nil {
			t.Errorf("Lead = %v", err)
		}
		want := []guard.Event{
			{Outcome: guard.OutcomeElected, Wait: time.Second},
			{Outcome: guard.OutcomeError, Wait: time.Second, Held: time.Minute, Err: errWork},
			{Outcome: guard.OutcomeElected},
			{Outcome: guard.OutcomeOK, Held: time.Minute},
		}
		if len(told) != len(want) {
			t.Fatalf("told %+v", told)
		}
		for i, e := range told {
			w := want[i]
			if e.Guard != "ledger" || e.Template != "leader:ledger" || !e.Lead || e.Keys != 1 || e.Outcome != w.Outcome || e.Wait != w.Wait || e.Held != w.Held || e.Err != w.Err {
				t.Errorf("told %+v, want %+v", e, w)
			}
		}
		if !slices.Equal(tokens, []int64{1, 0, 2, 0}) {
			t.Errorf("with the tokens %v, want those of the two leads at their begin", tokens)
		}
		text := strings.TrimSpace(lines.String())
		if want := `level=INFO msg="guard: elected, and leads" guard=ledger outcome=elected
level=INFO msg="guard: leads no more" guard=ledger outcome=error reason="disk full"
level=INFO msg="guard: elected, and leads" guard=ledger outcome=elected
level=INFO msg="guard: leads no more" guard=ledger outcome=ok`; text != want {
			t.Errorf("logged\n%s\nwant\n%s", text, want)
		}
	})
}

// TestOverrideOfALead holds that nobody may make leaders of all while the program runs, and that the next lead has what else is changed.
func TestOverrideOfALead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := guard.Must(guard.NewRegistry())
		g := ledger(t, memlock.New(), guard.In(reg))
		led := 0
		if err := guard.Lead(t.Context(), g, func(ctx context.Context) error {
			if led++; led == 2 {
				if err := untilTold(ctx); !errors.Is(err, lock.ErrMaxHold) {
					t.Errorf("the second lead ends with %v", err)
				}
			}
			if led == 3 {
				return nil
			}
			for _, bad := range []guard.Spec{{Outage: guard.RunUnlocked}, {Busy: guard.Skip}, {Switchable: true}, {Wait: time.Second}, {When: "true"}} {
				if err := reg.Override(map[string]guard.Spec{"ledger": bad}); err == nil || !strings.Contains(err.Error(), "Lead with") {
					t.Errorf("Override by %v = %v", bad, err)
				}
			}
			if err := reg.Override(map[string]guard.Spec{"ledger": {MaxHold: time.Minute}}); err != nil {
				t.Error(err)
			}
			return errWork
		}); err != nil {
			t.Errorf("Lead = %v", err)
		}
		got := slices.Collect(reg.All())[0]
		if got.Spec.Wait != guard.Forever || got.Outcomes[guard.OutcomeMaxHold] != 1 {
			t.Errorf("the registry has %+v", got)
		}
	})
}

func TestLeadUnderALeadReenters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, ran := guardtest.New(), false
		g := ledger(t, l, guard.Fenced())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // in case that it waits for itself
		defer cancel()
		if err := guard.Lead(ctx, g, func(ctx context.Context) error {
			outer, _ := guard.Token(ctx)
			return guard.Lead(ctx, g, func(ctx context.Context) error {
				inner, ok := guard.Token(ctx)
				if ran = true; !ok || inner < outer {
					t.Errorf("inner token %d, outer %d", inner, outer)
				}
				return nil
			})
		}); err != nil || !ran {
			t.Errorf("Lead = %v; the inner one led: %v", err, ran)
		}
		l.WantNothingHeld(t)
	})
}

func TestLeadOfAStackHasAllLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, events := guardtest.New(), new(guardtest.Events)
		declare := func(name string) *guard.Guard {
			return guard.Must(guard.New(l, guard.Name(name), guard.Key(name), guard.Observe(events.Observe)))
		}
		busy := guard.Must(l.Acquire(t.Context(), lock.Request{Key: "zone"}))
		time.AfterFunc(time.Minute, func() { _ = busy.Release(context.Background()) })
		start := time.Now()
		if err := guard.Lead(t.Context(), guard.Must(guard.Stack(declare("region"), declare("zone"))), func(context.Context) error {
			synctest.Wait() // the release of who was in the way
			l.WantHeld(t, "region", "zone")
			return nil
		}); err != nil || time.Since(start) != time.Minute {
			t.Errorf("Lead = %v after %v", err, time.Since(start))
		}
		events.WantOutcomes(t, "region", guard.OutcomeElected, guard.OutcomeOK)
		events.WantOutcomes(t, "zone", guard.OutcomeElected, guard.OutcomeOK)
	})
}
