package redisson

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/transport"
)

// watched are registry in a bubble, with a watchdog of 30s and a Redis that is a function.
type watched struct {
	*registry
	c     *Client
	start time.Time

	asking sync.Mutex
	asked  []question30
}

// question30 is something that Redis was asked.
type question30 struct {
	at   time.Duration // since the start
	exit bool          // and not an update
}

// watch30 runs f beside a watchdog whose questions redis answers.
func watch30(t *testing.T, redis func(call) answer, f func(*testing.T, *watched)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &watched{registry: newRegistry(30*time.Second, 6*time.Second), start: time.Now()}
		w.c = &Client{registry: w.registry, settings: settings{timeout: 3 * time.Second}}
		var all sync.WaitGroup
		all.Go(func() {
			for {
				select {
				case <-w.alarm.C:
				case <-t.Context().Done():
					return
				}
				for _, what := range w.takeDue() {
					w.asking.Lock()
					w.asked = append(w.asked, question30{time.Since(w.start), what.call.Script == lockRelease})
					w.asking.Unlock()
					all.Go(func() {
						sent := time.Now()
						a := redis(what.call)
						a.Sent = sent
						w.answered([]task{what}, []answer{a})
					})
				}
			}
		})
		f(t, w)
	})
}

// questions returns what was asked so far.
func (w *watched) questions() []question30 {
	w.asking.Lock()
	defer w.asking.Unlock()
	return slices.Clone(w.asked)
}

// hold makes a hold as an Acquire at this moment does.
func (w *watched) hold(t *testing.T, r lock.Request) *hold {
	t.Helper()
	ho := &holder{id: "h", keys: [1]string{"k"}, family: plain{}}
	h := new(hold)
	h.prepare(t.Context(), w.c, ho, r)
	ho.holds, ho.asked = []*hold{h}, cmp.Or(h.lease, 30*time.Second)
	entered := yes(ho.asked)
	if err := w.enter(h, 0, &entered); err != nil {
		t.Fatal(err)
	}
	return h
}

// yes is the answer of an enter or update that leaves this lease, sent now.
func yes(lease time.Duration) answer {
	return answer{Values: []int64{1, lease.Milliseconds(), 0}, Sent: time.Now()}
}

// answers30 gives each update the lease of 30s.
func answers30(call) answer { return yes(30 * time.Second) }

// endsAfter waits until the hold ends, and checks when and why.
func endsAfter(t *testing.T, h *hold, want time.Duration, reason error) {
	t.Helper()
	<-h.Context().Done()
	cause := context.Cause(h.Context())
	lost, ok := errors.AsType[*lock.LostError](cause)
	if !ok || lost.Held != want || !errors.Is(cause, reason) {
		t.Errorf("hold ended with %v after %v, want %v after %v", cause, present().sub(h.since), reason, want)
	}
}

// next is a hold as a call that waits in line has it.
func (w *watched) next(t *testing.T, r lock.Request) *hold {
	own, h := &holder{id: "own", keys: [1]string{"k"}, family: plain{}}, new(hold)
	h.prepare(t.Context(), w.c, own, r)
	own.holds = []*hold{h}
	return h
}

// In an outage, somebody who leaves asks about the holder last. That the hold was lost is no matter of a context that has ended.
func TestReasonOfALossIsNoCallersContext(t *testing.T) {
	silent := answer{Err: transport.ErrNoAnswer, Doubts: 1}
	for name, ask := range map[string]func(*watched, *hold, answer){
		"an extension": func(w *watched, h *hold, a answer) {
			update, _ := w.beginExtension(h, time.Minute)
			_ = w.endExtension(h, time.Minute, update, a)
		},
		"a re-entry": func(w *watched, h *hold, a answer) {
			inner := new(hold)
			inner.prepare(h.Context(), w.c, h.holder, lock.Request{})
			update, _ := w.beginReentry(inner, h)
			_ = w.enter(inner, update.version, &a)
		},
	} {
		t.Run(name, func(t *testing.T) {
			watch30(t, func(call) answer { return silent }, func(t *testing.T, w *watched) {
				h := w.hold(t, lock.Request{})
				time.Sleep(h.Remaining() - time.Millisecond)
				ask(w, h, answer{Err: context.Canceled})
				<-h.Context().Done()
				if cause := context.Cause(h.Context()); errors.Is(cause, context.Canceled) || !errors.Is(cause, transport.ErrNoAnswer) {
					t.Errorf("lost: %v, want no answer from Redis as the reason", cause)
				}
			})
		})
	}
}

