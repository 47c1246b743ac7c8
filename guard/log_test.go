package guard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

// logText returns a logger without times, and what it has written so far.
func logText() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "wait" || a.Key == "held" {
				return slog.Attr{}
			}
			return a
		},
	})), &b
}

// TestLog holds that a person on call sees what needs one, why it happened, and no key.
func TestLog(t *testing.T) {
	const secret = "customer-4711"
	quotes := fmt.Errorf("READONLY order:%s", secret)
	refuses := func(err error) func(*spy) {
		return func(l *spy) { l.refuse = map[string]error{"order:" + secret: err} }
	}
	fails := func(err error) func(*spy) {
		return func(l *spy) { l.failing = map[string]error{"order:" + secret: err} }
	}
	tests := []struct {
		id   string
		set  func(*spy)
		work work
		opts []guard.Option
		want string // begins the line, up to the reason
		why  string // in the reason
	}{
		{secret, nil, settled, nil, `level=DEBUG msg="guard: call" guard=order.settle outcome=ok`, ""},
		{secret, nil, func(context.Context, Order) (string, error) { return "", quotes }, nil,
			`level=DEBUG msg="guard: call" guard=order.settle outcome=error`, ""},
		{secret, nil, func(context.Context, Order) (string, error) { panic(quotes) }, nil,
			`level=ERROR msg="guard: failed" guard=order.settle outcome=panic`, ""},
		{"", nil, settled, nil, `level=INFO msg="guard: refused, no key from this request" guard=order.settle outcome=key`, "req.ID"},
		{secret, refuses(lock.ErrBusy), settled, nil, `level=INFO msg="guard: refused, held by others" guard=order.settle outcome=busy`, "held by others"},
		{secret, refuses(quotes), settled, []guard.Option{guard.Outage(guard.RunUnlocked)},
			`level=WARN msg="guard: ran without the lock" guard=order.settle outcome=unlocked`, "READONLY <key>"},
		{secret, refuses(quotes), settled, nil,
			`level=ERROR msg="guard: refused, the lock service did not answer" guard=order.settle outcome=outage`, "READONLY <key>"},
		{secret, fails(lock.ErrLost), settled, nil,
			`level=ERROR msg="guard: lost the lock while the work ran" guard=order.settle outcome=lost`, "lost"},
		{secret, fails(quotes), settled, nil, `level=WARN msg="guard: call" guard=order.settle outcome=ok release="READONLY <key>"`, ""},
	}
	for _, tt := range tests {
		l := newSpy()
		if tt.set != nil {
			tt.set(l)
		}
		logger, text := logText()
		settle, _ := guarded(t, l, tt.work, append(tt.opts, guard.Log(logger))...)
		func() {
			defer func() { _ = recover() }()
			_, _ = settle(t.Context(), Order{ID: tt.id})
		}()
		got := text.String()
		if !strings.HasPrefix(got, tt.want) || strings.Count(got, "\n") != 1 || !strings.Contains(got, tt.why) {
			t.Errorf("log = %q, want one line %q that says %q", got, tt.want, tt.why)
		}
		if hasReason := strings.Contains(got, "reason="); hasReason != (tt.why != "") {
			t.Errorf("log = %q, want a reason: %v", got, tt.why != "")
		}
		if strings.Contains(got, secret) {
			t.Errorf("log = %q has the key", got)
		}
	}
}

// TestLogOfPolicies holds that a busy lock is no news where a policy says what to do then, but for work that ran without the lock.
func TestLogOfPolicies(t *testing.T) {
	instead := guard.Fallback(func(context.Context, Order, error) (string, error) { return "", nil })
	down := errors.New("down")
	for _, tt := range []struct {
		refused error
		policy  guard.Option
		want    string
	}{
		{lock.ErrBusy, guard.Busy(guard.Skip), `level=INFO msg="guard: skipped without the lock"`},
		{lock.ErrBusy, instead, `level=INFO msg="guard: ran the fallback without the lock"`},
		{lock.ErrBusy, guard.Busy(guard.RunUnlocked), `level=WARN msg="guard: ran without the lock"`},
		{down, guard.Outage(guard.Skip), `level=WARN msg="guard: skipped without the lock"`},
		{down, instead, `level=WARN msg="guard: ran the fallback without the lock"`},
		{down, guard.Outage(guard.RunUnlocked), `level=WARN msg="guard: ran without the lock"`},
	} {
		l := newSpy()
		l.refuse = map[string]error{"order:7": tt.refused}
		logger, text := logText()
		settle, _ := guarded(t, l, settled, guard.Log(logger), tt.policy)
		_, _ = settle(t.Context(), Order{ID: "7"})
		if !strings.HasPrefix(text.String(), tt.want) || !strings.Contains(text.String(), "reason=") {
			t.Errorf("%v: log = %s, want %s and a reason", tt.refused, text, tt.want)
		}
	}
}

