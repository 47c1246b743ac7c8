package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/etcdlock"
)

// link is a client's way to etcd through toxiproxy.
type link struct {
	tb    testing.TB
	proxy *toxiproxy.Proxy
}

func openLink(tb testing.TB, target string) *link {
	tb.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(server, "etcd", "127.0.0.1:0", target)
	if err := p.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Stop)
	return &link{tb, p}
}

// add spoils one direction with one of toxiproxy's toxics: upstream is what the client sends.
func (l *link) add(kind, stream string, attributes string) {
	l.tb.Helper()
	text := fmt.Sprintf(`{"type": %q, "stream": %q, "attributes": %s}`, kind, stream, attributes)
	if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
		l.tb.Fatal(err)
	}
}

func (l *link) mend() { l.proxy.Toxics.ResetToxics(context.Background()) }

// silence lets nothing through, and connections open.
func (l *link) silence(stream string) { l.add("timeout", stream, `{"timeout": 0}`) }

func TestHolderBehindACutNetworkIsToldBeforeTheNextOneStarts(t *testing.T) {
	parallel(t)
	c := single(t)
	const key = "cut"
	for _, streams := range [][]string{{"upstream"}, {"downstream"}, {"upstream", "downstream"}} {
		way := openLink(t, c.Members[0].Endpoint)
		l := locker(t, dial(t, way.proxy.Listen), etcdlock.Watchdog(4*time.Second), etcdlock.Timeout(2*time.Second))
		h := acquire(t, l, lock.Request{Key: key})
		for _, stream := range streams {
			way.silence(stream)
		}
		next := held(t, background(t.Context(), locker(t, dial(t, c.Endpoints()...)), lock.Request{Key: key, Wait: -1}))
		if h.Context().Err() == nil {
			t.Errorf("%v: two hold the lock", streams)
		}
		if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrLost) {
			t.Errorf("%v: cause = %v, want ErrLost", streams, cause)
		}
		release(t, next)
		way.mend()
	}
}

// A short cut is no loss: half of the renewals may fail.
func TestHolderSurvivesAShortCut(t *testing.T) {
	parallel(t)
	c := single(t)
	way := openLink(t, c.Members[0].Endpoint)
	l := locker(t, dial(t, way.proxy.Listen), etcdlock.Watchdog(9*time.Second), etcdlock.Timeout(3*time.Second))
	h := acquire(t, l, lock.Request{Key: "short-cut"})
	begun := time.Now()
	for time.Since(begun) < 10*time.Second && h.Context().Err() == nil {
		way.proxy.Stop()
		<-time.After(time.Second)
		if err := way.proxy.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * time.Second)
	}
	release(t, h)
}

// The answer to a question that has taken the lock is lost. What the Acquire has taken is given back as soon as that can be done.
func TestLostAnswersLeaveNothingBehind(t *testing.T) {
	parallel(t)
	c := single(t)
	client := dial(t, c.Endpoints()...)
	for _, tt := range []struct {
		key  string
		wait time.Duration
	}{{"lost-take", 0}, {"lost-enter", 300 * time.Millisecond}} {
		way := openLink(t, c.Members[0].Endpoint)
		l := locker(t, dial(t, way.proxy.Listen), etcdlock.Timeout(2*time.Second))
		release(t, acquire(t, l, lock.Request{Key: tt.key})) // connects, and leaves a spare lease
		seen := client.Watch(t.Context(), tt.key+"/", clientv3.WithPrefix(), clientv3.WithFilterDelete())
		way.silence("downstream")
		if _, err := l.Acquire(t.Context(), lock.Request{Key: tt.key, Wait: tt.wait}); outage(err) == nil {
			t.Errorf("%s: Acquire() = %v, want an outage", tt.key, err)
		}
		<-seen // what was asked was done
		way.mend()
		waiting(t, client, tt.key, 0)
		release(t, acquire(t, l, lock.Request{Key: tt.key, Wait: patience}))
	}
}

// The client repeats what was not answered, with the same outcome.
func TestAcquireSurvivesAnAnswerThatIsLost(t *testing.T) {
	parallel(t)
	c := single(t)
	client := dial(t, c.Endpoints()...)
	for _, wait := range []time.Duration{0, -1} {
		way := openLink(t, c.Members[0].Endpoint)
		l := locker(t, dial(t, way.proxy.Listen), etcdlock.Timeout(6*time.Second))
		const key = "answer-lost"
		release(t, acquire(t, l, lock.Request{Key: key}))
		way.silence("downstream")
		done := background(t.Context(), l, lock.Request{Key: key, Wait: wait})
		waiting(t, client, key, 1)
		way.proxy.Stop()
		way.mend()
		if err := way.proxy.Start(); err != nil {
			t.Fatal(err)
		}
		h := held(t, done)
		fails(t, locker(t, client), lock.Request{Key: key}, lock.ErrBusy)
		if n := len(line(t, client, key)); n != 1 {
			t.Errorf("%d entries, want one", n)
		}
		release(t, h)
		waiting(t, client, key, 0)
	}
}

// A watch whose stream is stuck says nothing. The waiter asks again after a while.
func TestWaiterSurvivesASilentWatch(t *testing.T) {
	parallel(t)
	c := single(t)
	client := dial(t, c.Endpoints()...)
	deaf := dial(t, c.Endpoints()...)
	deaf.Watcher = deafWatcher{deaf.Watcher}
	const key = "deaf"
	h := acquire(t, locker(t, client), lock.Request{Key: key})
	next := background(t.Context(), locker(t, deaf, etcdlock.Poll(200*time.Millisecond)), lock.Request{Key: key, Wait: -1})
	waiting(t, client, key, 2)
	release(t, h)
	release(t, held(t, next))
}

// deafWatcher never hears anything.
type deafWatcher struct{ clientv3.Watcher }

func (deafWatcher) Watch(context.Context, string, ...clientv3.OpOption) clientv3.WatchChan {
	return nil
}

func TestSlowNetworkIsNoOutage(t *testing.T) {
	parallel(t)
	c := single(t)
	way := openLink(t, c.Members[0].Endpoint)
	l := locker(t, dial(t, way.proxy.Listen))
	way.add("latency", "upstream", `{"latency": 150, "jitter": 50}`)
	way.add("latency", "downstream", `{"latency": 150, "jitter": 50}`)
	for range 3 {
		h := acquire(t, l, lock.Request{Key: "slow", Wait: -1})
		release(t, h)
	}
}