// A call was about to re-enter a lock that has passed to another one meanwhile.
func TestNobodyReentersAHolderThatHasPassed(t *testing.T) {
	watch30(t, answers30, func(t *testing.T, w *watched) {
		outer, next, inner := w.hold(t, lock.Request{}), w.next(t, lock.Request{}), new(hold)
		inner.prepare(t.Context(), w.c, outer.holder, lock.Request{})
		if task, err := w.beginRelease(outer, 0, next); err != nil || task.next != next {
			t.Fatalf("the lock does not pass: %+v, %v", task, err)
		}
		if _, ok := w.beginReentry(inner, outer); ok {
			t.Error("a call re-enters under a hold that was released, and another one has the lock")
		}
	})
}

// Which locks pass.
func TestWhichLocksPass(t *testing.T) {
	for _, tt := range []struct {
		name        string
		first, next lock.Request
		before      func(w *watched, h *hold)
		passes      bool
	}{
		{name: "renewed", passes: true},
		{name: "as long a lease", first: lock.Request{Lease: time.Minute}, next: lock.Request{Lease: time.Minute}, before: func(*watched, *hold) { time.Sleep(time.Millisecond) }, passes: true},
		{name: "a shorter lease, which Redis would keep for longer", next: lock.Request{Lease: time.Second}},
		{name: "after a long lease, too", first: lock.Request{Lease: time.Hour}},
		{name: "after a short lease", first: lock.Request{Lease: time.Second}, passes: true},
		{name: "a longer lease", next: lock.Request{Lease: time.Hour}, passes: true},
		{name: "it is in doubt whether Redis has it", before: func(_ *watched, h *hold) { h.holder.changed() }, passes: true},
		{name: "not renewed for long", before: func(w *watched, h *hold) { h.holder.validUntil = present().add(w.timeout/2 - 1) }, passes: true},
		{name: "after the end of a streak", before: func(*watched, *hold) { time.Sleep(handoffTime) }},
		{name: "too many turns", before: func(_ *watched, h *hold) { h.holder.turns = handoffTurns }},
		{name: "not too many turns yet", before: func(_ *watched, h *hold) {
			time.Sleep(handoffTime - 1)
			h.holder.turns = handoffTurns - 1
		}, passes: true},
		{name: "a hold that was lost is not released", before: func(_ *watched, h *hold) { h.holder.unreleased++ }},
		{name: "after a renewed re-entry, whose lease Redis would keep", first: lock.Request{Lease: time.Second}, next: lock.Request{Lease: time.Second}, before: func(w *watched, h *hold) {
			inner := new(hold)
			inner.prepare(h.Context(), w.c, h.holder, lock.Request{})
			update, _ := w.beginReentry(inner, h)
			entered := yes(30 * time.Second)
			_ = w.enter(inner, update.version, &entered)
			_, _ = w.beginRelease(inner, 0, nil)
		}},
		{name: "after a suspension of the machine", before: func(w *watched, _ *hold) { w.asleep = -time.Minute }, passes: true},
		{name: "another holder of the client is newer", before: func(w *watched, h *hold) {
			newer := *h.holder
			w.holders.add(&newer)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			watch30(t, answers30, func(t *testing.T, w *watched) {
				h, next := w.hold(t, tt.first), w.next(t, tt.next)
				if tt.before != nil {
					tt.before(w, h)
				}
				if task, err := w.beginRelease(h, 0, next); (task.next != nil) != tt.passes || err != nil {
					t.Errorf("the lock passes: %v, %v, want %v", task.next != nil, err, tt.passes)
				}
			})
		})
	}
}

// A close does not remove what a release is about to.
func TestCloseDuringARelease(t *testing.T) {
	watch30(t, answers30, func(t *testing.T, w *watched) {
		h := w.hold(t, lock.Request{})
		task, _ := w.beginRelease(h, 0, nil)
		quiet := w.close(ErrClosed)
		time.Sleep(time.Second)
		if got := w.questions(); len(got) > 0 {
			t.Errorf("asked %v beside the release", got)
		}
		if err := w.endRelease(h, task, yes(0)); err != nil {
			t.Errorf("release: %v", err)
		}
		<-quiet
	})
}

