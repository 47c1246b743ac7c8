package operations

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

const beforeRestart = 3 * time.Second // since a server was started

// removals are what removes a lock.
var removals = []struct {
	cause    string
	strike   func(t *testing.T) (server *redistest.Server) // that is asked
	promoted bool
	fresh    bool // it has just started
}{
	{"a restart", func(t *testing.T) *redistest.Server {
		s := redistest.Start(t)
		time.Sleep(beforeRestart)
		s.Kill(t)
		s.Restart(t)
		return s
	}, false, true},
	{"a restart, with replicas and a snapshot", func(t *testing.T) *redistest.Server {
		s := redistest.Start(t)
		host, port := s.HostPort()
		redistest.Start(t, "--replicaof", host, port, "--repl-diskless-sync-delay", "0")
		admin := s.Client(t)
		await(t, "the replica is there", func() bool {
			return strings.Contains(admin.Info(t.Context(), "replication").Val(), "state=online")
		})
		if err := errors.Join(admin.Set(t.Context(), "k", "v", 0).Err(), admin.Save(t.Context()).Err()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(beforeRestart)
		s.Kill(t)
		s.Restart(t)
		return s
	}, true, true},
	{"a failover", func(t *testing.T) *redistest.Server {
		s := redistest.StartSentinels(t)
		time.Sleep(beforeRestart)
		s.Failover(t)
		return s.Replica
	}, true, false},
	{"a hand", func(t *testing.T) *redistest.Server {
		s := redistest.Start(t)
		time.Sleep(beforeRestart)
		c := open(t, "redis://"+s.Addr)
		h, err := c.Acquire(t.Context(), lock.Request{Key: "order:42"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.ForceUnlock(t.Context(), "order:42"); err != nil {
			t.Fatal(err)
		}
		if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("the release of what was freed: %v", err)
		}
		return s
	}, false, false},
}

// The commands of the run-book that tell a failover from a restart and from a hand, after each of them.
func TestWhoRemovedIt(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		redistest.Missing(t, err)
	}
	for _, tt := range removals {
		t.Run(tt.cause, func(t *testing.T) {
			t.Parallel()
			s := tt.strike(t)
			_, port := s.HostPort()
			said := commands(t, port)
			t.Log(said)
			uptime, err := strconv.Atoi(field(t, said, "uptime_in_seconds"))
			if fresh := uptime < int(beforeRestart/time.Second); err != nil || fresh != tt.fresh {
				t.Errorf("uptime %d, want a short one: %t (%v)", uptime, tt.fresh, err)
			}
			if promoted := field(t, said, "second_repl_offset") != "-1"; promoted != tt.promoted || field(t, said, "role") != "master" {
				t.Errorf("want a promotion: %t\n%s", tt.promoted, said)
			}
		})
	}
}

func field(t *testing.T, info, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + `:(\S+)`).FindStringSubmatch(info)
	if m == nil {
		t.Fatalf("no %s in\n%s", name, info)
	}
	return m[1]
}

