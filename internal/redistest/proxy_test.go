package redistest

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// fronted returns a proxy, a client that goes through it and tries each command once, and one that goes around it.
func fronted(t *testing.T) (p *Proxy, behind, direct *redis.Client) {
	t.Helper()
	s := Any(t)
	p = s.Front(t)
	return p, s.Client(t, func(o *redis.Options) {
		o.Addr, o.MaxRetries, o.ReadTimeout, o.ContextTimeoutEnabled = p.Addr, -1, 10*time.Second, true
	}), s.Client(t)
}

func expectValue(t *testing.T, rdb *redis.Client, key, want string) {
	t.Helper()
	if got, err := rdb.Get(t.Context(), key).Result(); got != want || err != nil && !errors.Is(err, redis.Nil) {
		t.Errorf("%s = %q, %v; want %q", key, got, err, want)
	}
}

func TestKeptBackRequestArrivesWhenDelivered(t *testing.T) {
	p, behind, direct := fronted(t)
	ctx := t.Context()
	late := p.KeepBack("kept", 1)
	if err := behind.Set(ctx, "kept", "first", 0).Err(); err != nil {
		t.Errorf("the request before it: %v", err)
	}
	if err := behind.Set(ctx, "other", "1", 0).Err(); err != nil || late.Taken() {
		t.Errorf("another request: %v, taken %v", err, late.Taken())
	}
	if err := behind.Set(ctx, "kept", "second", 0).Err(); err == nil {
		t.Error("the request that was kept back was answered")
	}
	late.Await(t)
	expectValue(t, direct, "kept", "first")
	if err := behind.Set(ctx, "kept", "third", 0).Err(); err != nil {
		t.Errorf("the request after it: %v", err)
	}
	late.Deliver(t)
	expectValue(t, direct, "kept", "second")
	direct.Del(ctx, "kept")
	late.Deliver(t)
	expectValue(t, direct, "kept", "")
}

func TestRequestsKeptBackAreCountedTogether(t *testing.T) {
	p, behind, _ := fronted(t)
	lates := []*Late{p.KeepBack("kept", 0), p.KeepBack("kept", 0), p.KeepBack("kept", 3)}
	for i, answered := range []bool{false, false, true, false, true} {
		if err := behind.Get(t.Context(), "kept").Err(); errors.Is(err, redis.Nil) != answered {
			t.Errorf("request %d: %v", i+1, err)
		}
	}
	for i, l := range lates {
		if !l.Taken() {
			t.Errorf("nothing was kept back for number %d", i+1)
		}
	}
}

func TestKeptBackSilently(t *testing.T) {
	p, behind, direct := fronted(t)
	late := p.KeepBackSilently("kept", 0)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := behind.Set(ctx, "kept", "x", 0).Err()
	if ne, ok := errors.AsType[net.Error](err); !ok || !ne.Timeout() {
		t.Errorf("Set = %v, want a timeout: the connection was to stay open", err)
	}
	await(t, "the client has closed the connection", func() bool { open, _ := p.Connections(); return open == 0 })
	late.Deliver(t)
	expectValue(t, direct, "kept", "x")
}

func TestKeptBackReply(t *testing.T) {
	p, behind, direct := fronted(t)
	late := p.KeepBackReply("kept", 0)
	var all sync.WaitGroup
	delivered := make(chan struct{})
	all.Go(func() {
		if err := behind.Set(t.Context(), "kept", "x", 0).Err(); err != nil {
			t.Error(err)
		}
		select {
		case <-delivered:
		default:
			t.Error("the answer came before Deliver")
		}
	})
	late.Await(t)
	expectValue(t, direct, "kept", "x")
	expectValue(t, behind, "kept", "x") // on another connection
	close(delivered)
	late.Deliver(t)
	all.Wait()
}

func TestDelayIsThatOfEachPiece(t *testing.T) {
	p, behind, _ := fronted(t)
	ping := func() {
		if err := behind.Ping(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	}
	ping()
	const each = 50 * time.Millisecond
	p.Delay(each)
	start := time.Now()
	var all sync.WaitGroup
	for range 5 {
		all.Go(ping)
	}
	all.Wait()
	ping()
	if d := time.Since(start); d < 4*each {
		t.Errorf("two round trips took %v with a delay of %v", d, each)
	}
	open, made := p.Connections()
	if open < 1 || open > 5 || made < open {
		t.Errorf("%d connections open of %d, want 1 to 5", open, made)
	}
}

// setWhileFrozen sets k from old to new through a frozen proxy, and returns when the client has given up.
func setWhileFrozen(t *testing.T, p *Proxy, behind *redis.Client) {
	t.Helper()
	if err := behind.Set(t.Context(), "k", "old", 0).Err(); err != nil {
		t.Fatal(err)
	}
	p.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := behind.Set(ctx, "k", "new", 0).Err(); err == nil {
		t.Error("an answer while all is frozen")
	}
}

func TestFrozenRequestIsLate(t *testing.T) {
	p, behind, direct := fronted(t)
	setWhileFrozen(t, p, behind)
	expectValue(t, direct, "k", "old")
	p.Thaw()
	await(t, "the request arrives", func() bool { return direct.Get(context.Background(), "k").Val() == "new" })
}

func TestDroppedRequestIsLost(t *testing.T) {
	p, behind, direct := fronted(t)
	setWhileFrozen(t, p, behind)
	p.Drop()
	p.Thaw()
	await(t, "the connection is gone", func() bool { open, _ := p.Connections(); return open == 0 })
	expectValue(t, direct, "k", "old")
}

// A client that has gone before its answer came takes nothing along: the answer to the next such request is kept back.
func TestKeptBackReplyOfWhoComesAgain(t *testing.T) {
	p, behind, _ := fronted(t)
	p.Delay(20 * time.Millisecond)
	late := p.KeepBackReply("kept", 0)
	gone, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	_, err = gone.Write([]byte("*2\r\n$4\r\nECHO\r\n$4\r\nkept\r\n"))
	if err := errors.Join(err, gone.Close()); err != nil {
		t.Fatal(err)
	}
	await(t, "the proxy has seen that", func() bool { open, made := p.Connections(); return made == 1 && open == 0 })
	answer := make(chan error, 1)
	go func() { answer <- behind.Echo(t.Context(), "kept").Err() }()
	late.Await(t)
	select {
	case err := <-answer:
		t.Errorf("the answer came before Deliver, %v", err)
	default:
	}
	late.Deliver(t)
	if err := <-answer; err != nil {
		t.Error(err)
	}
}
