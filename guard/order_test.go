package guard_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// house is a Registry with its log, and guards over one locker, by name.
type house struct {
	reg *guard.Registry
	log bytes.Buffer
	fns map[string]func(context.Context, []string) error
}

// houseOf makes guards of the names, each of which takes its own key, and then calls the guards that the request names, one inside of the other.
func houseOf(t *testing.T, opts ...guard.Option) *house {
	t.Helper()
	h := &house{fns: map[string]func(context.Context, []string) error{}}
	h.reg = newRegistry(t, guard.Log(slog.New(slog.NewTextHandler(&h.log, &slog.HandlerOptions{Level: slog.LevelWarn}))))
	l := memlock.New()
	for _, name := range []string{"a", "b", "c"} {
		g := guard.Must(guard.New(l, append([]guard.Option{guard.In(h.reg), guard.Name(name), guard.Key(name + ":#{req[0]}"), guard.Switchable()}, opts...)...))
		h.fns[name] = guard.Must(guard.Action(g, h.under))
	}
	return h
}

// under calls the first of the guards that are named, which calls the others.
func (h *house) under(ctx context.Context, names []string) error {
	if len(names) == 1 {
		return nil
	}
	return h.fns[names[1]](ctx, names[1:])
}

// call calls guards by the letters of path, from the outermost on.
func (h *house) call(t *testing.T, path string) {
	t.Helper()
	if err := h.under(t.Context(), append([]string{""}, strings.Split(path, "")...)); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

func (h *house) warnings() int { return strings.Count(h.log.String(), "taken in both orders") }

// Two guards that are taken in both orders are said to be, once, with their names and what to do.
func TestBothOrdersAreSaidOnce(t *testing.T) {
	h := houseOf(t)
	h.call(t, "ab")
	h.call(t, "bc")
	h.call(t, "ac")
	if h.warnings() != 0 {
		t.Errorf("one order: %s", &h.log)
	}
	h.call(t, "ba")
	for _, want := range []string{"level=WARN", "guard=a", "under=b", "take them in one order, or declare both keys in one guard"} {
		if !strings.Contains(h.log.String(), want) {
			t.Errorf("log %q lacks %q", &h.log, want)
		}
	}
	for range 3 {
		h.call(t, "ba")
		h.call(t, "ab")
	}
	if h.warnings() != 1 {
		t.Errorf("said %d times, want once:\n%s", h.warnings(), &h.log)
	}
	h.call(t, "ca") // c under b under a was seen, and a under c is new
	if h.warnings() != 2 || !strings.Contains(h.log.String(), "under=c") {
		t.Errorf("another pair:\n%s", &h.log)
	}
}

// The order in a Stack counts, also against that of calls.
func TestOrderInAStack(t *testing.T) {
	l := memlock.New()
	var log bytes.Buffer
	reg := newRegistry(t, guard.Log(slog.New(slog.NewTextHandler(&log, nil))))
	declare := func(name string) *guard.Guard {
		return guard.Must(guard.New(l, guard.In(reg), guard.Name(name), guard.Key(name+":#{req.ID}")))
	}
	a, b := declare("a"), declare("b")
	ab := guard.Must(guard.Func(guard.Must(guard.Stack(a, b)), settled))
	inner := guard.Must(guard.Func(a, settled))
	ba := guard.Must(guard.Func(b, func(ctx context.Context, o Order) (string, error) { return inner(ctx, o) }))
	for _, fn := range []work{ab, ba} {
		if _, err := fn(t.Context(), Order{ID: "7"}); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(log.String(), "guard=a under=b") {
		t.Errorf("log %q", &log)
	}
}

// What can't make two calls wait for each other is no order.
func TestNoOrders(t *testing.T) {
	for name, run := range map[string]func(h *house){
		"re-entered":             func(h *house) { h.call(t, "aba"); h.call(t, "aa"); h.call(t, "aaba") },
		"one after the other":    func(h *house) { h.call(t, "a"); h.call(t, "b"); h.call(t, "a") },
		"of an outer guard only": func(h *house) { h.call(t, "ab"); h.call(t, "cb"); h.call(t, "ac") },
		"the outer guard is off": func(h *house) {
			h.call(t, "ab")
			_ = h.reg.Switch("b", guard.Off)
			h.call(t, "ba")
		},
		"the outer guard is a shadow": func(h *house) {
			h.call(t, "ab")
			_ = h.reg.Switch("b", guard.Shadow)
			h.call(t, "ba")
		},
		"the inner guard is a shadow": func(h *house) {
			h.call(t, "ab")
			_ = h.reg.Switch("a", guard.Shadow)
			h.call(t, "ba")
		},
	} {
		h := houseOf(t)
		if run(h); h.warnings() != 0 {
			t.Errorf("%s: %s", name, &h.log)
		}
	}
	readers := houseOf(t, guard.Read())
	readers.call(t, "ab")
	if readers.call(t, "ba"); readers.warnings() != 0 {
		t.Errorf("readers: %s", &readers.log)
	}
}

// Work that goes on with the context of a call that has ended is not under that call's lock, also where an outer call still runs.
func TestNoOrderAfterTheEnd(t *testing.T) {
	var log bytes.Buffer
	l, reg := memlock.New(), newRegistry(t, guard.Log(slog.New(slog.NewTextHandler(&log, nil))))
	var kept context.Context
	under := func(ctx context.Context, g *guard.Guard, fn func(context.Context)) {
		_, err := guard.Do(ctx, g, struct{}{}, func(ctx context.Context) (string, error) { fn(ctx); return "", nil })
		if err != nil {
			t.Error(err)
		}
	}
	declare := func(name string) *guard.Guard {
		return guard.Must(guard.New(l, guard.In(reg), guard.Name(name), guard.Key(name)))
	}
	a, b, ended := declare("a"), declare("b"), declare("ended")
	keep := func(ctx context.Context) { kept = ctx }
	under(t.Context(), b, func(ctx context.Context) { under(ctx, ended, keep) })
	under(t.Context(), a, func(ctx context.Context) {
		under(ctx, ended, keep)
		under(context.WithoutCancel(kept), b, keep)
	})
	if log.Len() > 0 {
		t.Errorf("log %s", &log)
	}
}

// Of many calls at once, one says it.
func TestBothOrdersAtOnce(t *testing.T) {
	h := houseOf(t, guard.Wait(guard.Forever), guard.Busy(guard.RunUnlocked), guard.MaxHold(1e9))
	var calls sync.WaitGroup
	for i := range 64 {
		calls.Go(func() {
			path := []string{"a", "b"}
			if i%2 == 0 {
				path = []string{"b", "a"}
			}
			held, unheld := path[0], path[1]
			// Each call has keys of its own, so that none waits.
			own := strings.Repeat("k", i+1)
			_ = h.fns[held](t.Context(), []string{own, unheld})
		})
	}
	calls.Wait()
	if h.warnings() != 1 {
		t.Errorf("said %d times:\n%s", h.warnings(), &h.log)
	}
}