// TestLogOfShadows holds that in shadow mode a busy lock is what is measured, and all else a reason to look before the guard is switched on.
func TestLogOfShadows(t *testing.T) {
	for _, tt := range []struct {
		refused error
		level   string
	}{{nil, "DEBUG"}, {lock.ErrBusy, "INFO"}, {errors.New("down"), "WARN"}, {lock.ErrUnsupported, "WARN"}} {
		synctest.Test(t, func(t *testing.T) {
			l := newSpy()
			l.refuse = map[string]error{"latchkey-shadow:order:7": tt.refused}
			logger, text := logText()
			settle, _ := shadowed(t, l, aSecond, guard.Log(logger))
			_, _ = settle(t.Context(), Order{ID: "7"})
			if !strings.HasPrefix(text.String(), "level="+tt.level+" ") {
				t.Errorf("%v: log = %q, want %s", tt.refused, text, tt.level)
			}
		})
	}
}

// TestBusyLinesLeaveRoomForOutages has more skipped calls in a minute than lines are written of, and then an outage.
func TestBusyLinesLeaveRoomForOutages(t *testing.T) {
	l := newSpy()
	l.refuse = map[string]error{"order:7": lock.ErrBusy, "order:8": errors.New("down")}
	logger, text := logText()
	settle, _ := guarded(t, l, settled, guard.Log(logger), guard.Busy(guard.Skip), guard.Outage(guard.Skip))
	for range 20 {
		_, _ = settle(t.Context(), Order{ID: "7"})
	}
	_, _ = settle(t.Context(), Order{ID: "8"})
	if info, warn := strings.Count(text.String(), "level=INFO"), strings.Count(text.String(), "level=WARN"); info != 10 || warn != 1 {
		t.Errorf("%d lines of INFO and %d of WARN, want 10 and 1:\n%s", info, warn, text)
	}
}

func TestLogKeysOnlyWhenAsked(t *testing.T) {
	l := newSpy()
	l.refuse = map[string]error{"order:7": errors.New("LOADING order:7")}
	logger, text := logText()
	settle, seen := guarded(t, l, settled, guard.LogKeys(logger))
	_, _ = settle(t.Context(), Order{ID: "7"})
	for _, want := range []string{"keys=[order:7]", "LOADING order:7"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("log = %q, want %s in it", text, want)
		}
	}
	event := seen.only(t)
	event.Refused, event.Err = nil, nil
	if text := fmt.Sprintf("%+v %#v", event, event); strings.Contains(text, "order:7") {
		t.Errorf("printing the event shows the key: %s", text)
	}
}

func TestLogWithoutLogger(t *testing.T) {
	if _, err := guard.New(newSpy(), guard.Name("a"), guard.Key("b"), guard.OneKey(), guard.Log(nil)); err == nil {
		t.Error("New with Log(nil) succeeded")
	}
}

// TestLogIsBounded has an outage of three minutes with a call each second, and a call of another kind.
func TestLogIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSpy()
		l.refuse = map[string]error{"order:7": errors.New("down"), "order:8": lock.ErrBusy}
		logger, text := logText()
		settle, _ := guarded(t, l, settled, guard.Log(logger))
		for range 180 {
			_, _ = settle(t.Context(), Order{ID: "7"})
			time.Sleep(time.Second)
		}
		_, _ = settle(t.Context(), Order{ID: "8"})
		_, _ = settle(t.Context(), Order{ID: "9"}) // DEBUG
		_, _ = settle(t.Context(), Order{ID: "9"})
		time.Sleep(time.Hour)
		_, _ = settle(t.Context(), Order{ID: "7"})
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if want := 3*10 + 3 + 1; len(lines) != want {
			t.Fatalf("%d lines, want %d:\n%s", len(lines), want, text)
		}
		for i, line := range lines {
			attribute := ""
			switch i {
			case 9, 19, 29:
				attribute = " pause=51s"
			case 10, 20, 33:
				attribute = " omitted=50"
			}
			if !strings.HasSuffix(line, attribute) || attribute == "" && (strings.Contains(line, "pause=") || strings.Contains(line, "omitted=")) {
				t.Errorf("line %d: %s, want %q at its end", i, line, attribute)
			}
		}
	})
}

// TestLogIsBoundedByGuard has two guards in an outage, which share the log of their registry.
func TestLogIsBoundedByGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, text := logText()
		reg := newRegistry(t, guard.Log(logger))
		l := newSpy()
		l.refuse = map[string]error{"7": errors.New("down")}
		for _, name := range []string{"a", "b"} {
			settle := guard.Must(guard.Func(guard.Must(guard.New(l, guard.In(reg), guard.Name(name), guard.Key("#{req.ID}"))), settled))
			var calls sync.WaitGroup
			for range 100 {
				calls.Go(func() { _, _ = settle(t.Context(), Order{ID: "7"}) })
			}
			calls.Wait()
		}
		for _, name := range []string{"a", "b"} {
			if n := strings.Count(text.String(), "guard="+name+" "); n != 10 {
				t.Errorf("%d lines of guard %s, want 10", n, name)
			}
		}
	})
}
