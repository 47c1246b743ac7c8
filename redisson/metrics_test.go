package redisson_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// meters is a provider whose metrics stay in memory.
type meters struct {
	*sdkmetric.ManualReader
	option redisson.Option
}

func newMeters() meters {
	r := sdkmetric.NewManualReader()
	return meters{r, redisson.MeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(r)))}
}

// read returns the metrics by the last part of their names.
func (m meters) read(tb testing.TB) map[string]metricdata.Metrics {
	tb.Helper()
	var all metricdata.ResourceMetrics
	check(tb, m.Collect(context.Background(), &all))
	byName := map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		for _, one := range scope.Metrics {
			byName[strings.TrimPrefix(one.Name, "latchkey.redisson.")] = one
		}
	}
	return byName
}

// points returns the values of a counter, or the counts of a histogram, by labels such as "error.type=refused script=lock_acquire".
func (m meters) points(tb testing.TB, name string) map[string]int64 {
	tb.Helper()
	values := map[string]int64{}
	switch data := m.read(tb)[name].Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			values[labels(p.Attributes)] = p.Value
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			values[labels(p.Attributes)] = int64(p.Count)
		}
	}
	return values
}

func labels(set attribute.Set) string {
	var all []string
	for _, l := range set.ToSlice() {
		all = append(all, strings.TrimPrefix(string(l.Key), "latchkey.")+"="+l.Value.AsString())
	}
	return strings.Join(all, " ")
}

// expect waits until an instrument has the given values, and no others but 0.
func (m meters) expect(tb testing.TB, name string, want map[string]int64) {
	tb.Helper()
	var got map[string]int64
	defer func() {
		if tb.Failed() {
			tb.Logf("%s: %v, want %v", name, got, want)
		}
	}()
	eventually(tb, name+" has its values", func() bool {
		got = m.points(tb, name)
		maps.DeleteFunc(got, func(_ string, n int64) bool { return n == 0 })
		return maps.Equal(got, want)
	})
}

// expectIdle waits until nothing is held, waited for, or listened to.
func (m meters) expectIdle(tb testing.TB) {
	tb.Helper()
	for _, name := range []string{"held", "waiting", "subscriptions"} {
		m.expect(tb, name, nil)
	}
}

func TestMetricsCountWhatIsHeld(t *testing.T) {
	t.Parallel()
	m := newMeters()
	s := redistest.Any(t)
	c := newClient(t, s, m.option)
	var holds []lock.Hold
	want := map[string]int64{}
	for _, r := range allKinds() {
		r.Key = r.Kind.String()
		h := acquire(t.Context(), t, c, r)
		holds = append(holds, h)
		want["kind="+r.Kind.String()] = 1
		if r.Kind != lock.Permit {
			holds = append(holds, acquire(h.Context(), t, c, r))
			want["kind="+r.Kind.String()] = 2
		}
	}
	m.expect(t, "held", want)
	for _, h := range slices.Backward(holds) {
		release(t, h)
	}
	m.expectIdle(t)
	m.expect(t, "losses", nil)
}

// Who gets at once what it wants does not wait.
func TestMetricsCountWaiters(t *testing.T) {
	t.Parallel()
	kinds := map[string]string{
		"permits that expire": "expirable_semaphore", "rate limiter": "rate_limiter", "multi-lock": "exclusive",
	}
	for _, w := range waitings(t) {
		t.Run(w.name, func(t *testing.T) {
			m := newMeters()
			s := redistest.Any(t)
			c := newClient(t, s, m.option)
			free := w.occupy(t, newClient(t, s))
			m.expect(t, "waiting", nil)
			got := make(chan error, 1)
			go func() { got <- w.wait(t.Context(), c) }()
			eventually(t, "one waits", func() bool {
				all := m.points(t, "waiting")
				return len(all) == 1 && all["kind="+cmp.Or(kinds[w.name], w.name)] == 1
			})
			free()
			check(t, <-got)
			if w.name == "fair" { // it listens on
				m.expect(t, "waiting", nil)
				return
			}
			m.expectIdle(t)
		})
	}
}

func TestMetricsCountSubscriptions(t *testing.T) {
	t.Parallel()
	m := newMeters()
	s := redistest.Any(t)
	own, other := newClient(t, s, m.option), newClient(t, s)
	var theirs []lock.Hold
	got := make(chan error)
	const locks = 3
	for i := range locks {
		r := lock.Request{Key: fmt.Sprint("k", i), Wait: -1}
		theirs = append(theirs, acquire(t.Context(), t, other, r))
		for range 2 {
			go func() {
				h, err := own.Acquire(t.Context(), r)
				if err == nil {
					err = h.Release(t.Context())
				}
				got <- err
			}()
		}
	}
	m.expect(t, "subscriptions", map[string]int64{"": locks})
	m.expect(t, "waiting", map[string]int64{"kind=exclusive": 2 * locks})
	for _, h := range theirs {
		release(t, h)
	}
	for range 2 * locks {
		check(t, <-got)
	}
	m.expectIdle(t)
}