// commands types the lines with redis-cli that stand in the run-book before its table of causes.
func commands(t *testing.T, port string) (said string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```\n([^`]*)```\n\n *\\| *\\| a restart \\|").FindStringSubmatch(string(text))
	if block == nil {
		t.Fatal("the run-book has no table of causes with commands before it")
	}
	lines := regexp.MustCompile(`(?m)^ *(redis-cli .*)$`).FindAllStringSubmatch(block[1], -1)
	if len(lines) != 2 {
		t.Fatalf("%d commands of redis-cli: %s", len(lines), block[1])
	}
	for _, line := range lines {
		out, err := exec.Command("sh", "-c", strings.ReplaceAll(line[1], "redis-cli ", "redis-cli -p "+port+" ")).CombinedOutput() //nolint:gosec // of the run-book
		if err != nil {
			t.Fatalf("%s: %v: %s", line[1], err, out)
		}
		said += string(out)
	}
	return said
}

// The ways into an overload, and what errors and metrics say of them, as the run-book has it.
func TestOverload(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	digits := regexp.MustCompile(`\d+(\.\d+)?(ms|s)?`)
	const size = 2 // of the pool
	for _, tt := range []struct {
		name  string
		calls int
		lent  bool // and so all connections are in use
	}{
		{"many calls", 10_000, false},
		{"others have the pool", 50, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := redistest.Start(t)
			admin := s.Client(t)
			rdb := s.Client(t, func(o *redis.Options) { o.PoolSize, o.PoolTimeout, o.MaxRetries = size, 200*time.Millisecond, -1 })
			reader := sdkmetric.NewManualReader()
			c, err := redisson.New(rdb, redisson.Timeout(200*time.Millisecond), redisson.MeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
			defer stop()
			var others, all sync.WaitGroup
			if tt.lent {
				for range size {
					others.Go(func() { rdb.BLPop(t.Context(), time.Minute, "nothing") })
				}
				await(t, "the pool is lent", func() bool {
					return strings.Contains(admin.Info(t.Context(), "clients").Val(), fmt.Sprint("blocked_clients:", size))
				})
			}
			failed := overload(ctx, c, tt.calls, &all)
			samples, full, queued := watch(ctx, t, reader, size)
			all.Wait()
			admin.RPush(t.Context(), "nothing", 1, 2)
			others.Wait()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			select {
			case err := <-failed:
				t.Logf("%v; up to %d are queued, all connections are in use in %d of %d samples", err, queued, full, samples)
				if !strings.Contains(digits.ReplaceAllString(string(text), "N"), digits.ReplaceAllString(err.Error(), "N")) {
					t.Errorf("the run-book does not have %q", err)
				}
			default:
				t.Fatal("no call failed for that")
			}
			if queued == 0 && samples > 10 || (full > samples/2) != tt.lent {
				t.Errorf("up to %d are queued, all connections are in use in %d of %d samples: want most: %t", queued, full, samples, tt.lent)
			}
		})
	}
}

// overload has so many callers take and give back a lock of their own until ctx ends, and sends the first error that tells of an overload.
func overload(ctx context.Context, c *redisson.Client, callers int, all *sync.WaitGroup) <-chan error {
	failed := make(chan error, 1)
	for i := range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				h, err := c.Acquire(ctx, lock.Request{Key: fmt.Sprint(i)})
				switch {
				case err == nil:
					_ = h.Release(context.Background())
				case errors.Is(err, lock.ErrOverload):
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	return failed
}

// watch reads the gauges until ctx ends. It returns how often that was, how often all connections of the pool were in use, and how many questions
// were queued at most.
func watch(ctx context.Context, t *testing.T, reader *sdkmetric.ManualReader, pool int64) (samples, full int, queued int64) {
	for ctx.Err() == nil || samples == 0 {
		now := gauges(t, reader)
		samples++
		queued = max(queued, now["latchkey.redisson.queued"])
		if now["latchkey.redisson.connections"] >= pool {
			full++
		}
		time.Sleep(20 * time.Millisecond)
	}
	return samples, full, queued
}

// Redis has no connection left: that is an outage and no overload, and Redis counts it.
func TestNoConnectionLeft(t *testing.T) {
	s := redistest.Start(t, "--maxclients", "4")
	admin := s.Client(t)
	others := []*redis.Conn{admin.Conn()}
	for others[len(others)-1].Ping(t.Context()).Err() == nil {
		others = append(others, admin.Conn())
	}
	_, err := open(t, "redis://"+s.Addr).Acquire(t.Context(), lock.Request{Key: "k"})
	if err == nil || errors.Is(err, lock.ErrOverload) || errors.Is(err, lock.ErrRefused) || errors.Is(err, lock.ErrBusy) {
		t.Errorf("%v, want an outage", err)
	}
	t.Log(err)
	if n := field(t, others[0].Info(t.Context(), "stats").Val(), "rejected_connections"); n == "0" {
		t.Error("no connection was rejected")
	}
}

// gauges are the two of the run-book's section.
func gauges(t *testing.T, reader *sdkmetric.ManualReader) (now map[string]int64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	now = map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && len(sum.DataPoints) > 0 && (m.Name == "latchkey.redisson.queued" || m.Name == "latchkey.redisson.connections") {
				now[m.Name] = sum.DataPoints[0].Value
			}
		}
	}
	return now
}
