package guard_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
)

// One sentinel and not two: work that finds out why its context ended does not ask whose package the word is of.
func TestOneSentinel(t *testing.T) {
	for _, tt := range []struct{ guards, locks error }{
		{guard.ErrLost, lock.ErrLost}, {guard.ErrBusy, lock.ErrBusy}, {guard.ErrUnsupported, lock.ErrUnsupported},
	} {
		if tt.guards != tt.locks {
			t.Errorf("%v and %v are two", tt.guards, tt.locks)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		settle, _ := guarded(t, newSpy(), func(ctx context.Context, _ Order) (string, error) {
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, guard.ErrLost) {
				t.Errorf("within the work: %v, want ErrLost", cause)
			}
			return "", nil
		}, guard.MaxHold(time.Second))
		if _, err := settle(t.Context(), Order{ID: "7"}); !errors.Is(err, guard.ErrLost) {
			t.Errorf("settle: %v, want ErrLost", err)
		}
	})
}

// TestWhoseFault is an error on the way to the key: of a value, of a service that the program asked, of the program.
func TestWhoseFault(t *testing.T) {
	down := errors.New("pq: connection refused")
	for _, tt := range []struct {
		name     string
		err      error
		sentinel error
		outcome  string
	}{
		{"a database", down, guard.ErrFault, guard.OutcomeFault},
		{"its own deadline", context.DeadlineExceeded, guard.ErrFault, guard.OutcomeFault},
		{"another guard's", &guard.Error{Guard: "other", Err: guard.ErrBusy}, guard.ErrFault, guard.OutcomeFault},
		{"an outage", fmt.Errorf("%w: %w", guard.ErrOutage, down), guard.ErrOutage, guard.OutcomeOutage},
		{"a bad value", fmt.Errorf("%w: no such tenant", guard.ErrKey), guard.ErrKey, guard.OutcomeKey},
		{"a bad value to keyexpr", fmt.Errorf("%w: no such tenant", keyexpr.ErrValue), guard.ErrKey, guard.OutcomeKey},
	} {
		fails := func(Order) (string, error) { return "", tt.err }
		for place, opts := range map[string][]guard.Option{
			"KeyFunc":           {guard.Key(""), guard.KeyFunc(fails)},
			"function":          {guard.Key("#{tenant(req.ID)}"), guard.TemplateFunc("tenant", func(string) (string, error) { return "", tt.err })},
			"function for when": {guard.When("ok(req.ID)"), guard.TemplateFunc("ok", func(string) (bool, error) { return false, tt.err })},
		} {
			l := newSpy()
			settle, seen := guarded(t, l, settled, opts...)
			_, err := settle(t.Context(), Order{ID: "7"})
			if e, ok := errors.AsType[*guard.Error](err); !ok || e.Guard != "order.settle" || e.Err != tt.sentinel || !errors.Is(err, tt.err) {
				t.Errorf("%s, %s: settle: %v, want %v for it", tt.name, place, err, tt.sentinel)
			}
			if e := seen.only(t); e.Outcome != tt.outcome || e.Err != err || e.Keys != 0 {
				t.Errorf("%s, %s: event %+v, want %s", tt.name, place, e, tt.outcome)
			}
			l.check(t)
		}
	}
}

// No policy papers over a fault of the program or of the service, and neither does a fallback.
func TestFaultsAreNotSwallowed(t *testing.T) {
	refused := fmt.Errorf("%w: WRONGTYPE Operation against a key", lock.ErrRefused)
	fallback := guard.Fallback(func(context.Context, Order, error) (string, error) { return "fallback", nil })
	for _, opts := range [][]guard.Option{
		nil, {fallback},
		{guard.Busy(guard.Skip), guard.Outage(guard.Skip)},
		{guard.Busy(guard.RunUnlocked), guard.Outage(guard.RunUnlocked)},
	} {
		l := newSpy()
		l.refuse = map[string]error{"order:7": refused}
		keyless := guard.KeyFunc(func(Order) (string, error) { return "", errNoTenant })
		for _, tt := range []struct {
			opts []guard.Option
			want error
		}{{opts, refused}, {append(slices.Clip(opts), guard.Key(""), keyless), errNoTenant}} {
			settle, seen := guarded(t, l, settled, tt.opts...)
			got, err := settle(t.Context(), Order{ID: "7"})
			if got != "" || !errors.Is(err, guard.ErrFault) || !errors.Is(err, tt.want) {
				t.Errorf("settle = %q, %v, want ErrFault for %v", got, err, tt.want)
			}
			if e := seen.only(t); e.Outcome != guard.OutcomeFault {
				t.Errorf("event %+v, want fault", e)
			}
		}
	}
}

