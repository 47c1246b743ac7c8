package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// fairScenarios are those of the fair lock.
var fairScenarios = []scenario{
	{name: "23_fair_order", play: func(t *testing.T, on setting) { fairBothWays(t, on, fairOrder) }},
	{name: "23_fair_order_of_sixteen_a_hundred_times", play: sixteenInOrder, long: true},
	{name: "24_fair_deadlines", play: func(t *testing.T, on setting) { fairBothWays(t, on, fairDeadlines) }},
	{name: "24_fair_deadline_moves_on", play: fairMovesOn, long: true},
	{name: "25_fair_waiter_gives_up", play: fairGivesUp, long: true},
	{name: "26_fair_head_is_killed", play: fairHeadIsKilled, long: true},
	{name: "26_fair_several_are_killed", play: fairSeveralAreKilled, long: true},
	{name: "27_fair_message", play: func(t *testing.T, on setting) { fairBothWays(t, on, fairMessage) }},
	{name: "28_fair_try_without_queue", play: func(t *testing.T, on setting) { fairBothWays(t, on, fairTry) }},
	{name: "29_fair_unit_of_the_wait", play: fairUnits, long: true},
	{name: "29_fair_Java_leaves_with_another_wait", play: fairShortened, long: true},
	{name: "30_fair_asynchronous_try", play: fairAsync, long: true},
	{name: "31_fair_lock_vanishes", play: fairVanishes},
	{name: "32_fair_waiters_come_back", play: fairComeBack},
	{name: "32_fair_reentry", play: func(t *testing.T, on setting) { fairBothWays(t, on, fairReentry) }},
}

// waiter is one entry of the queue of a fair lock.
type waiter struct {
	holder   string
	deadline time.Time
}

func queueOf(name string) string     { return "redisson_lock_queue:" + braced(name) }
func deadlinesOf(name string) string { return "redisson_lock_timeout:" + braced(name) }

// line is the queue of a fair lock, head first. Its two keys must agree on who is in it.
func (w *world) line(name string) []waiter {
	w.t.Helper()
	var queue *redis.StringSliceCmd
	var deadlines *redis.ZSliceCmd
	must[[]redis.Cmder](w.t)(w.rdb.TxPipelined(context.Background(), func(p redis.Pipeliner) error {
		queue = p.LRange(context.Background(), queueOf(name), 0, -1)
		deadlines = p.ZRangeWithScores(context.Background(), deadlinesOf(name), 0, -1)
		return nil
	}))
	var line []waiter
	for _, holder := range queue.Val() {
		i := slices.IndexFunc(deadlines.Val(), func(z redis.Z) bool { return z.Member == holder })
		if i < 0 || len(queue.Val()) != len(deadlines.Val()) {
			w.t.Fatalf("queue %q, deadlines %v", queue.Val(), deadlines.Val())
		}
		line = append(line, waiter{holder, time.UnixMilli(int64(deadlines.Val()[i].Score))})
	}
	return line
}

// joins has a thread wait for a fair lock, and returns when it is seen to.
func (w *world) joins(m mutex, thread, name string, limit time.Duration) *pending {
	w.t.Helper()
	return w.joinsBy(fmt.Sprintf("%v waits for the fair lock", m), name, func() result { return m.take(thread, limit, 0) })
}

func (w *world) joinsBy(what, name string, op func() result) *pending {
	w.t.Helper()
	before := len(w.line(name))
	p := begin(w.t, what, op)
	w.eventually(what, func() bool {
		line := w.line(name)
		return len(line) == before+1 && w.subscribers(channelOf(name)+":"+line[before].holder) == 1
	})
	return p
}

// within expects a deadline to be between two times, but for what rounding to milliseconds makes of it.
func (w *world) within(what string, got, from, to time.Time) {
	w.t.Helper()
	const rounding = 3 * time.Millisecond
	if got.Before(from.Add(-rounding)) || got.After(to.Add(rounding)) {
		w.t.Errorf("%s: %v after the earliest and %v before the latest that it may be", what, got.Sub(from), to.Sub(got))
	}
}

