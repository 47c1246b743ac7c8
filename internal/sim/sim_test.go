package sim_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/internal/sim"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// inBubble runs a test with a network, which it closes afterwards.
func inBubble(t *testing.T, opts sim.Options, test func(t *testing.T, n *sim.Network)) *sim.Network {
	t.Helper()
	var n *sim.Network
	synctest.Test(t, func(t *testing.T) {
		var err error
		if n, err = sim.New(opts); err != nil {
			t.Fatal(err)
		}
		test(t, n)
		n.Close()
	})
	return n
}

// client returns a client of that number. It does not repeat anything by itself.
func client(t *testing.T, n *sim.Network, number int) *redis.Client {
	rdb := redis.NewClient(&redis.Options{
		Dialer: n.Dialer(number), Protocol: 2, DisableIdentity: true, MaxRetries: -1, ReadTimeout: time.Second,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// rough is faults of all kinds.
func rough(clients int) sim.Faults {
	return sim.Faults{
		LoseRequest: 0.1, LoseAnswer: 0.1, CutSubscription: 0.1, Late: 0.5, LateMost: 4 * time.Second, Tail: 0.05, Drift: 0.01,
		Flush: time.Second, Silence: 5 * time.Second, Partition: 5 * time.Second, WindowMost: 2 * time.Second,
		Clients: clients, Span: time.Minute,
	}
}

// A request takes from 0.1 to 1.9 ms of virtual time.
func TestLatency(t *testing.T) {
	inBubble(t, sim.Options{Seed: 1}, func(t *testing.T, n *sim.Network) {
		rdb := client(t, n, 0)
		for i := range 100 {
			start := time.Now()
			if err := rdb.Set(t.Context(), "k", i, 0).Err(); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took < 100*time.Microsecond || took > 1900*time.Microsecond {
				t.Errorf("a request took %v", took)
			}
		}
	})
}

// Goroutines share the connections of a pool, and run in any order. The same seed gives the same trace all the same.
func TestSameSeedSameTrace(t *testing.T) {
	sums := map[string]int{}
	for range 10 {
		n := inBubble(t, sim.Options{Seed: 7, Faults: rough(3)}, func(t *testing.T, n *sim.Network) {
			var all sync.WaitGroup
			for number := range 3 {
				rdb := client(t, n, number)
				for i := range 4 {
					all.Go(func() { count(n, rdb, fmt.Sprint("counter", i)) })
				}
			}
			all.Wait()
			time.Sleep(5 * time.Second) // for what is late
		})
		sums[n.Trace().Sum()]++
	}
	if len(sums) != 1 {
		t.Errorf("10 runs have the traces %v", sums)
	}
	other := inBubble(t, sim.Options{Seed: 8}, func(t *testing.T, n *sim.Network) { count(n, client(t, n, 0), "k") })
	if sums[other.Trace().Sum()] > 0 {
		t.Error("another seed has the same trace")
	}
}

func count(n *sim.Network, rdb *redis.Client, key string) {
	for range 20 {
		err := rdb.Incr(context.Background(), key).Err()
		n.Note("%s: %v", key, err)
	}
}

// Each of the faults has the effect that its name says.
func TestFaultsOfRequests(t *testing.T) {
	for _, tt := range []struct {
		name   string
		faults sim.Faults
		reach  string
		now    int // what the server has counted when the call has failed
		later  int // 5 s later
	}{
		{"lost", sim.Faults{LoseRequest: 1}, "request lost", 0, 0},
		{"late", sim.Faults{LoseRequest: 1, Late: 1, LateMost: 4 * time.Second}, "request late", 0, 1},
		{"answer lost", sim.Faults{LoseAnswer: 1}, "answer lost", 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(4) { // some break the connection, some are never answered
				n := inBubble(t, sim.Options{Seed: seed, Faults: tt.faults}, func(t *testing.T, n *sim.Network) {
					start := time.Now()
					if err := client(t, n, 0).Incr(t.Context(), "k").Err(); err == nil {
						t.Error("Incr = nil")
					}
					if took := time.Since(start); took > time.Second+2*time.Microsecond {
						t.Errorf("Incr took %v", took)
					}
					if got := counted(n); got != tt.now && tt.now == tt.later {
						t.Errorf("counted %d, want %d", got, tt.now)
					}
					time.Sleep(5 * time.Second)
					if got := counted(n); got != tt.later {
						t.Errorf("counted %d after 5 s, want %d", got, tt.later)
					}
				})
				if n.Reached()[tt.reach] != 1 {
					t.Errorf("reached %v, want %q", n.Reached(), tt.reach)
				}
			}
		})
	}
}

func counted(n *sim.Network) (count int) {
	text, _ := n.Server().Get("k")
	_, _ = fmt.Sscan(text, &count)
	return count
}

// A server that hears nobody answers when that is over, and all at once when the network is healed.
func TestSilence(t *testing.T) {
	silent := sim.Faults{Silence: time.Nanosecond, WindowMost: time.Hour, Span: 2 * time.Nanosecond, Clients: 1}
	inBubble(t, sim.Options{Seed: 3, Faults: silent}, func(t *testing.T, n *sim.Network) {
		time.AfterFunc(500*time.Millisecond, n.Heal)
		start := time.Now()
		err := client(t, n, 0).Incr(t.Context(), "k").Err()
		if took := time.Since(start); err != nil || took < 500*time.Millisecond || took > 800*time.Millisecond {
			t.Errorf("Incr = %v after %v, want nil after half a second", err, took)
		}
	})
}

// A caller that leaves at its deadline leaves a request behind, which the server runs.
func TestRequestOutlivesItsCaller(t *testing.T) {
	slow := sim.Faults{Tail: 1}
	n := inBubble(t, sim.Options{Seed: 4, Faults: slow}, func(t *testing.T, n *sim.Network) {
		rdb := client(t, n, 0)
		rdb.Options().ReadTimeout = 50 * time.Millisecond
		for range 10 {
			var timeout net.Error
			if err := rdb.Incr(t.Context(), "k").Err(); !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("Incr = %v, want a timeout", err)
			}
		}
		time.Sleep(time.Second)
		if got := counted(n); got != 10 {
			t.Errorf("counted %d, want all 10", got)
		}
	})
	if n.Reached()["request after its caller left"] == 0 {
		t.Error("no request was behind its caller")
	}
}

// Messages get through, and a subscription that was cut is made again by go-redis.
func TestSubscription(t *testing.T) {
	for _, tt := range []struct {
		name string
		cut  float64
	}{{"whole", 0}, {"cut", 0.3}} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, sim.Options{Seed: 5, Faults: sim.Faults{CutSubscription: tt.cut}}, func(t *testing.T, n *sim.Network) {
				rdb, other := client(t, n, 0), client(t, n, 1)
				ps := rdb.Subscribe(t.Context(), "b", "a")
				defer ps.Close()
				heard := 0
				for i := range 40 {
					time.Sleep(100 * time.Millisecond)
					other.Publish(t.Context(), "a", i)
					for {
						m, err := ps.ReceiveTimeout(t.Context(), 50*time.Millisecond)
						if err != nil {
							break
						}
						if _, ok := m.(*redis.Message); ok {
							heard++
						}
					}
				}
				if tt.cut == 0 && heard != 40 || tt.cut > 0 && (heard < 10 || heard > 35) {
					t.Errorf("heard %d of 40 messages", heard)
				}
				if got := n.Subscriptions(); tt.cut == 0 && !slices.Equal(got, []string{"a", "b"}) {
					t.Errorf("subscriptions %q", got)
				}
			})
		})
	}
}

