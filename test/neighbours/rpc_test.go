package neighbours

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc/codes"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// method is what a service does. A unary method sends once.
type method struct {
	name    string
	stream  bool
	do      func(ctx context.Context, m *meeting, send func(text string) error) error
	outcome string // ok if empty
	hangs   bool   // until the client gives up
}

// meeting is one call's play, between the service and the test.
type meeting struct {
	begun  chan struct{}
	losing func()
	runs   int
}

func (m *meeting) lose() {
	if m.losing != nil {
		m.losing()
	}
}

var methods = []method{
	{name: "small", do: func(_ context.Context, m *meeting, send func(string) error) error { m.lose(); return send("settled") }},
	{name: "large", do: func(_ context.Context, m *meeting, send func(string) error) error {
		m.lose()
		return send(strings.Repeat("all work and no play ", 2000))
	}},
	{name: "refuses", outcome: "error", do: func(_ context.Context, m *meeting, _ func(string) error) error {
		m.lose()
		return &failure{int(codes.FailedPrecondition), "no such order"}
	}},
	{name: "fails", outcome: "error", do: func(_ context.Context, m *meeting, _ func(string) error) error { m.lose(); return errPlain }},
	{name: "panics", outcome: "panic", do: func(_ context.Context, m *meeting, _ func(string) error) error { m.lose(); panic("on purpose") }},
	{name: "hangs", outcome: "error", hangs: true, do: func(ctx context.Context, m *meeting, _ func(string) error) error {
		m.lose()
		<-ctx.Done()
		return ctx.Err()
	}},
	{name: "messages", stream: true, do: messages(nil)},
	{name: "no messages", stream: true, do: func(_ context.Context, m *meeting, _ func(string) error) error { m.lose(); return nil }},
	{name: "messages and an error", stream: true, outcome: "error", do: messages(&failure{int(codes.DataLoss), "the rest is gone"})},
	{name: "an error", stream: true, outcome: "error", do: func(_ context.Context, m *meeting, _ func(string) error) error { m.lose(); return errPlain }},
}

func messages(err error) func(context.Context, *meeting, func(string) error) error {
	return func(_ context.Context, m *meeting, send func(string) error) error {
		_ = send("one")
		_ = send(strings.Repeat("two ", 5000))
		m.lose()
		if err := send("three"); err != nil {
			return err
		}
		return err
	}
}

// reply is what a client gets.
type reply struct {
	messages []string
	code     codes.Code // of the error, as gRPC and Connect number them
	text     string
	reason   string // in ErrorInfo
	retry    bool   // there is RetryInfo
	headers  string
}

func (r reply) String() string {
	short := make([]string, len(r.messages))
	for i, m := range r.messages {
		short[i] = fmt.Sprintf("%.10q of %d", m, len(m))
	}
	return fmt.Sprintf("%v, error %v %q, reason %s, retry %v, headers %s", short, r.code, r.text, r.reason, r.retry, r.headers)
}

// caller plays one call of m, as a client that has a tenant, or none.
type caller func(t *testing.T, ctx context.Context, m method, run *meeting, g *guard.Guard, tenant string) reply

// service is a program with one of the methods behind a guard, which may be nil, and call is its client.
type service struct {
	name string
	call func(t *testing.T, ctx context.Context, m method, run *meeting, g *guard.Guard, tenant string) reply
	open bool // the guard is never asked
}

var services = []service{
	{name: "connect over HTTP/1", call: callConnect(http1)},
	{name: "connect over HTTP/2", call: callConnect(http2)},
	{name: "gRPC of connect", call: callConnect(http2, connect.WithGRPC())},
	{name: "gateway to an endpoint", call: callGateway(false)},
	// RegisterOrdersHandlerServer calls the service itself. No interceptor runs, and so no guard: put guards into the service
	// (guard.Func) or in front of the gateway (package middleware), or let the gateway call a server.
	{name: "gateway in process", call: callGateway(true), open: true},
}