// leaseEnd is when the lock is over, by the clock of the server, which is the clock of all here.
func (w *world) leaseEnd(name string) time.Time {
	w.t.Helper()
	return time.UnixMilli(must[time.Duration](w.t)(w.rdb.PExpireTime(w.t.Context(), name).Result()).Milliseconds())
}

func fairOrder(w *world, name string, holder, other mutex) {
	w.take(holder, "a", 0)
	sides := []mutex{holder, other, holder, other}
	var waiting []*pending
	for i, m := range sides {
		waiting = append(waiting, w.joins(m, fmt.Sprint(i), name, forever))
		w.pass(100 * time.Millisecond)
	}
	w.release(holder, "a")
	for i, m := range sides {
		waiting[i].gets()
		for _, p := range waiting[i+1:] {
			p.waits(20 * time.Millisecond)
		}
		w.release(m, fmt.Sprint(i))
	}
	w.clean()
}

func sixteenInOrder(t *testing.T, on setting) {
	const rounds, waiters = 100, 16
	w := newWorld(t, on)
	java, golang := w.fairPair("k")
	side := func() mutex { return []mutex{java, golang}[rand.N(2)] }
	for round := range rounds {
		holder := side()
		w.take(holder, "holder", 0)
		var mu sync.Mutex
		var served []int
		var waiting []*pending
		for i := range waiters {
			m, thread := side(), fmt.Sprint(i)
			waiting = append(waiting, w.joinsBy(fmt.Sprintf("round %d, waiter %d, of %v", round, i, m), "k", func() result {
				r := m.take(thread, forever, 0)
				mu.Lock()
				served = append(served, i)
				mu.Unlock()
				if r.err != nil {
					return r
				}
				released := m.unlock(thread)
				return result{ok: r.ok, err: released.err}
			}))
		}
		w.release(holder, "holder")
		for _, p := range waiting {
			p.gets()
		}
		if !slices.IsSorted(served) {
			t.Errorf("round %d: served in the order %v", round, served)
		}
	}
	w.clean()
}

// fairDeadlines: each waiter adds its wait to the deadline of the one ahead of it. The first one adds it to the end of the lock
// in Redisson, and to the present time in Go, where it comes again in time; so it may have moved on when it is looked at.
func fairDeadlines(w *world, name string, holder, other mutex) {
	w.take(holder, "a", 20*time.Second)
	joining := []fairWait{
		{other, 40 * time.Second, 40 * time.Second},
		{holder, 50 * time.Second, 50 * time.Second},
		{other, forever, 300 * time.Second},
		{holder, forever, 300 * time.Second},
	}
	for i, j := range joining {
		joining[i].worth += j.leaving()
	}
	var waiting []*pending
	for i, j := range joining {
		asked, before := time.Now(), w.line(name)
		waiting = append(waiting, w.joins(j.m, fmt.Sprint(i), name, j.wait))
		line := w.line(name)
		from, to := asked, time.Now()
		switch end := w.leaseEnd(name); {
		case i > 0:
			from, to = before[i-1].deadline, line[i-1].deadline
		case !j.inGo(): // reads its clock before the server reads its own
			from, to = end.Add(from.Sub(to)), end
		}
		w.within(fmt.Sprintf("deadline of waiter %d, of %v", i, j.m), line[i].deadline, from.Add(j.worth), to.Add(j.worth))
	}
	leaver, thread := holder, "a"
	for i, j := range joining {
		before := w.line(name)
		w.release(leaver, thread)
		waiting[i].gets()
		for k, at := range w.line(name) { // the one who was served took its wait along
			from := before[k+1].deadline.Add(-j.worth)
			to := from
			if late := time.Now().Add(joining[i+1+k].worth); joining[i+1+k].inGo() && late.After(to) {
				to = late
			}
			w.within(fmt.Sprintf("deadline %d after waiter %d was served", k, i), at.deadline, from, to)
		}
		leaver, thread = j.m, fmt.Sprint(i)
	}
	w.release(leaver, thread)
	w.clean()
}

