package example

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/redisson"
)

// TestInterrupt ends a server while a request is under way. It is answered, no lock is left in Redis, and that is no failure.
func TestInterrupt(t *testing.T) {
	url := "redis://" + redistest.Any(t).Addr
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var handled atomic.Bool
	started := make(chan struct{}, 1)
	answers := make(chan string, 1)
	err := with(ctx, []string{"-redis", url}, func(ctx context.Context, locker lock.Locker, _ io.Writer) error {
		g := guard.Must(guard.New(locker, guard.Name("slow"), guard.Key("slow:#{method}")))
		slow := guard.Must(middleware.New(g))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			started <- struct{}{}
			<-ctx.Done() // the interrupt, which is none of the request's
			for err := error(nil); err == nil; {
				var c net.Conn
				if c, err = net.Dial("tcp", r.Host); err == nil {
					c.Close() // the server still listens
				}
			}
			handled.Store(true)
			fmt.Fprint(w, "done ", guard.Held(r.Context(), "slow"))
		}))
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		go func() { answers <- get("http://" + l.Addr().String()) }()
		go func() {
			<-started
			interrupt()
		}()
		err = serve(ctx, l, slow)
		if !handled.Load() {
			t.Error("the server has ended before its handler")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if got := <-answers; got != "done true" {
		t.Errorf("answer %q", got)
	}
	client := guard.Must(redisson.Open(url))
	defer client.Close()
	if locked, err := client.Lock("slow:GET").IsLocked(t.Context()); locked || err != nil {
		t.Errorf("still locked: %v, %v", locked, err)
	}
}

// TestInterruptIsNoFailure has work that is cut short, and work that fails by itself.
func TestInterruptIsNoFailure(t *testing.T) {
	for _, tt := range []struct {
		interrupted bool
		err         error
		fails       bool
	}{
		{true, context.Canceled, false},
		{true, io.ErrUnexpectedEOF, true},
		{false, context.Canceled, true},
		{false, nil, false},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		err := with(ctx, nil, func(context.Context, lock.Locker, io.Writer) error {
			if tt.interrupted {
				interrupt()
			}
			return tt.err
		})
		interrupt()
		if (err != nil) != tt.fails {
			t.Errorf("interrupted %v, %v: got %v", tt.interrupted, tt.err, err)
		}
	}
}

// The variable of the command line names the Redis of an example, too.
func TestVariableNamesRedis(t *testing.T) {
	t.Setenv("LATCHKEY_REDIS_URL", "redis://"+redistest.Any(t).Addr)
	locker, done, err := open(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = done() })
	if _, ok := locker.(*redisson.Client); !ok {
		t.Errorf("the locks are those of a %T", locker)
	}
}

func get(url string) string {
	res, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}