// An outage that a function tells of is one, with all that is declared for it.
func TestPolicyForAnOutageOfAFunction(t *testing.T) {
	settle, seen := guarded(t, newSpy(), settled, guard.Key(""), guard.Outage(guard.RunUnlocked),
		guard.KeyFunc(func(Order) (string, error) { return "", guard.ErrOutage }))
	if got, err := settle(t.Context(), Order{ID: "7"}); got != "settled" || err != nil {
		t.Errorf("settle = %q, %v", got, err)
	}
	if e := seen.only(t); e.Outcome != guard.OutcomeUnlocked || !errors.Is(e.Refused, guard.ErrOutage) {
		t.Errorf("event %+v", e)
	}
}

// TestErrorNamesTheFact holds that who gets the error may be told what to mend, and is told no value.
func TestErrorNamesTheFact(t *testing.T) {
	for _, tt := range []struct {
		fact string
		req  Order
		opts []guard.Option
	}{
		{"req.ID", Order{}, nil},
		{"req.Items", Order{}, []guard.Option{guard.Key("#{req.Items}")}},
		{"req.Items", Order{Items: []string{"secret", ""}}, []guard.Option{guard.Key("#{req.Items}")}},
		{"req.Items[1]", Order{ID: "secret"}, []guard.Option{guard.Key("#{req.ID}:#{req.Items[1]}")}},
		{"lower(req.ID)", Order{Items: []string{"secret"}}, []guard.Option{guard.Key("#{lower(req.ID)}:#{req.Items[0]}")}},
		{"req.ID", Order{ID: "secret"}, []guard.Option{guard.When(`int(req.ID) > 0`)}},
		{"tenant(req.ID)", Order{ID: "secret"}, []guard.Option{
			guard.Key("#{tenant(req.ID)}"), guard.TemplateFunc("tenant", func(string) (string, error) { return "", errNoTenant }),
		}},
		{"", Order{}, []guard.Option{guard.Key(""), guard.KeyFunc(func(Order) (string, error) { return "", nil })}},
	} {
		settle, seen := guarded(t, newSpy(), settled, tt.opts...)
		_, err := settle(t.Context(), tt.req)
		e, ok := errors.AsType[*guard.Error](err)
		if !ok || e.Fact != tt.fact || strings.Contains(err.Error(), "secret") {
			t.Errorf("settle: %#v, want one that names %q", err, tt.fact)
		}
		if e := seen.only(t); e.Fact != tt.fact {
			t.Errorf("event names %q, want %q", e.Fact, tt.fact)
		}
	}
}

// A loss is named once in a message, whoever repeats it.
func TestErrorNamesALossOnce(t *testing.T) {
	for _, tt := range []struct {
		name string
		work work
		want string
	}{
		{"heeded", untilLost, "guard \"order.settle\": lock: lost after 1s: lock: held for as long as allowed"},
		{"wrapped", func(ctx context.Context, _ Order) (string, error) {
			<-ctx.Done()
			return "", fmt.Errorf("save: %w", context.Cause(ctx))
		}, "guard \"order.settle\": save: lock: lost after 1s: lock: held for as long as allowed"},
		{"of its own", func(ctx context.Context, _ Order) (string, error) {
			<-ctx.Done()
			return "", errNoTenant
		}, "guard \"order.settle\": lock: lost after 1s: lock: held for as long as allowed; the work failed: no tenant"},
	} {
		synctest.Test(t, func(t *testing.T) {
			settle, _ := guarded(t, newSpy(), tt.work, guard.MaxHold(time.Second))
			_, err := settle(t.Context(), Order{ID: "7"})
			if err == nil || err.Error() != tt.want {
				t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
			}
		})
	}
}