// Keys end by the server's clock, which drifts.
func TestDrift(t *testing.T) {
	drifts := map[bool]bool{}
	for seed := range uint64(8) {
		inBubble(t, sim.Options{Seed: seed, Faults: sim.Faults{Drift: 0.1}}, func(t *testing.T, n *sim.Network) {
			if err := client(t, n, 0).Set(t.Context(), "k", 1, 100*time.Second).Err(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Second)
			drifts[n.Server().Exists("k")] = true
		})
	}
	if len(drifts) != 2 {
		t.Error("all clocks are slow, or all are fast")
	}
}

// What is said is compared by names: a script by its own, and ids by the order in which they appear.
func TestNames(t *testing.T) {
	names := sim.Names{
		ID:     regexp.MustCompile(`id-\d+`),
		Script: func(text string) string { return strings.Fields(text)[1] },
	}
	n := inBubble(t, sim.Options{Seed: 6, Names: names}, func(t *testing.T, n *sim.Network) {
		rdb := client(t, n, 0)
		script := redis.NewScript("-- echo\nreturn ARGV[1]")
		for _, id := range []string{"id-7", "id-3", "id-7", "\x00\x01"} {
			if got, err := script.Run(t.Context(), rdb, []string{"key"}, id, 42).Text(); got != id || err != nil {
				t.Errorf("the script answers %q, %v", got, err)
			}
		}
	})
	var b strings.Builder
	_, _ = n.Trace().WriteTo(&b)
	for _, want := range []string{"A says echo key a1\n", "A says echo key a2\n", "A says echo key a3\n", "A ran echo key a1 -> $4 id-7\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in the trace:\n%s", want, b.String())
		}
	}
}

// The hook sees each command with its answer, and whether anybody waits for it.
func TestExecuted(t *testing.T) {
	var late, timely int
	opts := sim.Options{Seed: 9, Faults: sim.Faults{LoseRequest: 0.5, Late: 1, LateMost: time.Second}, Executed: func(e sim.Execution) {
		if e.Script != "incr" || e.Client != 2 || e.Args[1] != "k" {
			t.Errorf("executed %+v", e)
		}
		if e.Late {
			late++
		} else {
			timely++
		}
	}}
	inBubble(t, opts, func(t *testing.T, n *sim.Network) {
		rdb := client(t, n, 2)
		for range 40 {
			_ = rdb.Incr(t.Context(), "k").Err()
		}
		time.Sleep(2 * time.Second)
	})
	if late+timely != 40 || late < 10 || timely < 10 {
		t.Errorf("%d late and %d timely executions of 40", late, timely)
	}
}