// Each loss is counted once, with its reason, whoever finds it out first.
func TestMetricsCountLosses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason string
		r      lock.Request
		lose   func(t *testing.T, s *redistest.Server, c *redisson.Client)
	}{
		{"removed", lock.Request{}, func(t *testing.T, s *redistest.Server, _ *redisson.Client) {
			check(t, s.Client(t).Del(t.Context(), "k").Err())
		}},
		{"forced", lock.Request{}, func(t *testing.T, s *redistest.Server, c *redisson.Client) {
			hears(t, c)
			must(t, true)(newClient(t, s).ForceUnlock(t.Context(), "k"))
		}},
		{"forced", lock.Request{}, func(t *testing.T, _ *redistest.Server, c *redisson.Client) {
			if freed, err := c.Lock("k").ForceUnlock(t.Context()); !freed || err != nil {
				t.Errorf("ForceUnlock = %v, %v", freed, err)
			}
		}},
		{"lease", lock.Request{Lease: 300 * time.Millisecond}, nil},
		{"max_hold", lock.Request{MaxHold: 300 * time.Millisecond}, nil},
		{"unrenewed", lock.Request{}, func(t *testing.T, s *redistest.Server, _ *redisson.Client) { s.Pause(t) }},
		{"closed", lock.Request{}, func(t *testing.T, s *redistest.Server, c *redisson.Client) {
			check(t, c.Close())
			check(t, s.Client(t).Del(t.Context(), "k").Err()) // the release finds nothing, which is no other loss
		}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			m := newMeters()
			s := redistest.Start(t)
			watchdog := time.Second
			if tt.reason == "forced" { // which a message says, and not the next renewal
				watchdog = 30 * time.Second
			}
			c := newClient(t, s, m.option, redisson.WatchdogTimeout(watchdog))
			tt.r.Key = "k"
			h := acquire(t.Context(), t, c, tt.r)
			m.expect(t, "held", map[string]int64{"kind=exclusive": 1})
			if tt.lose != nil {
				tt.lose(t, s, c)
			}
			if cause := awaitEnd(t, h.Context(), 10*time.Second); !errors.Is(cause, lock.ErrLost) {
				t.Errorf("ended with %v", cause)
			}
			m.expect(t, "losses", map[string]int64{"reason=" + tt.reason: 1})
			if tt.reason == "unrenewed" {
				s.Resume(t)
			}
			if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
				t.Errorf("Release = %v", err)
			}
			m.expectIdle(t)
			m.expect(t, "losses", map[string]int64{"reason=" + tt.reason: 1})
		})
	}
}

// A release that finds nothing to release is a loss, too.
func TestMetricsCountLossesThatAReleaseFinds(t *testing.T) {
	t.Parallel()
	m := newMeters()
	s := redistest.Any(t)
	c := newClient(t, s, m.option)
	one, other := acquire(t.Context(), t, c, lock.Request{Key: "k"}), acquire(t.Context(), t, c, lock.Request{Key: "l"})
	check(t, s.Client(t).Del(t.Context(), "k", "l").Err())
	if err := one.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release = %v", err)
	}
	if err := c.ReleaseAll(t.Context(), []lock.Hold{other}); !errors.Is(err, lock.ErrLost) {
		t.Errorf("ReleaseAll = %v", err)
	}
	m.expect(t, "losses", map[string]int64{"reason=removed": 2})
	m.expectIdle(t)
}

// A re-entry that finds nothing is no hold, and the loss is that of the outer one.
func TestMetricsCountNoRefusedReentry(t *testing.T) {
	t.Parallel()
	m := newMeters()
	s := redistest.Any(t)
	c := newClient(t, s, m.option)
	outer := acquire(t.Context(), t, c, lock.Request{Key: "k"})
	check(t, s.Client(t).Del(t.Context(), "k").Err())
	if _, err := c.Acquire(beneath(outer), lock.Request{Key: "k"}); !errors.Is(err, lock.ErrLost) {
		t.Errorf("re-entry = %v, want ErrLost", err)
	}
	m.expect(t, "losses", map[string]int64{"reason=removed": 1})
	m.expectIdle(t)
}

// Counters of what is rare begin at 0, so that the first one is an increase. A client that is closed is observed no more.
func TestMetricsBeginAndEnd(t *testing.T) {
	t.Parallel()
	m := newMeters()
	c := newClient(t, redistest.Any(t), m.option)
	losses := map[string]int64{}
	for _, reason := range []string{"closed", "forced", "lease", "max_hold", "other", "removed", "unrenewed"} {
		losses["reason="+reason] = 0
	}
	if got := m.points(t, "losses"); !maps.Equal(got, losses) {
		t.Errorf("losses begin with %v, want %v", got, losses)
	}
	if got, want := m.points(t, "renewals"), map[string]int64{"result=ok": 0, "result=gone": 0, "result=failed": 0}; !maps.Equal(got, want) {
		t.Errorf("renewals begin with %v, want %v", got, want)
	}
	if got := m.points(t, "subscriptions"); len(got) != 1 {
		t.Errorf("subscriptions = %v, want one value", got)
	}
	check(t, c.Close())
	if got := m.points(t, "subscriptions"); len(got) != 0 {
		t.Errorf("subscriptions = %v after Close", got)
	}
}
