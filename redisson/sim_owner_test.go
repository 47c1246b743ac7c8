package redisson_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// owner takes what the scene has, again and again. All that it draws is its own, so that it does the same in each run of a
// seed, and each of its calls comes at an instant of its own.
type owner struct {
	w       *world
	client  *redisson.Client
	name    string
	rand    *rand.Rand
	rounds  int
	final   bool // no faults any more
	process int  // which has links of its own to the servers
}

// live is an owner's life while there are faults.
func (o *owner) live() {
	o.sleep(5 * time.Millisecond)
	for range o.w.options.rounds {
		o.round()
		o.sleep(20 * time.Millisecond)
	}
}

// last is one more round: it begins with faults, and soon there are none. What was asked before that may still fail.
func (o *owner) last() {
	o.final = true
	for start := time.Now(); time.Since(start) < liveness; o.sleep(time.Second) {
		if o.round() {
			return
		}
	}
	o.w.judge.accuse("liveness: %s waits in vain", o.name)
}

// round does what the scene has, once. It reports whether the owner came to what it wanted.
func (o *owner) round() bool {
	o.rounds++
	if free := o.w.scene.force; free != nil && !o.final && o.rand.IntN(40) == 0 {
		_ = o.call("frees by force", context.Background(), o.w.times.timeout, func() error {
			l := free(o.client)
			if o.w.sim == nil { // nobody sees when Redis does it
				defer o.w.judge.force(l.Name())()
			}
			_, err := l.ForceUnlock(context.Background())
			return err
		})
	}
	return o.w.scene.round(o)
}

func (o *owner) sleep(most time.Duration) { time.Sleep(o.upTo(most)) }

// upTo is a time below d, to the nanosecond.
func (o *owner) upTo(d time.Duration) time.Duration {
	return time.Duration(o.rand.Int64N(int64(d / o.w.times.scale)))
}

// between is a time between the two, of which each order of magnitude is as likely.
func (o *owner) between(least, most time.Duration) time.Duration {
	return o.draw(least/o.w.times.scale, most/o.w.times.scale)
}

func (o *owner) draw(least, most time.Duration) time.Duration {
	return time.Duration(float64(least) * math.Pow(float64(most)/float64(least), o.rand.Float64()))
}

// lease is 0, for one that is renewed, or a time.
func (o *owner) lease() time.Duration {
	lease := o.draw(o.w.times.least, o.w.times.most).Truncate(time.Millisecond)
	if renewed := o.rand.IntN(2) == 0; renewed || o.w.options.leases == "renewed" {
		return 0
	}
	return lease
}

// liveness is how long a waiter may have to wait when there are no faults any more: for late copies, for what they took until
// their lease is over, and for the stays of all others.
const liveness = 2 * time.Minute

// patience is how long an owner waits, and under which context.
func (o *owner) patience() (wait time.Duration, ctx context.Context, cancel context.CancelFunc) {
	ctx, draw, soon, long := context.Background(), o.rand.IntN(10), o.between(time.Millisecond, 5*time.Second), 20*time.Second+o.upTo(10*time.Second)
	if o.final {
		ctx, cancel = context.WithTimeout(ctx, liveness)
		return -1, ctx, cancel
	}
	switch draw {
	case 0:
		return 0, ctx, func() {}
	case 1, 2:
		return soon, ctx, func() {}
	case 3, 4:
		ctx, cancel = context.WithTimeout(ctx, soon)
		return -1, ctx, cancel
	case 5:
		ctx, cancel = context.WithCancel(ctx)
		time.AfterFunc(soon, cancel)
		return 10 * time.Second, ctx, cancel
	}
	ctx, cancel = context.WithTimeout(ctx, long)
	return -1, ctx, cancel
}

// acquire is a call that waits to get inside of these keys.
func (o *owner) acquire(what string, ctx context.Context, wait time.Duration, keys []string, f func() error) error {
	o.sleep(time.Millisecond)
	done := o.w.judge.await(keys)
	err := o.call(what, ctx, wait, f)
	done(err != nil)
	return err
}

// call makes a call of the client, and holds it to its bounds. A negative wait has no end.
func (o *owner) call(what string, ctx context.Context, wait time.Duration, f func() error) error {
	o.sleep(time.Millisecond)
	start, b := time.Now(), simBounds[o.w.options.bounds]
	ended := make(chan time.Time, 1)
	stop := context.AfterFunc(ctx, func() { ended <- time.Now() })
	err := f()
	took := time.Since(start)
	o.w.net.Note("%s %s: %v", o.name, what, err)
	if most := b.most(wait, o.w.times.timeout) + o.w.scene.longer; wait >= 0 && took > most {
		o.w.judge.accuse("late: %s returned after %v, and %v may be: %v", what, took, most, err)
	}
	if !stop() {
		if late := took - (<-ended).Sub(start); late > b.leave {
			o.w.judge.accuse("late: %s returned %v after its context: %v", what, late, err)
		}
	}
	o.weigh(what, ctx, wait, err)
	return err
}

// weigh looks at how a call has ended.
func (o *owner) weigh(what string, ctx context.Context, wait time.Duration, err error) {
	if err != nil {
		o.w.failed.Add(1)
	}
	switch {
	case err == nil:
	case errors.Is(err, lock.ErrBusy):
		o.w.net.Reach("busy")
		if wait < 0 {
			o.w.judge.accuse("%s: busy without an end of the wait", what)
		}
	case errors.Is(err, lock.ErrLost):
		o.w.net.Reach("lost")
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		o.w.net.Reach("context ended")
	default:
		o.w.net.Reach("outage")
		f, b := o.w.options.faults, simBounds[o.w.options.bounds]
		if twice := 2 * simFaults["away"].AwayMost; f == "away" && wait >= 0 && min(wait+b.answer, o.w.times.timeout) < twice {
			return // it may have met two outages, one right after the other
		}
		if f == "none" || f == "demoted" || f == "back" || f == "behind" || f == "away" && o.w.options.scene != "red" { // which are bridged; a RedLock does without a server
			o.w.judge.accuse("%s: an outage without a fault: %v", what, err)
		}
	}
}
