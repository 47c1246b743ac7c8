package scenario

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/guard"
)

// scripts are the scenarios of several calls.
var scripts = []row{
	{name: "nested call of the same key", work: nests, script: func(s *scene) { s.expect(s.Context(), "7", Done) },
		ran: 2, keys: []string{"order:7", "order:7"}, events: []event{{outcome: "ok", keys: 1}, {outcome: "ok", keys: 1}}},
	{name: "callers take turns", options: options(guard.Wait(guard.Forever)), work: ignores(second), script: crowd(Done, Done, Done),
		ran: 3, took: 3 * second, keys: []string{"order:7", "order:7", "order:7"},
		events: []event{{outcome: "ok", keys: 1, held: second}, {outcome: "ok", keys: 1, wait: second, held: second}, {outcome: "ok", keys: 1, wait: 2 * second, held: second}}},
	{name: "the second caller finds it busy", work: ignores(second), script: crowd(Done, Busy), ran: 1, took: second, keys: one,
		events: []event{{outcome: "busy", keys: 1, refused: guard.ErrBusy}, {outcome: "ok", keys: 1, held: second}}},
	{name: "two permits", options: options(guard.Limit(2)), work: ignores(second), script: crowd(Done, Done, Busy), ran: 2, took: second, keys: []string{"order:7", "order:7"},
		events: []event{{outcome: "busy", keys: 1, refused: guard.ErrBusy}, {outcome: "ok", keys: 1, held: second}, {outcome: "ok", keys: 1, held: second}}},
	{name: "readers share", options: options(guard.Read()), work: ignores(second), script: crowd(Done, Done), ran: 2, took: second, keys: []string{"order:7", "order:7"},
		events: []event{{outcome: "ok", keys: 1, held: second}, {outcome: "ok", keys: 1, held: second}}},
	{name: "other keys", script: func(s *scene) {
		s.expect(s.Context(), "7", Done)
		s.expect(s.Context(), "8", Done)
	}, ran: 2, keys: []string{"order:7", "order:8"}, events: []event{{outcome: "ok", keys: 1}, {outcome: "ok", keys: 1}}},
	{name: "after a panic the lock is free", work: panicsOnce, script: func(s *scene) {
		s.expect(s.Context(), "7", Panicked)
		s.expect(s.Context(), "7", Done)
	}, ran: 2, keys: []string{"order:7", "order:7"}, events: []event{{outcome: "panic", keys: 1}, {outcome: "ok", keys: 1}}},

	// Lifecycles.
	{name: "hold at least", options: options(guard.HoldAtLeast(3 * second)), work: ignores(second), script: func(s *scene) {
		s.expect(s.Context(), "7", Done)
		s.expect(s.Context(), "7", Busy)
		<-time.After(3 * second)
		s.expect(s.Context(), "7", Done)
	}, ran: 2, took: 5 * second, keys: []string{"order:7", "order:7"},
		events: []event{{outcome: "ok", keys: 1, held: second}, {outcome: "busy", keys: 1, refused: guard.ErrBusy}, {outcome: "ok", keys: 1, held: second}}},
	{name: "hold at least, but the work fails", options: options(guard.HoldAtLeast(3 * second)), work: failsOnce, script: func(s *scene) {
		s.expect(s.Context(), "7", Failed)
		s.expect(s.Context(), "7", Done)
	}, ran: 2, keys: []string{"order:7", "order:7"}, events: []event{{outcome: "error", keys: 1}, {outcome: "ok", keys: 1}}},
	{name: "one may wait", options: options(guard.Wait(guard.Forever), guard.Waiters(1)), work: ignores(second), script: crowd(Done, Done, Busy), ran: 2, took: 2 * second,
		keys:   []string{"order:7", "order:7"},
		events: []event{{outcome: "busy", keys: 1, refused: guard.ErrBusy}, {outcome: "ok", keys: 1, held: second}, {outcome: "ok", keys: 1, wait: second, held: second}}},
	{name: "replaced", options: options(guard.Busy(guard.Replace)), work: replaceable, script: crowd(Replaced, Done), ran: 2, took: second,
		keys:   []string{"order:7", "order:7"},
		events: []event{{outcome: "replaced", keys: 1}, {outcome: "ok", keys: 1, held: second}}},
	{name: "replaced, but the work goes on", options: options(guard.Busy(guard.Replace)), work: ignores(second), script: crowd(Done, Done), ran: 2, took: 2 * second,
		keys:   []string{"order:7", "order:7"},
		events: []event{{outcome: "ok", keys: 1, held: second}, {outcome: "ok", keys: 1, wait: second, held: second}}},
	{name: "replaced while waiting", options: options(guard.Busy(guard.Replace)), work: ignores(second), script: crowd(Done, Replaced, Done), ran: 2, took: 2 * second,
		keys:   []string{"order:7", "order:7"},
		events: []event{{outcome: "replaced", keys: 1}, {outcome: "ok", keys: 1, held: second}, {outcome: "ok", keys: 1, wait: second, held: second}}},

	// Levers.
	{name: "switched off", faults: down, options: options(guard.Switchable()), work: stranger, script: func(s *scene) {
		s.switchTo(guard.Off)
		s.expect(s.Context(), "", Done)
	}, ran: 1, events: []event{{outcome: "off"}}},
	{name: "shadow", options: options(guard.Switchable()), work: longer, script: func(s *scene) {
		s.switchTo(guard.Shadow)
		crowd(Done, Done)(s)
	}, ran: 2, took: 2 * second, keys: []string{"latchkey-shadow:order:7"}, events: []event{{outcome: "shadow", keys: 1}, {outcome: "shadow", keys: 1, refused: guard.ErrBusy}}},
	{name: "shadow of an outage", faults: down, options: options(guard.Switchable()), work: ignores(second), script: func(s *scene) {
		s.switchTo(guard.Shadow)
		s.expect(s.Context(), "7", Done)
	}, ran: 1, took: second, events: []event{{outcome: "shadow", keys: 1, refused: guard.ErrOutage}}},
	{name: "drain", options: options(guard.Wait(guard.Forever), guard.Outage(guard.RunUnlocked)), work: ignores(second), script: drains, ran: 1, took: second, keys: one,
		events: []event{{outcome: "draining", keys: 1}, {outcome: "draining"}, {outcome: "ok", keys: 1, held: second}}},
}

