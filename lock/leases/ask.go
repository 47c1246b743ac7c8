package leases

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// grace is the time for a call of the Store beyond its context, so that its own error comes back and not ours.
const grace = 50 * time.Millisecond

var errSilent = errors.New("leases: no answer from the lock service")

// answer is the outcome of a question.
type answer[T any] struct {
	value T
	err   error
	open  bool // the question goes on, and nobody knows what it does; its end is the business of left
}

// ask calls op, once no other call for e is under way, and returns its answer. It waits for that no longer than ctx, and grace
// beyond d. Op itself is not cancelled with ctx, as what a cancelled question has done is anybody's guess; if ask has returned
// before op does, left gets op's answer. A panic of the Store is an error.
func ask[T any](ctx context.Context, e *Entry, d time.Duration, op func(context.Context) (T, error), left func(error)) answer[T] {
	timer := time.NewTimer(d + grace)
	defer timer.Stop()
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return answer[T]{err: leftEarly{ctx}}
	case <-timer.C:
		return answer[T]{err: fmt.Errorf("%w in %v, and the question before is still open", errSilent, d)}
	}
	answers := make(chan answer[T]) // without room: either we take the answer, or left gets it
	gone := make(chan struct{})
	go func() {
		var a answer[T]
		a.value, a.err = call(context.WithoutCancel(ctx), d, op)
		<-e.turn
		select {
		case answers <- a:
		case <-gone:
			left(a.err)
		}
	}()
	select {
	case a := <-answers:
		return a
	case <-ctx.Done():
		close(gone)
		return answer[T]{err: leftEarly{ctx}, open: true}
	case <-timer.C:
		close(gone)
		return answer[T]{err: fmt.Errorf("%w in %v", errSilent, d), open: true}
	}
}

// leftEarly is the error of a question whose asker left because ctx ended. It does not match the cause of that, which may be an
// ErrLost or ErrBusy of another lock, and must not be taken for an answer about this one.
type leftEarly struct{ ctx context.Context }

func (e leftEarly) Error() string {
	return fmt.Sprintf("leases: no time to hear the answer: %v", context.Cause(e.ctx))
}

func (e leftEarly) Unwrap() error { return e.ctx.Err() }

// plain is ask for an op that answers nothing but an error, and that may be left.
func plain(ctx context.Context, e *Entry, d time.Duration, op func(context.Context) error) error {
	return ask(ctx, e, d, func(ctx context.Context) (struct{}, error) { return struct{}{}, op(ctx) }, func(error) {}).err
}

// call is op within d. A panic becomes an error, and an error that is only about the time that was over says so.
func call[T any](ctx context.Context, d time.Duration, op func(context.Context) (T, error)) (value T, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d, fmt.Errorf("%w in %v", errSilent, d))
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("leases: the lock service's client panicked: %v", p)
		}
		if err != nil && ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
			err = context.Cause(ctx) // not a deadline of the caller's
		}
	}()
	return op(ctx)
}

// certain reports whether err, which a Take returned, says for sure that it took nothing.
func certain(err error) bool {
	return errors.Is(err, lock.ErrBusy) || errors.Is(err, lock.ErrRefused) || errors.Is(err, lock.ErrUnsupported)
}

// tidy frees e in the background, until the service has answered. If a Take was in doubt, it may still be on its way, so that
// "there is no such entry" is believed only after it can't be anymore: when the lease that it asks for would be over.
type tidy struct {
	l     *Locker
	e     *Entry
	until time.Time // when a request may still arrive
	last  time.Time // when the entry has ended by itself, whatever happens
	pause time.Duration
}

const (
	firstTidy   = 100 * time.Millisecond
	longestTidy = 30 * time.Second
	latest      = 5 * time.Minute // for requests that are late
)

// remove starts to tidy e, which was requested with a lease of d. It returns at once.
func (l *Locker) remove(e *Entry, d time.Duration, doubt bool) {
	now := time.Now()
	t := &tidy{l: l, e: e, pause: firstTidy, until: now, last: now.Add(max(d, l.watchdog) + latest)}
	if doubt {
		t.until = now.Add(min(max(d, l.watchdog), latest))
	}
	go t.run()
}

// run frees the entry, or arranges for the next try. Between two tries there is a timer and no goroutine.
func (t *tidy) run() {
	err := t.l.free(context.Background(), t.e, 0)
	now := time.Now()
	switch {
	case err == nil, errors.Is(err, lock.ErrNotHeld) && !now.Before(t.until), errors.Is(err, lock.ErrRefused), now.After(t.last):
		return
	}
	pause := t.pause
	t.pause = min(2*pause, longestTidy)
	time.AfterFunc(pause, t.run)
}

// free asks the Store once to remove e, after keep.
func (l *Locker) free(ctx context.Context, e *Entry, keep time.Duration) error {
	return plain(ctx, e, l.timeout, func(ctx context.Context) error { return l.store.Free(ctx, e, keep) })
}