// The lease ends of a lock that is on its way, while Redis is asked for a longer one. What the answer leaves in Redis is removed.
func TestLockIsLostOnItsWay(t *testing.T) {
	silentButForExits := func(cl call) answer {
		if cl.Script == lockRelease {
			return yes(0)
		}
		return answer{Err: transport.ErrNoAnswer, Doubts: 1}
	}
	watch30(t, silentButForExits, func(t *testing.T, w *watched) {
		h, next := w.hold(t, lock.Request{Lease: time.Second}), w.next(t, lock.Request{})
		task, _ := w.beginRelease(h, 0, next)
		if task.next != next {
			t.Fatalf("the lock does not pass: %+v", task)
		}
		sent := time.Now()
		time.Sleep(2 * time.Second)
		a := yes(30 * time.Second)
		a.Sent = sent
		if err := w.endRelease(h, task, a); err != nil {
			t.Errorf("release: %v", err)
		}
		if err := w.enter(next, task.version, &a); err == nil {
			t.Error("a lock that was lost is admitted")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := w.questions(); !slices.ContainsFunc(got, func(q question30) bool { return q.exit }) {
			t.Errorf("Redis was asked %v, and not to remove it", got)
		}
		w.expectEmpty(t)
	})
}

func (w *watched) expectEmpty(t *testing.T) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.schedule) != 0 || len(w.holders) != 0 {
		t.Errorf("left: %d scheduled, %d locks", len(w.schedule), len(w.holders))
	}
}

func TestWatchdogRenewsAtAThird(t *testing.T) {
	watch30(t, answers30, func(t *testing.T, w *watched) {
		h := w.hold(t, lock.Request{Key: "k"})
		time.Sleep(35 * time.Second)
		want := []question30{{at: 10 * time.Second}, {at: 20 * time.Second}, {at: 30 * time.Second}}
		if got := w.questions(); !slices.Equal(got, want) {
			t.Errorf("renewals at %v, want %v", got, want)
		}
		if h.Context().Err() != nil {
			t.Errorf("hold ended: %v", context.Cause(h.Context()))
		}
	})
}

// Silence: a new attempt each second from the third on, and the end a margin before the lease's.
func TestWatchdogWithoutAnswers(t *testing.T) {
	silent := func(call) answer {
		time.Sleep(time.Second)
		return answer{Err: transport.ErrNoAnswer}
	}
	watch30(t, silent, func(t *testing.T, w *watched) {
		h := w.hold(t, lock.Request{Key: "k"})
		endsAfter(t, h, 29*time.Second, errUnrenewed)
		got := w.questions()
		if len(got) != 19 || got[0].at != 10*time.Second || got[18].at != 28*time.Second {
			t.Errorf("attempts at %v, want each second from 10s to 28s", got)
		}
	})
}

// Errors are no loss, and the last one becomes the reason.
func TestWatchdogWithErrors(t *testing.T) {
	refused := errors.New("connection refused")
	watch30(t, func(call) answer { return answer{Err: refused} }, func(t *testing.T, w *watched) {
		endsAfter(t, w.hold(t, lock.Request{Key: "k"}), 29*time.Second, refused)
	})
}

// An answer counts from when the question was sent: one that took 15s for a question at 10s is good until 39s.
func TestWatchdogWithASlowAnswer(t *testing.T) {
	var asked atomic.Int32
	slow := func(call) answer {
		if asked.Add(1) > 1 {
			return answer{Err: transport.ErrNoAnswer}
		}
		a := yes(30 * time.Second)
		time.Sleep(15 * time.Second)
		return a
	}
	watch30(t, slow, func(t *testing.T, w *watched) {
		endsAfter(t, w.hold(t, lock.Request{Key: "k"}), 39*time.Second, errUnrenewed)
	})
}

// What Redis has answered counts, and not what was asked for.
func TestWatchdogBelievesTheLeaseThatRedisAnswered(t *testing.T) {
	watch30(t, func(call) answer { return yes(33 * time.Second) }, func(t *testing.T, w *watched) {
		h := w.hold(t, lock.Request{Key: "k"})
		time.Sleep(15 * time.Second)
		w.mu.Lock()
		defer w.mu.Unlock()
		if got, want := h.holder.validUntil.sub(instantOf(w.start)), 10*time.Second+goodFor(33*time.Second); got != want {
			t.Errorf("good until %v after the start, want %v", got, want)
		}
	})
}

func TestWatchdogToldThatItIsGone(t *testing.T) {
	watch30(t, func(call) answer { return answer{Values: []int64{0}} }, func(t *testing.T, w *watched) {
		endsAfter(t, w.hold(t, lock.Request{Key: "k"}), 10*time.Second, errGone)
		time.Sleep(time.Minute)
		if got := w.questions(); len(got) != 1 {
			t.Errorf("questions at %v, want one", got)
		}
		w.expectEmpty(t)
	})
}

func TestLeaseEndsByItself(t *testing.T) {
	watch30(t, answers30, func(t *testing.T, w *watched) {
		endsAfter(t, w.hold(t, lock.Request{Key: "k", Lease: 10 * time.Second}), 9500*time.Millisecond, errLease)
		time.Sleep(time.Minute)
		if got, want := w.questions(), []question30{{10 * time.Second, true}}; !slices.Equal(got, want) {
			t.Errorf("asked %v, want a removal when the lease is over", got)
		}
		w.expectEmpty(t)
	})
}

