package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/lock"
)

const second = time.Second

var (
	errDown = errors.New("dial: connection refused")
	busy2s  = []guardtest.Fault{guardtest.BusyFor(2 * second)}
	down    = []guardtest.Fault{guardtest.Outage(errDown)}
)

func options(o ...guard.Option) []guard.Option { return o }

// one is the key that the default template gives for the default id.
var one = []string{"order:7"}

// function is a function of the program's own that fails with err, for the template #{tenant()}.
func function(err error) []guard.Option {
	return options(guard.TemplateFunc("tenant", func() (string, error) { return "acme", err }))
}

const functionKey = "#{tenant()}:#{FACT}"

var table = []row{
	// The work runs under its lock.
	{name: "ok", want: Done, ran: 1, keys: one, events: []event{{outcome: "ok", keys: 1}}},
	{name: "ok after a second", work: ignores(second), want: Done, ran: 1, took: second, keys: one, events: []event{{outcome: "ok", keys: 1, held: second}}},
	{name: "error", work: func(context.Context, *scene) error { return ErrOwn }, want: Failed, ran: 1, keys: one, events: []event{{outcome: "error", keys: 1}}},
	{name: "panic", work: func(context.Context, *scene) error { panic(errPanic) }, want: Panicked, ran: 1, keys: one, events: []event{{outcome: "panic", keys: 1}}},
	{name: "the work knows its guard", work: knows, want: Done, ran: 1, keys: one, events: []event{{outcome: "ok", keys: 1}}},
	{name: "fencing token", options: options(guard.Fenced()), work: fenced, want: Done, ran: 1, keys: one, events: []event{{outcome: "ok", keys: 1}}},
	{name: "release fails", faults: []guardtest.Fault{guardtest.ReleaseFails(errDown)}, want: Done, ran: 1, keys: one, events: []event{{outcome: "ok", keys: 1, release: errDown}}},

	// Condition and key.
	{name: "condition false", when: `FACT != "7"`, faults: down, want: Done, ran: 1, events: []event{{outcome: "condition_false"}}},
	{name: "condition true", when: `FACT == "7"`, want: Done, ran: 1, keys: one, events: []event{{outcome: "ok", keys: 1}}},
	{name: "key missing", noID: true, want: BadKey, events: []event{{outcome: "key", fact: "FACT"}}},
	{name: "two keys", key: `#{[key("b", FACT), key("a", FACT)]}`, want: Done, ran: 1, keys: []string{"a:7", "b:7"}, events: []event{{outcome: "ok", keys: 2}}},
	{name: "two keys, the second busy", key: `#{[key("b", FACT), key("a", FACT)]}`, faults: []guardtest.Fault{guardtest.On(guardtest.Busy(), "b:7")}, want: Busy,
		keys: []string{"a:7"}, events: []event{{outcome: "busy", keys: 2, refused: guard.ErrBusy}}},
	{name: "two keys, the second out", key: `#{[key("b", FACT), key("a", FACT)]}`, faults: []guardtest.Fault{guardtest.On(guardtest.Outage(errDown), "b:7")}, want: Unavailable,
		keys: []string{"a:7"}, events: []event{{outcome: "outage", keys: 2, refused: guard.ErrOutage}}},

	// A function of the template. Whose fault it is decides, and no policy hides it.
	{name: "function", key: functionKey, options: function(nil), want: Done, ran: 1, keys: []string{"acme:7"}, events: []event{{outcome: "ok", keys: 1}}},
	{name: "fault of a function", key: functionKey, options: append(function(errDown), guard.Outage(guard.RunUnlocked), guard.Busy(guard.RunUnlocked)),
		want: Broken, events: []event{{outcome: "fault", fact: "tenant()"}}},
	{name: "bad value in a function", key: functionKey, options: function(guard.ErrKey), want: BadKey, events: []event{{outcome: "key", fact: "tenant()"}}},
	{name: "outage of a function", key: functionKey, options: function(guard.ErrOutage), want: Unavailable, events: []event{{outcome: "outage", refused: guard.ErrOutage, fact: "tenant()"}}},

	// Busy.
	{name: "busy at once", faults: busy2s, want: Busy, events: []event{{outcome: "busy", keys: 1, refused: guard.ErrBusy}}},
	{name: "busy for longer", faults: busy2s, options: options(guard.Wait(second)), want: Busy, took: second, events: []event{{outcome: "busy", keys: 1, wait: second, refused: guard.ErrBusy}}},
	{name: "busy for less", faults: busy2s, options: options(guard.Wait(3 * second)), want: Done, ran: 1, took: 2 * second, keys: one, events: []event{{outcome: "ok", keys: 1, wait: 2 * second}}},
	{name: "busy, waiting for ever", faults: busy2s, options: options(guard.Wait(guard.Forever)), want: Done, ran: 1, took: 2 * second, keys: one, events: []event{{outcome: "ok", keys: 1, wait: 2 * second}}},
	{name: "busy, skip", faults: busy2s, options: options(guard.Busy(guard.Skip)), want: Skipped, events: []event{{outcome: "skipped", keys: 1, refused: guard.ErrBusy}}},
	{name: "busy, run unlocked", faults: busy2s, options: options(guard.Busy(guard.RunUnlocked)), work: stranger, want: Done, ran: 1, events: []event{{outcome: "unlocked", keys: 1, refused: guard.ErrBusy}}},
	{name: "busy, fallback", fallback: true, faults: busy2s, want: Fell, events: []event{{outcome: "fallback", keys: 1, refused: guard.ErrBusy}}},

	// Outages.
	{name: "outage", faults: down, want: Unavailable, events: []event{{outcome: "outage", keys: 1, refused: guard.ErrOutage}}},
	{name: "outage, skip", faults: down, options: options(guard.Outage(guard.Skip)), want: Skipped, events: []event{{outcome: "skipped", keys: 1, refused: guard.ErrOutage}}},
	{name: "outage, run unlocked", faults: down, options: options(guard.Outage(guard.RunUnlocked)), work: stranger, want: Done, ran: 1, events: []event{{outcome: "unlocked", keys: 1, refused: guard.ErrOutage}}},
	{name: "outage, fallback", fallback: true, faults: down, want: Fell, events: []event{{outcome: "fallback", keys: 1, refused: guard.ErrOutage}}},
	{name: "refused for good", faults: []guardtest.Fault{guardtest.Outage(lock.ErrRefused)}, options: options(guard.Outage(guard.RunUnlocked)), want: Broken, events: []event{{outcome: "fault", keys: 1}}},
	{name: "unsupported", faults: []guardtest.Fault{guardtest.Outage(lock.ErrUnsupported)}, options: options(guard.Outage(guard.RunUnlocked)), want: Broken, events: []event{{outcome: "unsupported", keys: 1}}},

	// Losses. Work that goes on has no success to report, whether it noticed or not.
	{name: "lost and noticed", faults: []guardtest.Fault{guardtest.LostAfter(second)}, work: heeds(time.Minute), want: Lost, ran: 1, took: second,
		keys: one, events: []event{{outcome: "lost", keys: 1, held: second, release: guard.ErrLost}}},
	{name: "lost and ignored", faults: []guardtest.Fault{guardtest.LostAfter(second)}, work: lost(3 * second), want: Lost, ran: 1, took: 3 * second,
		keys: one, events: []event{{outcome: "lost", keys: 1, held: 3 * second, release: guard.ErrLost}}},
	{name: "lost and told at the release", faults: []guardtest.Fault{guardtest.LostUnnoticed()}, work: ignores(second), want: Lost, ran: 1, took: second,
		keys: one, events: []event{{outcome: "lost", keys: 1, held: second, release: guard.ErrLost}}},
	{name: "lease over", options: options(guard.Lease(second)), work: lost(3 * second), want: Lost, ran: 1, took: 3 * second,
		keys: one, events: []event{{outcome: "lost", keys: 1, held: 3 * second, release: guard.ErrLost}}},
	{name: "max-hold heeded", options: options(guard.MaxHold(second)), work: heeds(time.Minute), want: Lost, ran: 1, took: second,
		keys: one, events: []event{{outcome: "max_hold", keys: 1, held: second, release: guard.ErrLost}}},
	{name: "max-hold ignored", options: options(guard.MaxHold(second)), work: lost(3 * second), want: Lost, ran: 1, took: 3 * second,
		keys: one, events: []event{{outcome: "max_hold", keys: 1, held: 3 * second, release: guard.ErrLost}}},

	// The caller's context.
	{name: "caller gone while waiting", faults: busy2s, options: options(guard.Wait(guard.Forever)), caller: leaves(second), want: Gone, took: second, events: []event{{outcome: "canceled", keys: 1, wait: second}}},
	{name: "deadline while waiting", faults: busy2s, options: options(guard.Wait(guard.Forever), guard.Busy(guard.RunUnlocked)), caller: deadline(second), want: Late, took: second,
		events: []event{{outcome: "canceled", keys: 1, wait: second}}},
	{name: "caller gone while the work runs", caller: leaves(second), work: ignores(2 * second), want: Done, ran: 1, took: 2 * second, keys: one, events: []event{{outcome: "ok", keys: 1, held: 2 * second}}},
}

// knows is work that asks for its guard.
func knows(ctx context.Context, s *scene) error {
	if !guard.Held(ctx, "order.settle") || guard.Held(ctx, "order.ship") {
		s.Error("the work does not know that order.settle holds its lock")
	}
	return nil
}

// stranger is work without a lock.
func stranger(ctx context.Context, s *scene) error {
	if guard.Held(ctx, "order.settle") {
		s.Error("the work believes to be under its lock")
	}
	return nil
}

func fenced(ctx context.Context, s *scene) error {
	if token, ok := guard.Token(ctx); !ok || token < 1 {
		s.Errorf("token %d, %v", token, ok)
	}
	return nil
}
