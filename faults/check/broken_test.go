package check_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/faults/check"
	"github.com/latchkey-go/latchkey/faults/history"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// A stage is a run of a locker against a Redis.
type stage struct {
	t      *testing.T
	proxy  *redistest.Proxy
	l      *locker
	dir    string
	faults *history.Log
	all    sync.WaitGroup
}

// A proc plays a process that wants the lock k: it has a log, can be stopped, and killed.
type proc struct {
	s    *stage
	name string
	log  *history.Log
	dead chan struct{}

	mu sync.Mutex // held while it is stopped
}

// gate waits while the process is stopped.
func (p *proc) gate() {
	p.mu.Lock()
	defer p.mu.Unlock()
}

func (s *stage) proc(name string) *proc {
	log, err := history.Create(s.dir, name)
	if err != nil {
		s.t.Fatal(err)
	}
	return &proc{s: s, name: name, log: log, dead: make(chan struct{})}
}

func (p *proc) stop() {
	p.s.faults.Note(history.Event{Op: history.Stop, Procs: []string{p.name}})
	p.mu.Lock()
}

func (p *proc) cont() {
	p.mu.Unlock()
	p.s.faults.Note(history.Event{Op: history.Cont, Procs: []string{p.name}})
}

func (p *proc) kill() {
	p.s.faults.Note(history.Event{Op: history.Kill, Procs: []string{p.name}})
	close(p.dead)
}

// A visit is a section of a process.
type visit struct {
	p    *proc
	call *history.Call
	h    *holding
}

// enter takes a lock, and gives up after a while; nil says that it did.
func (p *proc) enter(kind string, limit int) *visit {
	return p.enterAs(p.name, kind, limit, 2*time.Second)
}

func (p *proc) enterAs(owner, kind string, limit int, wait time.Duration) *visit {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	v := &visit{p: p, call: p.log.Ask(history.Event{Kind: kind, Keys: []string{"k"}, Servers: []string{"redis"}, Owner: owner,
		Limit: limit, Wait: -1, Lease: lease, Deadline: history.Until(ctx)})}
	h, err := p.s.l.lock(ctx, p, "k", owner, kind, limit)
	if err != nil {
		v.call.Fail(history.Busy, err)
		return nil
	}
	v.h = h
	token := int64(0)
	if kind == "fenced" {
		token = h.token
	}
	if !v.call.Enter(h.ctx, token) {
		v.leave()
		return nil
	}
	return v
}

// work looks at the context every few milliseconds, for d or until that ends.
func (v *visit) work(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
		v.p.gate()
		if !v.call.Look(v.h.ctx) {
			return
		}
	}
}

func (v *visit) leave() {
	if v == nil {
		return
	}
	v.call.Exit()
	err := v.h.unlock()
	v.call.Release(err, errors.Is(err, errNotHeld))
}

// pass is a whole section.
func (p *proc) pass(kind string, limit int, d time.Duration) {
	if v := p.enter(kind, limit); v != nil {
		v.work(d)
		v.leave()
	}
}

// run plays a scene with a locker, and judges it.
func run(t *testing.T, f flaw, scene func(s *stage)) *check.Result {
	t.Helper()
	server := redistest.Start(t)
	proxy := server.Front(t)
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr, MaxRetries: -1})
	s := &stage{t: t, proxy: proxy, l: newLocker(rdb, f), dir: t.TempDir()}
	s.faults = s.proc("faults").log
	scene(s)
	s.all.Wait()
	if err := rdb.Close(); err != nil {
		t.Error(err)
	}
	events, err := history.Read(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	return check.Check(events, check.Options{Idle: 400 * time.Millisecond, Share: -1})
}

// brokenLockers are the scenes, and what is wrong with the locker that the checker must catch in them.
var brokenLockers = []struct {
	name  string
	scene func(s *stage)
	flaw  flaw
	rules string
}{
	{"no owner check at the release", overrun, flaw{edits: []string{ifNotMine + "return -1 end", "redis.call('del', KEYS[1])"}}, "holders"},
	{"no lease", killed, flaw{edits: []string{"redis.call('pexpire', KEYS[1], ARGV[5])\n", ""}}, "idle"},
	{"an acquire that counts when it is repeated", acquireTwice,
		flaw{edits: []string{setCount + "\nredis", "redis.call('hincrby', KEYS[1], who, 1)\nredis", setLess, decrement}, counts: true}, "idle"},
	{"a release that is repeated without a latch", releaseTwice, flaw{edits: []string{setLess, decrement}}, "holders"},
	{"a renewal that makes the lock again", overrun,
		flaw{edits: []string{ifNotMine + "return 0 end", "redis.call('hset', KEYS[1], 'mode', 'lock', who, 1)"}, believes: true}, "holders"},
	{"a line that loses a waiter", leaver, flaw{takesNext: true}, "idle"},
	{"reads that share a field", readers,
		flaw{edits: []string{"local who = ARGV[1]", "local who = ARGV[2] == 'read' and 'readers' or ARGV[1]"}}, "holders"},
	{"a token that repeats", inTurn, flaw{edits: []string{"redis.call('incr', KEYS[1] .. ':token')", "7"}}, "token"},
	{"a permit more than there are", permits, flaw{edits: []string{"permits < tonumber", "permits <= tonumber"}}, "holders"},
}