// With MaxHold, the work is notified a margin earlier, and the lock is removed from Redis instead of waiting for its lease.
func TestMaxHoldEndsALock(t *testing.T) {
	watch30(t, answers30, func(t *testing.T, w *watched) {
		h := w.hold(t, lock.Request{Key: "k", MaxHold: 45 * time.Second})
		endsAfter(t, h, 44*time.Second, lock.ErrMaxHold)
		time.Sleep(time.Minute)
		if got := w.questions(); len(got) != 5 || got[4] != (question30{45 * time.Second, true}) || got[3].exit {
			t.Errorf("asked %v, want four renewals and a removal at 45s", got)
		}
		w.expectEmpty(t)
	})
}

// When the machine was suspended, the wall clock runs ahead of the one that leases are counted by: each lock is looked at as
// soon as that is noticed, and an answer from before says nothing.
func TestSuspensionRenewsAtOnce(t *testing.T) {
	gone := func(call) answer { return answer{Values: []int64{0}} }
	watch30(t, gone, func(t *testing.T, w *watched) {
		h := w.hold(t, lock.Request{Key: "k"})
		time.Sleep(4500 * time.Millisecond)
		w.mu.Lock()
		w.asleep = -11 * time.Second // the suspension that was known about was shorter than the present one
		w.mu.Unlock()
		endsAfter(t, h, 5*time.Second+soonInterval, errGone) // it looks once a second
	})
}

func TestRetryGoesOnUntilAnswered(t *testing.T) {
	var asked atomic.Int32
	flaky := func(call) answer {
		if asked.Add(1) <= 5 {
			return answer{Err: errors.New("reset")}
		}
		return answer{Values: []int64{1}}
	}
	watch30(t, flaky, func(t *testing.T, w *watched) {
		<-w.discardDoubtful()
		time.Sleep(time.Minute)
		got := w.questions()
		if len(got) != 6 || got[0].at != soonInterval {
			t.Fatalf("removals at %v, want six, the first one at once", got)
		}
		for i, limit := range []time.Duration{10 * time.Millisecond, 40 * time.Millisecond, 160 * time.Millisecond, 640 * time.Millisecond, time.Second} {
			if pause := got[i+1].at - got[i].at; pause > limit || pause < limit/2 {
				t.Errorf("removals at %v: pause %d is %v, want %v at most", got, i, pause, limit)
			}
		}
		w.expectEmpty(t)
	})
}

// discardDoubtful discards a holder that an attempt may have brought into Redis, or may yet.
func (w *watched) discardDoubtful() <-chan struct{} {
	ho := &holder{id: "h", keys: [1]string{"k"}, family: plain{}, asked: 30 * time.Second}
	w.tried(ho, answer{Err: transport.ErrNoAnswer, Doubts: 1})
	return w.discard(ho, false)
}

// As long as an attempt may still arrive, it is not enough that nothing is there.
func TestRemovalWaitsForLateAttempts(t *testing.T) {
	watch30(t, func(call) answer { return answer{Values: []int64{0}} }, func(t *testing.T, w *watched) {
		<-w.discardDoubtful()
		if d := time.Since(w.start); d != 6*time.Second+soonInterval {
			t.Errorf("given up after %v, want 6s", d)
		}
		w.expectEmpty(t)
	})
}

// A lock that was taken and is not wanted is gone when Redis says so, unless another attempt to take it may still arrive.
func TestRemovalOfWhatWasTaken(t *testing.T) {
	for doubts, want := range []time.Duration{soonInterval, 6*time.Second + soonInterval} {
		watch30(t, func(call) answer { return yes(0) }, func(t *testing.T, w *watched) {
			ho := &holder{id: "h", keys: [1]string{"k"}, family: plain{}, asked: 30 * time.Second}
			w.tried(ho, answer{Values: []int64{1}, Doubts: doubts})
			<-w.discard(ho, true)
			if d := time.Since(w.start); d != want {
				t.Errorf("with %d attempts in doubt it is over after %v, want %v", doubts, d, want)
			}
			w.expectEmpty(t)
		})
	}
}

// Nobody knows any more what a removal that failed for a whole lease would remove.
func TestRetryEndsWithTheLease(t *testing.T) {
	watch30(t, func(call) answer { return answer{Err: transport.ErrNoAnswer} }, func(t *testing.T, w *watched) {
		<-w.discardDoubtful()
		if d := time.Since(w.start); d != 42*time.Second+soonInterval {
			t.Errorf("given up after %v, want 42s", d)
		}
	})
}
