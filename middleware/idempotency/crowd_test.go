package idempotency_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware/idempotency"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// serviceVariable has the test binary be an instance of the service: its Redis.
const serviceVariable = "LATCHKEY_TEST_SERVICE"

func TestMain(m *testing.M) {
	if url := os.Getenv(serviceVariable); url != "" {
		if err := beService(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// lease is how long a lock outlives its process here, which is 30s by default.
const lease = time.Second

// instance is what each process of the service serves at /.
func instance(l lock.Locker, s idempotency.Store, h http.HandlerFunc, opts ...idempotency.Option) (http.Handler, error) {
	g, err := guard.New(l, guard.Name("order.pay"), guard.Key("pay:#{idempotency}"))
	if err != nil {
		return nil, err
	}
	once, err := idempotency.New(g, s, callerOf, opts...)
	if err != nil {
		return nil, err
	}
	return once(h), nil
}

// onRedis is an instance whose locks and records are in Redis.
func onRedis(url string, watchdog time.Duration, h http.HandlerFunc, opts ...idempotency.Option) (http.Handler, func(), error) {
	client, err := redisson.Open(url, redisson.WatchdogTimeout(watchdog))
	if err != nil {
		return nil, nil, err
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, nil, err
	}
	rdb := redis.NewClient(o)
	store, err := idempotency.NewRedis(rdb, "shop:")
	if err != nil {
		return nil, nil, err
	}
	handler, err := instance(client, store, h, opts...)
	return handler, func() { _, _ = client.Close(), rdb.Close() }, err
}

// work counts in Redis how often it was done.
func work(ctx context.Context, url string) error {
	o, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(o)
	defer rdb.Close()
	return rdb.Incr(ctx, "worked").Err()
}

// beService does the work of a request, and never answers.
func beService(url string) error {
	handler, done, err := onRedis(url, lease, func(_ http.ResponseWriter, r *http.Request) {
		if err := work(r.Context(), url); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		fmt.Println("worked")
		select {}
	})
	if err != nil {
		return err
	}
	defer done()
	s := httptest.NewServer(handler)
	fmt.Println(s.URL)
	_, err = io.Copy(io.Discard, os.Stdin) // until the parent ends
	return err
}

// TestKilledProcess kills a process between the work and its answer. Whoever sends the request again is told, unless it is repeatable.
func TestKilledProcess(t *testing.T) {
	for _, repeatable := range []bool{false, true} {
		t.Run(fmt.Sprintf("repeatable %v", repeatable), func(t *testing.T) {
			t.Parallel()
			url := "redis://" + redistest.Start(t).Addr
			killAtWork(t, url)
			var opts []idempotency.Option
			if repeatable {
				opts = append(opts, idempotency.Repeatable())
			}
			handler, done, err := onRedis(url, lease, func(w http.ResponseWriter, r *http.Request) {
				if err := work(r.Context(), url); err != nil {
					t.Error(err)
				}
				paid(w, r)
			}, opts...)
			if err != nil {
				t.Fatal(err)
			}
			defer done()
			s := &shop{Server: httptest.NewServer(handler)}
			defer s.Close()
			a, busy := s.send(t, call{path: "/"}), 0
			for ; bytes.Contains(a.body, []byte("ErrInFlight")); a = s.send(t, call{path: "/"}) { // the dead one's lock is there for a while
				wantProblem(t, a, 409, "ErrInFlight")
				busy++
				time.Sleep(10 * time.Millisecond)
			}
			want := "1"
			if repeatable {
				want = "2"
				if a.status != 201 || !s.send(t, call{path: "/"}).replayed() {
					t.Errorf("repeat = %d %s", a.status, a.body)
				}
			} else {
				wantProblem(t, a, 409, "ErrUnknown")
			}
			if busy == 0 {
				t.Error("the lock of the dead one was free at once")
			}
			if got := workedSoFar(t, url); got != want {
				t.Errorf("worked %s times, want %s", got, want)
			}
		})
	}
}

func workedSoFar(t *testing.T, url string) string {
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(o)
	defer rdb.Close()
	return rdb.Get(t.Context(), "worked").Val()
}

// killAtWork starts a process, sends it a request, and kills it when the work is done and nothing is answered.
func killAtWork(t *testing.T, url string) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), serviceVariable+"="+url)
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, services.DieWithParent(syscall.SIGKILL)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var at string
	if _, err := fmt.Fscanln(out, &at); err != nil {
		t.Fatal(err)
	}
	s := &shop{Server: &httptest.Server{URL: at}}
	answered := make(chan error, 1)
	go func() {
		res, err := http.DefaultTransport.RoundTrip(call{path: "/"}.request(t, t.Context(), s.URL))
		if err == nil {
			res.Body.Close()
		}
		answered <- err
	}()
	if _, err := fmt.Fscanln(out, &at); err != nil || at != "worked" {
		t.Fatalf("it said %q, %v", at, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err := <-answered; err == nil {
		t.Error("a dead process has answered")
	}
}

// TestCrowd has many clients repeat one request at once, at two instances. The work is done once, and all have its answer or are told
// to come again.
func TestCrowd(t *testing.T) {
	locks, records := memlock.New(), idempotency.NewMemory(0)
	url := "redis://" + redistest.Any(t).Addr
	for _, tt := range []struct {
		name  string
		serve func(http.HandlerFunc) (http.Handler, func(), error)
	}{
		{"memory", func(h http.HandlerFunc) (http.Handler, func(), error) {
			handler, err := instance(locks, records, h)
			return handler, func() {}, err
		}},
		{"redis", func(h http.HandlerFunc) (http.Handler, func(), error) { return onRedis(url, 30*time.Second, h) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var runs atomic.Int32
			var instances []*shop
			for range 2 {
				handler, done, err := tt.serve(func(w http.ResponseWriter, r *http.Request) {
					runs.Add(1)
					paid(w, r)
				})
				if err != nil {
					t.Fatal(err)
				}
				defer done()
				s := &shop{Server: httptest.NewServer(handler)}
				defer s.Close()
				instances = append(instances, s)
			}
			crowd(t, instances)
			if n := runs.Load(); n != 1 {
				t.Errorf("the work was done %d times", n)
			}
		})
	}
}

func crowd(t *testing.T, instances []*shop) {
	const clients = 300
	var all sync.WaitGroup
	var mu sync.Mutex
	ways := map[string]int{}
	for i := range clients {
		all.Go(func() {
			for try := time.Duration(1); ; try++ {
				a := instances[i%2].send(t, call{path: "/"})
				way := "first"
				switch {
				case a.status == 409 && strings.Contains(string(a.body), "ErrInFlight") && a.header.Get("Retry-After") != "",
					a.status == 503 && a.header.Get("Retry-After") != "": // of a busy machine
					way = "later"
				case a.status != 201 || string(a.body) != `{"paid": {"cents": 100}}`:
					t.Errorf("answer = %d %s", a.status, a.body)
				case a.replayed():
					way = "replayed"
				}
				mu.Lock()
				ways[way]++
				mu.Unlock()
				if way != "later" {
					return
				}
				time.Sleep(rand.N(10 * try * time.Millisecond)) // or the crowd keeps itself out
			}
		})
	}
	all.Wait()
	if ways["first"] != 1 || ways["replayed"] != clients-1 {
		t.Errorf("answers: %v, want one first and all others replayed", ways)
	}
}
