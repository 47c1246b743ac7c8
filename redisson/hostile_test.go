package redisson_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// hostileServer answers every script with the same text, whatever that is.
type hostileServer struct {
	addr   string
	answer string
	asked  atomic.Int64 // how many scripts
}

func startHostile(t *testing.T, answer string) *hostileServer {
	t.Helper()
	s := &hostileServer{answer: answer}
	s.addr = startServing(t, func(conn net.Conn) { s.serve(conn) })
	return s
}

// startServing runs a server that serves each connection like that, and returns its address. It ends with the test.
func startServing(t *testing.T, serve func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return ""
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(t.Context(), func() { _ = conn.Close() })
			conns.Go(func() {
				defer stop()
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		conns.Wait()
	})
	return l.Addr().String()
}

func (s *hostileServer) serve(conn io.ReadWriter) {
	for r := bufio.NewReader(conn); ; {
		name, err := request(r)
		if err != nil {
			return
		}
		answer := "-ERR unknown command\r\n"
		switch name {
		case "evalsha", "eval":
			s.asked.Add(1)
			answer = s.answer
		case "wait":
			answer = ":1\r\n"
		case "client":
			answer = "+OK\r\n"
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

// request reads a command and returns its name.
func request(r *bufio.Reader) (name string, err error) {
	parts, err := number(r)
	for i := range parts {
		size, err := number(r)
		if err != nil {
			return "", err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return "", err
		}
		if i == 0 {
			name = strings.ToLower(string(text[:size]))
		}
	}
	return name, err
}

// number reads a line with a number behind its type.
func number(r *bufio.Reader) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

const (
	leastInt = "-9223372036854775808"
	mostInt  = "9223372036854775807"
)

// hostileAnswers are what no script of ours answers, at least not to all questions.
func hostileAnswers() []string {
	answers := []string{
		"*0\r\n", "*-1\r\n", "$-1\r\n", "+OK\r\n", ":1\r\n", "$2\r\nhi\r\n", "*1\r\n$2\r\nhi\r\n", "*2\r\n:1\r\n$-1\r\n", "*1\r\n*1\r\n:1\r\n",
		"*3\r\n:1\r\n:2\r\n+3\r\n", "-WRONGTYPE\r\n", "-ERR\r\n", "-NOSCRIPT\r\n",
		"$9223372036854775807\r\n", "*9223372036854775807\r\n", "%1\r\n:1\r\n:1\r\n", "(1\r\n", "HTTP/1.1 400 Bad Request\r\n", // the first two make go-redis panic
	}
	for _, a := range []string{"0", "1", "-1", "2", leastInt, mostInt} {
		answers = append(answers, integers(a), integers(a, leastInt), integers(a, mostInt, "-7"))
	}
	return append(answers, integers("1", "1", "1", "1", "1", "1", "1"))
}

func integers(all ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(all))
	for _, n := range all {
		b.WriteString(":" + n + "\r\n")
	}
	return b.String()
}

// A server that answers nonsense, because it is none of Redis' or something stands between, makes nothing panic, not in the
// background either, and nobody wait longer than declared.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	var rounds sync.WaitGroup
	defer rounds.Wait()
	for i, answer := range hostileAnswers() {
		rounds.Go(func() { testHostileAnswer(t, answer) })
		if i%8 == 7 {
			rounds.Wait()
		}
	}
}

func testHostileAnswer(t *testing.T, answer string) {
	s := startHostile(t, answer)
	for _, opts := range [][]redisson.Option{{}, {redisson.SyncReplicas(1, 10*time.Millisecond)}} {
		rdb := redis.NewClient(&redis.Options{Addr: s.addr, DisableIdentity: true, MaxRetries: -1})
		c, err := redisson.New(rdb, append(opts, redisson.WatchdogTimeout(60*time.Millisecond), redisson.Timeout(40*time.Millisecond))...)
		if err != nil {
			t.Error(err)
			return
		}
		var calls sync.WaitGroup
		for i, call := range slices.Concat(hostileLocks(c), hostileSynchronizers(c)) {
			calls.Go(func() {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("answer %q, call %d: panic: %v", answer, i, p)
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				start := time.Now()
				call(ctx)
				if took := ran(start); took > 5*time.Second {
					t.Errorf("answer %q, call %d: took %v", answer, i, took)
				}
			})
		}
		calls.Wait()
		if err := errors.Join(c.Close(), rdb.Close()); err != nil {
			t.Error(err)
		}
	}
	if s.asked.Load() == 0 {
		t.Error("the server was not asked")
	}
}

func hostileLocks(c *redisson.Client) (calls []func(context.Context)) {
	for _, r := range allKinds() {
		for _, wait := range []time.Duration{0, -1} {
			r.Wait = wait
			calls = append(calls, func(ctx context.Context) {
				h, err := c.Acquire(ctx, r)
				if err != nil {
					return
				}
				inner, err := c.Acquire(h.Context(), r)
				time.Sleep(25 * time.Millisecond) // for a renewal
				_ = h.(interface {
					Extend(context.Context, time.Duration) error
				}).Extend(ctx, time.Second)
				if err == nil {
					_ = inner.Release(ctx)
				}
				_ = h.Release(ctx)
			})
		}
		calls = append(calls, func(ctx context.Context) {
			_ = c.Peek(ctx, r)
			if _, leave, err := c.Replace(ctx, r); err == nil {
				time.Sleep(25 * time.Millisecond) // for a look
				leave()
			}
		})
	}
	l := c.Lock("k")
	return append(calls, func(ctx context.Context) {
		_, _ = l.IsLocked(ctx)
		_, _ = l.TTL(ctx)
		_, _ = l.ForceUnlock(ctx)
		_, _ = c.FencedLock("k").LastToken(ctx)
		_ = c.Ping(ctx)
	})
}

func hostileSynchronizers(c *redisson.Client) []func(context.Context) {
	s, p, l, r := c.Semaphore("k"), c.PermitExpirableSemaphore("k"), c.CountDownLatch("k"), c.RateLimiter("k")
	return []func(context.Context){
		func(ctx context.Context) { _ = s.Acquire(ctx, 1) },
		func(ctx context.Context) {
			_, _ = s.TryAcquire(ctx, 1, 0)
			_, _ = s.TrySetPermits(ctx, 1)
			_ = s.Release(ctx, 1)
			_, _ = s.DrainPermits(ctx)
			_, _ = s.AvailablePermits(ctx)
			_, _ = s.Delete(ctx)
		},
		func(ctx context.Context) { _, _ = p.AcquireN(ctx, 2, time.Second) },
		func(ctx context.Context) {
			id, _, _ := p.TryAcquire(ctx, 0, time.Second)
			_, _ = p.TrySetPermits(ctx, 1)
			_ = p.SetPermits(ctx, 1)
			_ = p.UpdateLease(ctx, id, time.Second)
			_ = p.Release(ctx, id)
			_, _ = p.AvailablePermits(ctx)
		},
		func(ctx context.Context) { _ = l.Await(ctx) },
		func(ctx context.Context) {
			_, _ = l.TrySetCount(ctx, 1)
			_ = l.CountDown(ctx)
			_, _ = l.Count(ctx)
		},
		func(ctx context.Context) { _ = r.Acquire(ctx, 1) },
		func(ctx context.Context) {
			_, _ = r.TryAcquire(ctx, 1, 0)
			_ = r.SetRate(ctx, redisson.Rate{Permits: 1, Interval: time.Second})
			_, _ = r.Rate(ctx)
			_, _ = r.AvailablePermits(ctx)
			_ = r.Release(ctx, 1)
		},
	}
}
