package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// A server that was paused confirms a renewal late, and the time counts from when it was due first.
func TestMetricsTellLateRenewals(t *testing.T) {
	t.Parallel()
	const watchdog, timeout = 3 * time.Second, 300 * time.Millisecond
	m := newMeters()
	s := redistest.Start(t)
	c, err := redisson.Open("redis://"+s.Addr, m.option, redisson.WatchdogTimeout(watchdog), redisson.Timeout(timeout))
	check(t, err)
	defer func() { _ = c.Close() }()
	h := acquire(t.Context(), t, c, lock.Request{Key: "k"})
	m.expect(t, "renewals", map[string]int64{"result=ok": 1})
	s.Pause(t)
	within(t, watchdog, "two renewals fail", func() bool { return m.points(t, "renewals")["result=failed"] >= 2 })
	s.Resume(t)
	within(t, watchdog, "it is renewed again", func() bool { return m.points(t, "renewals")["result=ok"] >= 2 })
	lateness := m.read(t)["renewal.lateness"].Data.(metricdata.Histogram[float64]).DataPoints[0]
	least, _ := lateness.Min.Value()
	most, _ := lateness.Max.Value()
	if lateness.Count < 2 || least > .25 || most < 2*timeout.Seconds() || most > watchdog.Seconds() {
		t.Errorf("%d renewals were %v to %v s late; want one in time, and one as late as two questions that got no answer", lateness.Count, least, most)
	}
	release(t, h)
	m.expect(t, "losses", nil)
	m.expectIdle(t)
}

// Renewals in time are not late, however many there were.
func TestMetricsTellRenewalsInTime(t *testing.T) {
	t.Parallel()
	const watchdog = 900 * time.Millisecond
	m := newMeters()
	c := newClient(t, redistest.Any(t), m.option, redisson.WatchdogTimeout(watchdog))
	h := acquire(t.Context(), t, c, lock.Request{Key: "k"})
	eventually(t, "it is renewed", func() bool { return m.points(t, "renewals")["result=ok"] >= 5 })
	lateness := m.read(t)["renewal.lateness"].Data.(metricdata.Histogram[float64]).DataPoints[0]
	if most, _ := lateness.Max.Value(); most > watchdog.Seconds() {
		t.Errorf("a renewal of a lock that was never lost was %v s late", most)
	}
	release(t, h)
}

// Each question is counted once, whichever way it goes.
func TestMetricsCountDirectQuestions(t *testing.T) {
	t.Parallel()
	m := newMeters()
	c, err := redisson.Open("redis://"+redistest.Start(t).Addr, m.option)
	check(t, err)
	defer func() { _ = c.Close() }()
	const pairs = 200
	for range pairs {
		release(t, acquire(t.Context(), t, c, lock.Request{Key: "k"}))
	}
	eventually(t, "each is counted once, and those that a busy machine has asked again once more", func() bool {
		got, again := m.points(t, "question.duration"), m.points(t, "repeats")
		once := func(script string) bool { return got[script] >= pairs && got[script] <= pairs+again[script] }
		return once("script=lock_acquire") && once("script=lock_release")
	})
}

// A lock that somebody has deleted is a renewal that finds it gone.
func TestMetricsTellRenewalsOfWhatIsGone(t *testing.T) {
	t.Parallel()
	m := newMeters()
	s := redistest.Any(t)
	c := newClient(t, s, m.option, redisson.WatchdogTimeout(time.Second))
	h := acquire(t.Context(), t, c, lock.Request{Key: "k"})
	check(t, s.Client(t).Del(t.Context(), "k").Err())
	_ = awaitEnd(t, h.Context(), 10*time.Second)
	eventually(t, "it is told", func() bool { return m.points(t, "renewals")["result=gone"] == 1 })
	_ = h.Release(t.Context())
}

func TestMetricsCountQuestions(t *testing.T) {
	t.Parallel()
	m := newMeters()
	c, p := behind(t, redistest.Any(t), m.option)
	release(t, acquire(t.Context(), t, c, lock.Request{Key: "k"}))
	want := map[string]int64{"script=lock_acquire": 1, "script=lock_release": 1}
	m.expect(t, "question.duration", want)
	m.expect(t, "repeats", nil)

	p.CutReply(naming("k"), 3) // the lock is taken, but the answer is lost, as those of questions that follow at once
	h := acquire(t.Context(), t, c, lock.Request{Key: "k"})
	eventually(t, "answers that were lost are counted", func() bool {
		all := m.points(t, "question.duration")
		return all["script=lock_acquire"] == 2 && all["error.type=no_answer script=lock_acquire"] > 0 && m.points(t, "repeats")["script=lock_acquire"] > 0
	})
	release(t, h)

	h = acquire(t.Context(), t, c, lock.Request{Key: "other"})
	held := acquire(h.Context(), t, c, lock.Request{Key: "k2"})
	p.CutReply(naming("k2"), 5)
	check(t, c.ReleaseAll(t.Context(), []lock.Hold{held, h}))
	if got := m.points(t, "repeats"); got["script=many_lock_release"] == 0 {
		t.Errorf("repeats = %v: none of the release whose answer was lost", got)
	}
}