// fairWait is a wait for a fair lock, and what it adds to deadlines.
type fairWait struct {
	m           mutex
	wait, worth time.Duration
}

func (f fairWait) inGo() bool { _, ok := f.m.(*goMutex); return ok }

// leaving is what Go adds to a wait that has an end, to leave in.
func (f fairWait) leaving() time.Duration {
	if f.inGo() && f.wait != forever {
		return time.Second
	}
	return 0
}

// fairMovesOn: a waiter of Go has a short deadline, 30s if nothing else is said, but as long as it lives it puts that off and keeps
// its place.
func fairMovesOn(t *testing.T, on setting) {
	w := newWorld(t, on)
	java, _ := w.fairPair("k")
	w.take(java, "holder", 0)
	asked := time.Now()
	byDefault := newGo(t, newClient(t, w.connect()).FairLock("k"))
	first := w.joins(byDefault, "first", "k", forever)
	w.within("deadline of the first", w.line("k")[0].deadline, asked.Add(30*time.Second), time.Now().Add(30*time.Second))

	w.client = w.newClient(redisson.FairLockWaitTimeout(6 * time.Second))
	_, golang := w.fairPair("k")
	w.release(java, "holder")
	first.gets()
	second, third := w.joins(golang, "second", "k", forever), w.joins(java, "third", "k", time.Minute)
	before := w.line("k")
	w.pass(14 * time.Second)
	w.refused(java, "other") // and would remove the dead
	after := w.line("k")
	if len(after) != 2 || after[0].holder != before[0].holder || after[1] != before[1] {
		t.Errorf("the queue was %v and is %v", before, after)
	}
	w.release(byDefault, "first")
	second.gets()
	third.waits(100 * time.Millisecond)
	w.release(golang, "second")
	third.gets()
	w.release(java, "third")
	w.clean()
}

// fairGivesUp: who leaves the middle of the queue leaves nothing, and those behind it do not wait for its time.
func fairGivesUp(t *testing.T, on setting) {
	fairBothWays(t, on, func(w *world, name string, holder, other mutex) {
		const wait = 2 * time.Second
		w.leavesLine(name, holder, other, wait+fairWait{m: other, wait: wait}.leaving(), func() *pending {
			return w.joins(other, "leaver", name, 2*time.Second)
		})
	})
	w := newWorld(t, on)
	java, golang := w.fairPair("cancelled")
	ctx, cancel := context.WithCancel(t.Context())
	w.leavesLine("cancelled", java, golang, 300*time.Second, func() *pending {
		time.AfterFunc(time.Second, cancel)
		return w.joinsBy("Go waits until it is cancelled", "cancelled", func() result {
			r := golang.takeUnder(ctx, "leaver", forever, 0)
			if errors.Is(r.err, context.Canceled) {
				r.err = nil
			}
			return r
		})
	})
}

func (w *world) leavesLine(name string, holder, other mutex, worth time.Duration, join func() *pending) {
	w.take(holder, "a", 0)
	first := w.joins(other, "first", name, 60*time.Second)
	leaver := join()
	last := w.joins(holder, "last", name, 60*time.Second)
	before := w.line(name)
	if r := leaver.ends(); r.ok || r.err != nil {
		w.t.Errorf("%v waits in vain: %v, %v; want false", other, r.ok, r.err)
	}
	var after []waiter
	w.eventually("the leaver is in the queue no more", func() bool { after = w.line(name); return len(after) == 2 })
	if after[0].holder != before[0].holder || after[0].deadline.Before(before[0].deadline) || after[1].holder != before[2].holder {
		w.t.Errorf("the queue was %v and is %v", before, after)
	}
	want := before[2].deadline.Add(-worth)
	w.within("deadline of the one behind", after[1].deadline, want, want)
	w.release(holder, "a")
	first.gets()
	w.release(other, "first")
	last.gets()
	w.release(holder, "last")
	w.clean()
}

