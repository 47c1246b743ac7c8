package redisson

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/transport"
	"github.com/redis/go-redis/v9"
)

// performed is the answer to a call.
func performed(t *testing.T, c *Client, cl call) answer {
	return c.road.AskTogether(t.Context(), time.Now().Add(time.Minute), []call{cl})[0]
}

// Whatever is at their keys, locks that are updated together become what each of them becomes alone.
func TestUpdatesTogetherAreThoseOfEach(t *testing.T) {
	rdb := redistest.Any(t).Client(t)
	c, err := New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	states := lockStates(t.Context(), rdb)
	lives := []time.Duration{0, 5 * time.Second, time.Hour} // shorter than the lease, and longer
	rnd := rand.New(rand.NewPCG(1, 2))
	var tasks []task
	var twins []string // of each lock, to be updated alone
	for i := range 3*packSize + 7 {
		key, state, life := fmt.Sprint("together:", i), states[rnd.IntN(len(states))], lives[rnd.IntN(len(lives))]
		twin := fmt.Sprint("alone:", i)
		for _, k := range []string{key, twin} {
			err := state(k)
			if life > 0 && err == nil {
				err = rdb.PExpire(t.Context(), k, life).Err()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		cl := plain{}.update(&holder{id: "me", keys: [1]string{key}}, counts{all: 1 + rnd.IntN(2)}, 30*time.Second, renewal)
		tasks, twins = append(tasks, task{call: cl}), append(twins, twin)
	}
	got := map[string]answer{}
	calls := 0
	for todo := packed(tasks, false); len(todo) > 0; todo = todo[1:] {
		calls++
		said, answers, again := todo[0].open(performed(t, c, todo[0].call()))
		for i, t := range said {
			got[t.call.Keys[0]] = answers[i]
		}
		todo = append(todo, alone(again)...)
	}
	missing := 0
	for i, one := range tasks {
		cl, key := one.call, one.call.Keys[0]
		together, ok := got[key]
		cl.Keys = []string{twins[i]}
		by := performed(t, c, cl)
		same := ok && slices.Equal(together.Values, by.Values) && (together.Err == nil) == (by.Err == nil) && together.Gone() == by.Gone()
		// What has an hour left has a little less of it now.
		if !same && together.Err == nil && by.Err == nil && together.Values[0] == 1 && by.Values[0] == 1 {
			same = max(by.Values[1], together.Values[1])-min(by.Values[1], together.Values[1]) < 10_000
		}
		if !same {
			t.Errorf("%s: together %v, %v, alone %v, %v", key, together.Values, together.Err, by.Values, by.Err)
		}
		if by.Gone() {
			missing++
		}
		if by.Err != nil {
			continue
		}
		expectTwins(t, rdb, key, twins[i])
	}
	if want := 4 + missing; calls != want || missing == 0 {
		t.Errorf("%d calls, want %d, with %d keys that are not the holder's", calls, want, missing)
	}
}

// lockStates are what can be at the key of a lock.
func lockStates(ctx context.Context, rdb *redis.Client) []func(key string) error {
	return []func(key string) error{
		func(string) error { return nil },
		func(key string) error { return rdb.HSet(ctx, key, "me", 1).Err() },
		func(key string) error { return rdb.HSet(ctx, key, "me", 2).Err() },
		func(key string) error { return rdb.HSet(ctx, key, "another", 1).Err() },
		func(key string) error { return rdb.HSet(ctx, key, "me", 1, "another", 1).Err() },
		func(key string) error { return rdb.Set(ctx, key, "a text", 0).Err() },
	}
}

// expectTwins checks that two locks have the same holders and live for about as long.
func expectTwins(t *testing.T, rdb *redis.Client, together, alone string) {
	t.Helper()
	if a, b := rdb.HGetAll(t.Context(), together).Val(), rdb.HGetAll(t.Context(), alone).Val(); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("%s: together %v, alone %v", together, a, b)
	}
	a, b := rdb.PTTL(t.Context(), together).Val(), rdb.PTTL(t.Context(), alone).Val()
	if (a - b).Abs() > 10*time.Second {
		t.Errorf("%s: lives for %v when updated together, and for %v alone", together, a, b)
	}
}

// stats returns how often Redis has run a command.
func stats(t *testing.T, rdb *redis.Client, name string) (calls int) {
	t.Helper()
	for line := range strings.Lines(rdb.Info(t.Context(), "commandstats").Val()) {
		if n, _ := fmt.Sscanf(line, "cmdstat_"+name+":calls=%d,", &calls); n == 1 {
			return calls
		}
	}
	return 0
}

// holdMany takes so many locks, with names that begin with prefix.
func holdMany(t *testing.T, c *Client, prefix string, n int) (holds []lock.Hold) {
	t.Helper()
	for i := range n {
		holds = append(holds, mustAcquire(t.Context(), t, c, lock.Request{Key: fmt.Sprint(prefix, i), Wait: -1}))
	}
	return holds
}

// expectHeld checks that all holds are alive, and that Redis has their locks for longer than a watchdog's timeout would have left.
func expectHeld(t *testing.T, rdb *redis.Client, prefix string, holds []lock.Hold, but ...int) {
	t.Helper()
	for i, h := range holds {
		if slices.Contains(but, i) {
			continue
		}
		if err := context.Cause(h.Context()); err != nil {
			t.Errorf("%s%d: %v", prefix, i, err)
		}
		if ttl := rdb.PTTL(t.Context(), fmt.Sprint(prefix, i)).Val(); ttl <= 0 {
			t.Errorf("%s%d lives for %v", prefix, i, ttl)
		}
	}
}

// Locks of a client are renewed together, and each has its own fate: one that is taken away, and one that is overwritten, are lost,
// and no other.
func TestRenewalsTogether(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	c, err := New(s.Client(t), WatchdogTimeout(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const locks, taken, overwritten, nested = 2*packSize + 20, 3, 70, 5
	holds := holdMany(t, c, "k", locks)
	inner := mustAcquire(holds[nested].Context(), t, c, lock.Request{Key: fmt.Sprint("k", nested)})
	if err := inner.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := rdb.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	<-time.After(4 * time.Second)
	expectHeld(t, rdb, "k", holds)
	renewed, scripts := stats(t, rdb, "hget"), stats(t, rdb, "evalsha")+stats(t, rdb, "eval")
	if renewed < 2*locks || scripts*10 > renewed {
		t.Errorf("%d renewals by %d scripts, want %d at least, and 10 a script", renewed, scripts, 2*locks)
	}
	for _, err := range []error{rdb.Del(t.Context(), fmt.Sprint("k", taken)).Err(), rdb.Set(t.Context(), fmt.Sprint("k", overwritten), "a text", 0).Err()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{taken, overwritten} {
		select {
		case <-holds[i].Context().Done():
			if cause := context.Cause(holds[i].Context()); !errors.Is(cause, lock.ErrLost) || !errors.Is(cause, errGone) {
				t.Errorf("k%d: %v, want %v", i, cause, errGone)
			}
		case <-time.After(2 * time.Second): // a third of the timeout, and time for a busy machine
			t.Errorf("k%d is still held", i)
		}
	}
	<-time.After(3 * time.Second)
	expectHeld(t, rdb, "k", holds, taken, overwritten)
}

// A server that refuses a call because of one of its keys does not keep the others from being renewed, also if it takes longer to say so
// than until the next attempt is due.
func TestRenewalsBesideAForbiddenLock(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, 200 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			t.Parallel()
			testForbiddenLock(t, delay)
		})
	}
}

func testForbiddenLock(t *testing.T, delay time.Duration) {
	s := redistest.Start(t)
	admin, p := s.Client(t), s.Front(t)
	allow := func(keys string) {
		t.Helper()
		if err := admin.Do(t.Context(), "ACL", "SETUSER", "till", "on", ">secret", "allchannels", "+@all", "resetkeys", keys).Err(); err != nil {
			t.Fatal(err)
		}
	}
	allow("~*")
	// Connections and scripts are there, so that what takes time is the answer.
	if err := admin.ScriptLoad(t.Context(), lockUpdate.Source).Err(); err != nil {
		t.Fatal(err)
	}
	rdb := s.Client(t, func(o *redis.Options) {
		o.Addr, o.Username, o.Password, o.MinIdleConns = p.Addr, "till", "secret", 10
	})
	for rdb.PoolStats().IdleConns < 10 {
		time.Sleep(time.Millisecond)
	}
	c, err := New(rdb, WatchdogTimeout(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mine, theirs := holdMany(t, c, "mine", 9), holdMany(t, c, "theirs", 1) // each has a connection of its own
	allow("~mine*")
	p.Delay(delay)
	<-time.After(6 * time.Second)
	p.Delay(0)
	expectHeld(t, admin, "mine", mine)
	if cause := context.Cause(theirs[0].Context()); !errors.Is(cause, errUnrenewed) {
		t.Errorf("the hold of a lock that may not be renewed: %v, want %v", cause, errUnrenewed)
	}
}

// One that is refused for the sake of another is answered in the same round, and neither an outage nor a server that is not ready has
// every lock asked for by itself.
func TestPacksThatAreNotAnswered(t *testing.T) {
	var tasks []task
	for i := range 3 {
		tasks = append(tasks, task{call: plain{}.update(&holder{id: "me", keys: [1]string{fmt.Sprint(i)}}, counts{all: 1}, time.Second, renewal)})
	}
	p := packed(tasks, false)[0]
	for _, tt := range []struct {
		name  string
		a     answer
		again bool
	}{
		{"no answer", answer{Err: transport.ErrNoAnswer, Doubts: 1}, false},
		{"loading", answer{Err: said("LOADING Redis is loading the dataset in memory")}, false},
		{"a replica", answer{Err: said("READONLY You can't write against a read only replica.")}, false},
		{"no permission", answer{Err: said("NOPERM No permissions to access a key")}, true},
		{"no memory", answer{Err: said("OOM command not allowed when used memory > 'maxmemory'.")}, true},
		{"too short", answer{Values: []int64{30_000, 30_000}}, true},
	} {
		done, answers, again := p.open(tt.a)
		if asked := len(again) == len(tasks); asked != tt.again || len(done)+len(again) != len(tasks) || len(done) != len(answers) {
			t.Errorf("%s: %d answered, %d asked again, want all asked again %v", tt.name, len(done), len(again), tt.again)
		}
		for _, a := range answers {
			if a.Err != tt.a.Err || a.Doubts != tt.a.Doubts {
				t.Errorf("%s: a lock is answered %+v", tt.name, a)
			}
		}
	}
}

// said is an error of the server.
type said string

func (s said) Error() string { return string(s) }

func (said) RedisError() {}

// A pipeline has as many packs as make transport.BatchSize tasks, and all come in one of them.
func TestPipelinesAreBounded(t *testing.T) {
	for _, sizes := range [][]int{{1}, {packSize, 1, packSize}, slices.Repeat([]int{packSize}, 25), slices.Repeat([]int{1}, 1200)} {
		var packs []pack
		want := 0
		for _, n := range sizes {
			packs, want = append(packs, make(pack, n)), want+n
		}
		for rest := packs; len(rest) > 0; {
			var part []pack
			part, rest = pipeline(rest)
			n := 0
			for _, p := range part {
				n += len(p)
			}
			if n > transport.BatchSize || len(rest) > 0 && n+packSize <= transport.BatchSize {
				t.Errorf("%d packs: %d tasks in a pipeline", len(sizes), n)
			}
			want -= n
		}
		if want != 0 {
			t.Errorf("%d packs: %d tasks are in no pipeline", len(sizes), want)
		}
	}
}

// twinRemovals are those of holders at whose keys is anything, and those of their twins, which are to be removed alone.
func twinRemovals(t *testing.T, c *Client, rdb *redis.Client) (tasks []task, alone []call) {
	t.Helper()
	kinds := []lock.Kind{lock.Exclusive, lock.Spin, lock.Fair, lock.Write, lock.Read, lock.Permit}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		kind, states := kinds[i%len(kinds)], removalStates(t.Context(), rdb)
		some := states[rnd.Perm(len(states))[0]:]
		var calls [2]call
		for j, name := range []string{fmt.Sprint("together:", i), fmt.Sprint("alone:", i)} {
			calls[j] = c.familyOf(kind).exit(&holder{id: "me", keys: [1]string{name}, kind: kind, limit: 1, patience: time.Second}, "", 0)
			for n, key := range calls[j].Keys {
				if err := some[n%len(some)](key); err != nil {
					t.Fatal(err)
				}
			}
		}
		tasks, alone = append(tasks, task{call: calls[0]}), append(alone, calls[1])
	}
	return tasks, alone
}

// Whatever is at their keys, holders that are removed together leave behind what each of them leaves alone.
func TestRemovalsTogetherAreThoseOfEach(t *testing.T) {
	rdb := redistest.Any(t).Client(t)
	c, err := New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tasks, alone := twinRemovals(t, c, rdb)
	heard := rdb.PSubscribe(t.Context(), "*")
	defer heard.Close()
	if _, err := heard.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, got := 0, map[string]answer{}
	for _, p := range packed(tasks, false) {
		all++
		done, answers, again := p.open(performed(t, c, p.call()))
		for i, t := range done {
			got[t.call.Keys[0]] = answers[i]
		}
		for _, one := range again {
			got[one.call.Keys[0]] = performed(t, c, one.call)
		}
	}
	for i, cl := range alone {
		by, together := performed(t, c, cl), got[tasks[i].call.Keys[0]]
		if by.Yes() != together.Yes() || by.Gone() != together.Gone() {
			t.Errorf("%s %v: together %v, %v, alone %v, %v", cl.Script.Name, cl.Keys, together.Values, together.Err, by.Values, by.Err)
		}
		for n, key := range cl.Keys {
			if a, b := rdb.Dump(t.Context(), tasks[i].call.Keys[n]).Val(), rdb.Dump(t.Context(), key).Val(); a != b {
				t.Errorf("%s %v: %s has %q together, and %q alone", cl.Script.Name, cl.Keys, key, a, b)
			}
		}
	}
	if all > 5+300/packSize {
		t.Errorf("%d calls", all)
	}
	rdb.Publish(t.Context(), "end", "")
	news := map[bool][]string{}
	for m := range heard.Channel() {
		if m.Channel == "end" {
			break
		}
		together := strings.Contains(m.Channel, "together:")
		news[together] = append(news[together], strings.Replace(m.Channel, "together:", "alone:", 1)+" "+m.Payload)
	}
	if slices.Sort(news[true]); len(news[true]) == 0 || !slices.Equal(news[true], slices.Sorted(slices.Values(news[false]))) {
		t.Errorf("%d messages of those that were removed together, %d of those alone", len(news[true]), len(news[false]))
	}
	for _, p := range packed(append(tasks, tasks...), true) { // in a cluster
		for _, one := range p {
			if one.call.Keys[0] != p[0].call.Keys[0] {
				t.Errorf("%v is packed with %v", one.call.Keys, p[0].call.Keys)
			}
		}
	}
}

// removalStates are what can be at any of the keys of a lock.
func removalStates(ctx context.Context, rdb *redis.Client) []func(key string) error {
	score := func(who string) redis.Z { return redis.Z{Score: 1 << 50, Member: who} }
	return append(lockStates(ctx, rdb),
		func(key string) error { return rdb.HSet(ctx, key, "mode", "write", "me:write", 1).Err() },
		func(key string) error { return rdb.HSet(ctx, key, "mode", "read", "me", 1, "another", 1).Err() },
		func(key string) error { return rdb.RPush(ctx, key, "another", "me", "a third").Err() },
		func(key string) error {
			return rdb.ZAdd(ctx, key, score("me"), score("another"), score("a third")).Err()
		},
		func(key string) error { return rdb.Set(ctx, key, "3", 0).Err() })
}