// A server that refuses, or is not ready, is told from one that is silent.
func TestMetricsTellWhyQuestionsFail(t *testing.T) {
	t.Parallel()
	m := newMeters()
	s := redistest.Start(t)
	rdb := s.Client(t)
	c := newClient(t, s, m.option)
	check(t, rdb.Set(t.Context(), "k", "a word", 0).Err())
	_, err := c.Acquire(t.Context(), lock.Request{Key: "k"})
	if !errors.Is(err, lock.ErrUnsupported) {
		t.Errorf("Acquire = %v", err)
	}
	m.expect(t, "question.duration", map[string]int64{"error.type=refused script=lock_acquire": 1, "script=foreign": 1})
	check(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	if _, err = c.Acquire(t.Context(), lock.Request{Key: "l"}); err == nil {
		t.Error("Acquire on a server without memory succeeded")
	}
	m.expect(t, "question.duration", map[string]int64{"error.type=refused script=lock_acquire": 1, "script=foreign": 1, "error.type=no_memory script=lock_acquire": 1})
	check(t, rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
}

// Clients that share a provider are added up, and one that is closed counts no more.
func TestMetricsOfTwoClients(t *testing.T) {
	t.Parallel()
	m := newMeters()
	s := redistest.Any(t)
	one, two := newClient(t, s, m.option), newClient(t, s, m.option)
	a, b := acquire(t.Context(), t, one, lock.Request{Key: "a"}), acquire(t.Context(), t, two, lock.Request{Key: "b"})
	m.expect(t, "held", map[string]int64{"kind=exclusive": 2})
	release(t, a)
	m.expect(t, "held", map[string]int64{"kind=exclusive": 1})
	release(t, b)
	m.expectIdle(t)

	theirs := acquire(t.Context(), t, newClient(t, s), lock.Request{Key: "k"})
	failed := make(chan error, 2)
	for _, c := range []*redisson.Client{one, two} {
		go func() {
			_, err := c.Acquire(context.Background(), lock.Request{Key: "k", Wait: -1})
			failed <- err
		}()
	}
	m.expect(t, "waiting", map[string]int64{"kind=exclusive": 2})
	m.expect(t, "subscriptions", map[string]int64{"": 2})
	check(t, one.Close())
	m.expect(t, "waiting", map[string]int64{"kind=exclusive": 1})
	m.expect(t, "subscriptions", map[string]int64{"": 1})
	check(t, two.Close())
	m.expectIdle(t)
	for range 2 {
		if err := <-failed; !errors.Is(err, redisson.ErrClosed) {
			t.Errorf("Acquire = %v", err)
		}
	}
	release(t, theirs)
}

// No provider is as good as no option.
func TestMetricsOfNobody(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Any(t), redisson.MeterProvider(nil))
	release(t, acquire(t.Context(), t, c, lock.Request{Key: "k"}))
	check(t, c.Close())
}

// Whatever is locked and fails, no key is told.
func TestMetricsTellNoKey(t *testing.T) {
	t.Parallel()
	const secret = "customer-4711"
	m := newMeters()
	s := redistest.Any(t)
	c := newClient(t, s, m.option)
	for _, r := range allKinds() {
		r.Key = secret + r.Kind.String()
		h := acquire(t.Context(), t, c, r)
		r.Wait = time.Millisecond
		_, _ = c.Acquire(t.Context(), r)
		release(t, h)
	}
	check(t, s.Client(t).Set(t.Context(), secret, secret, 0).Err())
	_, _ = c.Acquire(t.Context(), lock.Request{Key: secret})
	told := ""
	eventually(t, "metrics tell that something was refused", func() bool {
		told = fmt.Sprintf("%+v", m.read(t))
		return strings.Contains(told, "refused")
	})
	if strings.Contains(told, secret) {
		t.Errorf("metrics tell a key: %s", told)
	}
}

// TestMetricsPage compares docs/telemetry.md with what a client tells: instruments with kind and unit, and labels.
func TestMetricsPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/telemetry.md")
	check(t, err)
	_, page, found := strings.Cut(string(text), "\n## Metrics of package redisson\n")
	if !found {
		t.Fatal("docs/telemetry.md has no part on package redisson")
	}
	m := newMeters()
	c, p := behind(t, redistest.Any(t), m.option, redisson.WatchdogTimeout(3*time.Second))
	p.CutReply(naming("k"), 2)
	h := acquire(t.Context(), t, c, lock.Request{Key: "k"})
	_, _ = c.Acquire(t.Context(), lock.Request{Key: "k", Wait: 500 * time.Millisecond}) // for long enough to be counted as one that waits
	eventually(t, "it is renewed", func() bool { return m.points(t, "renewals")["result=ok"] > 0 })
	check(t, second(c.Lock("k").ForceUnlock(t.Context())))
	_ = awaitEnd(t, h.Context(), 10*time.Second)

	told := map[string]bool{}
	for name, one := range m.read(t) {
		kind := "histogram"
		if sum, ok := one.Data.(metricdata.Sum[int64]); ok {
			kind = map[bool]string{true: "counter", false: "up-down counter"}[sum.IsMonotonic]
		}
		told[fmt.Sprintf("| `latchkey.redisson.%s` | %s | `%s` |", name, kind, one.Unit)] = true
		for set := range m.points(t, name) {
			for label := range strings.FieldsSeq(set) {
				label, _, _ = strings.Cut(label, "=")
				told[fmt.Sprintf("| `%s` |", strings.Replace("latchkey."+label, "latchkey.error", "error", 1))] = true
			}
		}
	}
	for row := range told {
		if !strings.Contains(page, "\n"+row) {
			t.Errorf("docs/telemetry.md has no row %s", row)
		}
	}
	if listed := strings.Count(page, "\n| `"); listed != len(told) {
		t.Errorf("docs/telemetry.md has %d rows on redisson, want %d: %v", listed, len(told), told)
	}
}