// crowd begins calls of one key, one after the other, and waits for all.
func crowd(want ...Class) func(*scene) {
	return func(s *scene) {
		var ends []func()
		for _, class := range want {
			ends = append(ends, s.begin(class))
		}
		for _, end := range ends {
			end()
		}
	}
}

// nests is work that calls itself once more.
func nests(ctx context.Context, s *scene) error {
	if s.ran == 1 {
		s.expect(ctx, "7", Done)
	}
	return nil
}

func failsOnce(_ context.Context, s *scene) error {
	if s.ran == 1 {
		return ErrOwn
	}
	return nil
}

// replaceable is work that heeds its context the first time, and takes a second the next.
func replaceable(ctx context.Context, s *scene) error {
	if s.ran == 1 {
		return heeds(time.Minute)(ctx, s)
	}
	return heeds(second)(ctx, s)
}

func panicsOnce(_ context.Context, s *scene) error {
	if s.ran == 1 {
		panic(errPanic)
	}
	return nil
}

func (s *scene) switchTo(m guard.Mode) {
	if err := s.registry.Switch("order.settle", m); err != nil {
		s.Error(err)
	}
}

// drains has one call that runs, one that waits for it, and one that comes later.
func drains(s *scene) {
	runs, waits := s.begin(Done), s.begin(Unavailable)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		if report, err := s.registry.Drain(s.Context()); err != nil || report.Refused != 2 || report.Took != time.Second {
			s.Errorf("Drain = %+v, %v", report, err)
		}
	}()
	waits()
	s.expect(s.Context(), "7", Unavailable)
	<-drained
	runs()
}
