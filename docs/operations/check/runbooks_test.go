package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// The commands of the run-book that tell a failover from a restart and from a hand, after each of them.
func TestWhoRemovedIt(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		redistest.Missing(t, err)
	}
	const before = 3 * time.Second // since a server was started
	for _, tt := range []struct {
		cause    string
		strike   func(t *testing.T) (server *redistest.Server) // that is asked
		promoted bool
		fresh    bool // it has just started
	}{
		{"a restart", func(t *testing.T) *redistest.Server {
			s := redistest.Start(t)
			time.Sleep(before)
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
			time.Sleep(before)
			s.Kill(t)
			s.Restart(t)
			return s
		}, true, true},
		{"a failover", func(t *testing.T) *redistest.Server {
			s := redistest.StartSentinels(t)
			time.Sleep(before)
			s.Failover(t)
			return s.Replica
		}, true, false},
		{"a hand", func(t *testing.T) *redistest.Server {
			s := redistest.Start(t)
			time.Sleep(before)
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
	} {
		t.Run(tt.cause, func(t *testing.T) {
			t.Parallel()
			s := tt.strike(t)
			_, port := s.HostPort()
			said := commands(t, port)
			t.Log(said)
			uptime, err := strconv.Atoi(field(t, said, "uptime_in_seconds"))
			if fresh := uptime < int(before/time.Second); err != nil || fresh != tt.fresh {
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
	text, err := os.ReadFile("../runbooks.md")
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

// The two ways into an overload, and what errors and metrics say of them, as the run-book has it.
func TestOverload(t *testing.T) {
	text, err := os.ReadFile("../runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	digits := regexp.MustCompile(`\d+(\.\d+)?(ms|s)?`)
	for name, lend := range map[string]bool{"so many questions": false, "others have the pool": true} {
		s := redistest.Start(t)
		rdb := s.Client(t, func(o *redis.Options) { o.PoolSize, o.PipelinePoolSize, o.ContextTimeoutEnabled = 2, -1, true })
		reader := sdkmetric.NewManualReader()
		c, err := redisson.New(rdb, redisson.Timeout(200*time.Millisecond), redisson.MeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		n := 30_000
		if lend {
			n = 50
			for range 2 {
				all.Go(func() { rdb.BLPop(ctx, 0, "nothing") })
			}
			await(t, "the pool is lent", func() bool { return strings.Contains(s.Client(t).Info(ctx, "clients").Val(), "blocked_clients:2") })
		}
		failed := make(chan error, n)
		for i := range n {
			all.Go(func() {
				if h, err := c.Acquire(ctx, lock.Request{Key: fmt.Sprint(i)}); err == nil {
					_ = h.Release(context.Background())
				} else if errors.Is(err, lock.ErrOverload) {
					failed <- err
				}
			})
		}
		most := map[string]int64{}
		for err = nil; err == nil; {
			for name, value := range gauges(t, reader) {
				most[name] = max(most[name], value)
			}
			select {
			case err = <-failed:
			case <-time.After(10 * time.Millisecond):
			}
		}
		stop()
		all.Wait()
		t.Logf("%s: %v; %v", name, err, most)
		if !strings.Contains(digits.ReplaceAllString(string(text), "N"), digits.ReplaceAllString(err.Error(), "N")) {
			t.Errorf("the run-book does not have %q", err)
		}
		if most["latchkey.redisson.queued"] == 0 || most["latchkey.redisson.connections"] < 2 {
			t.Errorf("gauges %v, want a line, and two connections in use", most)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
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

var _ = filepath.Join