// fairMessage: only the head of the queue is notified.
func fairMessage(w *world, name string, holder, other mutex) {
	w.wakes(func() (released, woken result) {
		w.take(holder, "a", 0)
		head := w.joins(other, "b", name, forever)
		last := w.joins(holder, "c", name, forever)
		line := w.line(name)
		headChannel, lastChannel := channelOf(name)+":"+line[0].holder, channelOf(name)+":"+line[1].holder
		messages := w.everything(headChannel, lastChannel, channelOf(name))
		defer messages.close()
		released, woken = w.release(holder, "a"), head.gets()
		last.waits(100 * time.Millisecond)
		messages.expect(channelOf(name) + ":" + line[0].holder + " 0")
		w.release(other, "b")
		last.gets()
		messages.expect(channelOf(name) + ":" + line[1].holder + " 0")
		w.release(holder, "c")
		messages.expect()
		return released, woken
	})
	w.clean()
}

// fairTry: a try without a wait does not pass those in the queue, and does not join them.
func fairTry(w *world, name string, holder, other mutex) {
	const somebody = "00000000-0000-4000-8000-000000000000:1"
	deadline := redis.Z{Score: float64(time.Now().Add(time.Minute).UnixMilli()), Member: somebody}
	must[int64](w.t)(w.rdb.RPush(w.t.Context(), queueOf(name), somebody).Result())
	must[int64](w.t)(w.rdb.ZAdd(w.t.Context(), deadlinesOf(name), deadline).Result())
	before := w.line(name)
	for _, m := range []mutex{holder, other} {
		w.refused(m, "a")
		if after := w.line(name); !slices.Equal(after, before) || m.locked() {
			w.t.Errorf("%v tried: the queue was %v and is %v, locked: %v", m, before, after, m.locked())
		}
	}
	w.rdb.Del(w.t.Context(), queueOf(name), deadlinesOf(name))
	w.take(other, "a", 0)
	w.refused(holder, "a")
	w.release(other, "a")
	w.clean()
}

// fairComeBack: waiters of Go that were served are in the queue again, as after a failover. Java would wait five minutes for each; the first
// question of their client has them removed.
func fairComeBack(t *testing.T, on setting) {
	const name = "k"
	w := newWorld(t, on)
	java, golang := w.fairPair(name)
	w.take(golang, "a", 0)
	var waiting []*pending
	for i := range 6 {
		waiting = append(waiting, w.joins(golang, fmt.Sprint(i), name, forever))
	}
	dumps := map[string]string{}
	for _, key := range []string{queueOf(name), deadlinesOf(name)} {
		dumps[key] = must[string](t)(w.rdb.Dump(t.Context(), key).Result())
	}
	w.release(golang, "a")
	for i, p := range waiting {
		p.gets()
		w.release(golang, fmt.Sprint(i))
	}
	w.eventually("Go listens on its own channel", func() bool { return w.subscribers("latchkey_client:"+w.client.ID()) == 1 })
	w.pass(200 * time.Millisecond) // it looks at its queues then, before they come back
	for key, dump := range dumps {
		must[string](t)(w.rdb.RestoreReplace(t.Context(), key, 0, dump).Result())
	}
	behind := w.joins(java, "b", name, forever)
	behind.waits(100 * time.Millisecond)
	next := begin(t, "Go waits behind Java", func() result { return golang.take("c", forever, 0) })
	start := time.Now()
	behind.gets()
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("Java waited %v for waiters that are over", took)
	}
	next.waits(20 * time.Millisecond)
	w.release(java, "b")
	next.gets()
	w.release(golang, "c")
	w.clean()
}

func fairReentry(w *world, name string, holder, other mutex) {
	w.take(holder, "a", 0)
	first, last := w.joins(other, "b", name, forever), w.joins(holder, "c", name, forever)
	before := w.line(name)
	for range 2 {
		w.take(holder, "a", 0)
	}
	w.only(name, "3")
	for range 2 {
		w.release(holder, "a")
	}
	w.only(name, "1")
	if after := w.line(name); !slices.Equal(after, before) {
		w.t.Errorf("the queue was %v and is %v", before, after)
	}
	first.waits(50 * time.Millisecond)
	w.release(holder, "a")
	first.gets()
	w.release(other, "b")
	last.gets()
	w.release(holder, "c")
	w.clean()
}
