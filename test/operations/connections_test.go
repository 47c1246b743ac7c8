package operations

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// The table of connections in kubernetes.md: what a real server sees of one process. The pools are those of the document.
func TestConnections(t *testing.T) {
	alone := redistest.Start(t)
	master := redistest.Start(t)
	host, port := master.HostPort()
	redistest.Start(t, "--replicaof", host, port, "--repl-diskless-sync-delay", "0")
	cluster := redistest.StartCluster(t, 0)
	await(t, "the replica is there", func() bool {
		return strings.Contains(master.Client(t).Info(t.Context(), "replication").Val(), "state=online")
	})
	for column, servers := range [][]*redis.Client{
		{alone.Client(t)},
		{master.Client(t)},
		{cluster.Masters[0].Admin, cluster.Masters[1].Admin, cluster.Masters[2].Admin},
	} {
		url := "redis://" + servers[0].Options().Addr + "?pool_size=40"
		if len(servers) > 1 {
			url = "redis://" + servers[0].Options().Addr + "?pool_size=10&addr=" + servers[1].Options().Addr
		}
		client, err := redisson.Open(url, redisson.Name("pod"))
		if err != nil {
			t.Fatal(err)
		}
		p := pod{t, client, servers}
		for _, row := range []struct {
			state string
			enter func() (leave func())
		}{
			{"opened", func() func() { return func() {} }},
			{"after a Ping", p.ping},
			{"one lock held", func() func() { return p.hold(1) }},
			{"10 goroutines", func() func() { return p.work(10) }},
			{"1,000 goroutines", func() func() { return p.work(1000) }},
			{"2,000 wait", func() func() { return p.wait(2000) }},
		} {
			leave := row.enter()
			least, most := documented(t, row.state, column)
			open, listening := p.connections()
			if n := slices.Max(open); n < least || n > most {
				t.Errorf("%s: %d connections, and kubernetes.md says %d to %d", row.state, n, least, most)
			}
			if row.state == "2,000 wait" && (slices.Max(listening) != 1 || slices.Min(listening) != 1) {
				t.Errorf("%v connections listen, want one at each master", listening)
			}
			t.Logf("%s: %v, of which listen %v", row.state, open, listening)
			leave()
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What is left of the connections of a peak.
func TestIdleConnections(t *testing.T) {
	for query, most := range map[string]int{"max_idle_conns=4": 9, "conn_max_idle_time=100ms": 51} {
		s := redistest.Start(t)
		p := pod{t, open(t, "redis://"+s.Addr+"?pool_size=40&"+query, redisson.Name("pod")), []*redis.Client{s.Client(t)}}
		p.wait(2000)()
		await(t, query+": few are left", func() bool { left, _ := p.connections(); return left[0] <= most })
		// A peak on a busy machine closes some itself, since it finds them idle for longer.
		after, _ := p.connections()
		time.Sleep(500 * time.Millisecond)
		if left, _ := p.connections(); query != "max_idle_conns=4" && left[0] < after[0]/2 {
			t.Errorf("%s: %d of %d are left: it closes them after all, unlike what kubernetes.md says", query, left[0], after[0])
		}
	}
}

// documented returns the numbers of a cell in the document's table.
func documented(t *testing.T, state string, column int) (least, most int) {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(state) + `[^|]*\|(.*)\|$`).FindStringSubmatch(string(text))
	if row == nil {
		t.Fatalf("kubernetes.md has no row %q", state)
	}
	// What is in parentheses, or else the number.
	cell := strings.Split(row[1], "|")[column]
	numbers := regexp.MustCompile(`\d+`).FindAllString(cell[strings.Index(cell, "(")+1:], -1)
	least, _ = strconv.Atoi(numbers[0])
	most, _ = strconv.Atoi(numbers[len(numbers)-1])
	return least, most
}

// pod is a process that uses locks.
type pod struct {
	t       *testing.T
	client  *redisson.Client
	servers []*redis.Client
}

// connections returns how many connections each server has of the pod, and how many of them have subscriptions.
func (p pod) connections() (open, listening []int) {
	p.t.Helper()
	for _, s := range p.servers {
		list, err := s.ClientList(p.t.Context()).Result()
		if err != nil {
			p.t.Fatal(err)
		}
		all, subscribed := 0, 0
		for line := range strings.Lines(list) {
			if strings.Contains(line, " name=pod ") {
				all++
				if !strings.Contains(line, " sub=0 ") || strings.Contains(line, " ssub=") && !strings.Contains(line, " ssub=0 ") {
					subscribed++
				}
			}
		}
		open, listening = append(open, all), append(listening, subscribed)
	}
	return open, listening
}

func (p pod) ping() (leave func()) {
	if err := p.client.Ping(p.t.Context()); err != nil {
		p.t.Error(err)
	}
	return func() {}
}

// hold takes so many locks, for long enough that the client listens.
func (p pod) hold(n int) (leave func()) {
	p.t.Helper()
	var holds []lock.Hold
	for i := range n {
		h, err := p.client.Acquire(p.t.Context(), lock.Request{Key: fmt.Sprint("held:", i)})
		if err != nil {
			p.t.Fatal(err)
		}
		holds = append(holds, h)
	}
	time.Sleep(200 * time.Millisecond)
	return func() {
		for _, h := range holds {
			if err := h.Release(context.Background()); err != nil {
				p.t.Error(err)
			}
		}
	}
}

// work has so many goroutines take locks and give them back.
func (p pod) work(n int) (leave func()) {
	ctx, stop := context.WithCancel(p.t.Context())
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for turn := 0; ctx.Err() == nil; turn++ {
				if h, err := p.client.Acquire(ctx, lock.Request{Key: fmt.Sprint("work:", i, ":", turn)}); err == nil {
					_ = h.Release(context.Background())
				}
			}
		})
	}
	time.Sleep(time.Second)
	return func() { stop(); all.Wait() }
}

// wait has so many goroutines wait, each for a lock of its own.
func (p pod) wait(n int) (leave func()) {
	release := p.hold(n)
	ctx, stop := context.WithCancel(lock.NewOwner(p.t.Context()))
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { _, _ = p.client.Acquire(ctx, lock.Request{Key: fmt.Sprint("held:", i), Wait: -1}) })
	}
	await(p.t, "they wait", func() bool { _, listening := p.connections(); return slices.Min(listening) > 0 })
	time.Sleep(500 * time.Millisecond)
	return func() { stop(); all.Wait(); release() }
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