// The parts of the scripts that flaws edit.
const (
	ifNotMine = "if redis.call('hexists', KEYS[1], who) == 0 then "
	setCount  = "redis.call('hset', KEYS[1], who, ARGV[4])"
	setLess   = "if tonumber(ARGV[4]) > 0 then " + setCount + " return tonumber(ARGV[4]) end"
	decrement = "local left = redis.call('hincrby', KEYS[1], who, -1) if left > 0 then return left end"
)

// TestBrokenLockersAreCaught plays each scene with a locker that is right, and with one that has a flaw.
func TestBrokenLockersAreCaught(t *testing.T) {
	for _, tt := range brokenLockers {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if r := run(t, flaw{}, tt.scene); !r.OK() {
				t.Errorf("the right locker is accused:\n%s", r)
			}
			if r := run(t, tt.flaw, tt.scene); !strings.Contains(rules(r), tt.rules) {
				t.Errorf("rules broken: %q, want %q\n%s", rules(r), tt.rules, r)
			}
		})
	}
}

// overrun has a process stopped for longer than its lease, while others want the lock.
func overrun(s *stage) {
	a, b, c := s.proc("a"), s.proc("b"), s.proc("c")
	first := a.enter("lock", 0)
	s.all.Go(func() { b.pass("lock", 0, 800*time.Millisecond) })
	a.stop()
	time.Sleep(lease + 100*time.Millisecond)
	s.all.Go(func() { c.pass("lock", 0, 10*time.Millisecond) })
	a.cont()
	first.work(300 * time.Millisecond)
	first.leave()
}

// killed has a holder killed while another waits.
func killed(s *stage) {
	a, b := s.proc("a"), s.proc("b")
	a.enter("lock", 0)
	a.kill()
	b.pass("lock", 0, 10*time.Millisecond)
}

// acquireTwice loses the answer to an acquire.
func acquireTwice(s *stage) {
	a, b := s.proc("a"), s.proc("b")
	s.proxy.CutReply("':token'", 1)
	first := a.enter("lock", 0)
	s.all.Go(func() { b.pass("lock", 0, 10*time.Millisecond) })
	first.work(50 * time.Millisecond)
	first.leave()
	s.all.Wait()
	a.kill()
}

// releaseTwice loses the answer to the release of a hold within another.
func releaseTwice(s *stage) {
	a, b := s.proc("a"), s.proc("b")
	outer := a.enter("lock", 0)
	inner := a.enter("lock", 0)
	s.all.Go(func() { b.pass("lock", 0, 10*time.Millisecond) })
	inner.work(20 * time.Millisecond)
	s.proxy.CutReply("'hdel'", 1)
	inner.leave()
	outer.work(200 * time.Millisecond)
	outer.leave()
}

// leaver has somebody give up behind two who wait on.
func leaver(s *stage) {
	first := s.proc("a").enter("lock", 0)
	for _, name := range []string{"b", "c"} {
		p := s.proc(name)
		s.all.Go(func() { p.pass("lock", 0, 10*time.Millisecond) })
		first.work(20 * time.Millisecond)
	}
	s.proc("d").enterAs("d", "lock", 0, 30*time.Millisecond)
	first.leave()
}

// readers has one reader leave before another, while somebody wants to write.
func readers(s *stage) {
	a, b, c := s.proc("a"), s.proc("b"), s.proc("c")
	first, second := a.enter("read", 0), b.enter("read", 0)
	s.all.Go(func() { c.pass("write", 0, 10*time.Millisecond) })
	first.work(20 * time.Millisecond)
	first.leave()
	second.work(200 * time.Millisecond)
	second.leave()
}

func inTurn(s *stage) {
	a, b := s.proc("a"), s.proc("b")
	a.pass("fenced", 0, time.Millisecond)
	b.pass("fenced", 0, time.Millisecond)
}

func permits(s *stage) {
	for _, name := range []string{"a", "b", "c"} {
		p := s.proc(name)
		s.all.Go(func() { p.pass("permit", 2, 50*time.Millisecond) })
	}
}