// TestServices plays all methods in all states, as TestNeighbours does.
func TestServices(t *testing.T) {
	n := 0
	for _, s := range services {
		t.Run(s.name, func(t *testing.T) {
			for _, m := range methods {
				without, _ := s.play(t, m, nil)
				for _, state := range states {
					if state.status != 0 && m.name != "small" && m.name != "messages" || state.midway && m.hangs {
						continue
					}
					n++
					with, a := s.play(t, m, &state)
					if wrong := s.judge(m, state, without, with, a); len(wrong) > 0 {
						t.Errorf("%s / %s / %s: %s\n\twithout: %v\n\twith:    %v\n\tguard:   %+v", s.name, m.name, state.name, strings.Join(wrong, "; "), without, with, a)
					}
				}
			}
		})
	}
	t.Logf("%d plays", n)
}

func (s service) play(t *testing.T, m method, st *state) (reply, account) {
	t.Helper()
	locker := memlock.New()
	run := &meeting{begun: make(chan struct{})}
	var events guardtest.Events
	var g *guard.Guard
	tenant := "acme"
	if st != nil {
		rec := guardtest.Record(locker, st.fault...)
		g = guard.Must(guard.New(rec, guard.Name("order.settle"), guard.Key(`order:#{req.id}:#{md.tenant}`), guard.Wait(time.Millisecond),
			guard.HoldAtLeast(time.Hour), guard.Observe(events.Observe)))
		tenant = st.tenant
		if st.midway {
			run.losing = func() { rec.Lose(theKey) }
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if m.hangs {
		go func() {
			select {
			case <-run.begun:
			case <-ctx.Done():
			}
			cancel()
		}()
	}
	r := s.call(t, ctx, m, run, g, tenant)
	held := locker.Peek(context.Background(), lock.Request{Key: theKey}) != nil
	return r, account{events.Outcomes(""), held, run.runs}
}

// refusals are the answers of a guard: a code of gRPC, and the reason.
var refusals = map[string]reply{
	"busy": {code: codes.Aborted, reason: "LOCK_BUSY"}, "outage": {code: codes.Unavailable, reason: "LOCK_OUTAGE"},
	"key": {code: codes.InvalidArgument, reason: "LOCK_KEY"}, "lost": {code: codes.Internal, reason: "LOCK_LOST"},
}

func (s service) judge(m method, st state, without, with reply, a account) (wrong []string) {
	if s.open {
		if fmt.Sprint(with) != fmt.Sprint(without) || len(a.outcomes) > 0 {
			wrong = append(wrong, "the guard was asked: say so where this program is described")
		}
		return wrong
	}
	outcome := cmp.Or(st.outcome, m.outcome, "ok")
	switch same, refusal := fmt.Sprint(with) == fmt.Sprint(without), refusals[st.outcome]; {
	case st.outcome == "" && !same:
		wrong = append(wrong, "another reply")
	case st.outcome == "" || st.outcome == "lost" && m.outcome != "" && same: // the method's own error
	case with.code != refusal.code || with.reason != refusal.reason || with.retry != st.retry:
		wrong = append(wrong, fmt.Sprintf("want %v %s", refusal.code, refusal.reason))
	case st.status != 0 && len(with.messages) > 0:
		wrong = append(wrong, "messages")
	}
	if len(a.outcomes) != 1 || a.outcomes[0] != outcome && (m.outcome != "panic" || a.outcomes[0] != "panic") {
		wrong = append(wrong, fmt.Sprintf("outcomes %q, want %s", a.outcomes, outcome))
	}
	if outcome != "lost" && a.held != (outcome == "ok") {
		wrong = append(wrong, fmt.Sprintf("the key is held for later: %v", a.held))
	}
	if (a.runs == 1) != (st.status == 0) {
		wrong = append(wrong, fmt.Sprintf("the method ran %d times", a.runs))
	}
	return wrong
}

// begin is the start of a method.
func (m method) begin(ctx context.Context, run *meeting, send func(string) error) error {
	run.runs++
	close(run.begun)
	return m.do(ctx, run, send)
}
