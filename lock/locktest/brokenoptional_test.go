package locktest

import (
	"cmp"
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// replacerFunc is a good Locker whose Replace does what the function does.
type replacerFunc struct {
	*memlock.Locker
	replace func(ctx context.Context, l *memlock.Locker, r lock.Request) (context.Context, func(), error)
}

func (f replacerFunc) Replace(ctx context.Context, r lock.Request) (context.Context, func(), error) {
	return f.replace(ctx, f.Locker, r)
}

func replacers(replace func(context.Context, *memlock.Locker, lock.Request) (context.Context, func(), error)) func() lock.Locker {
	return func() lock.Locker { return replacerFunc{memlock.New(), replace} }
}

var brokenReplacers = []brokenLocker{
	{"nobody is replaced", nobodyReplaced, lock.Exclusive, "a newer call replaces an older one"},
	{"replaced means lost", replacedIsLost, lock.Exclusive, "a newer call replaces an older one"},
	{"the newcomer gives way", newcomerGivesWay, lock.Exclusive, "of many newcomers the newest stays"},
	{"replaces itself", replacesItself, lock.Exclusive, "a re-entry replaces nobody"},
	{"one line for all", oneLineForAll, lock.Exclusive, "only turns at the key are replaced"},
	{"ended context ignored", endedIgnored, lock.Exclusive, "an ended context replaces nobody"},
}

var brokenPeekers = []brokenLocker{
	{"sees nothing", seesNothing, lock.Exclusive, "Peek says what an Acquire would get"},
	{"Peek takes", peekTakes, lock.Exclusive, "Peek takes nothing"},
}

var brokenGatherers = []brokenLocker{
	{"only the first is released", firstOnly, lock.Exclusive, "ReleaseAll releases all"},
	{"stops at a failure", stopsAtFailure, lock.Exclusive, "ReleaseAll tells the fate of each"},
	{"the first failure hides the others", firstFailure, lock.Exclusive, "ReleaseAll tells the fate of each"},
}

// gathererFunc is a good Locker whose ReleaseAll does what the function does.
type gathererFunc struct {
	*memlock.Locker
	release func(ctx context.Context, holds []lock.Hold) error
}

func (f gathererFunc) ReleaseAll(ctx context.Context, holds []lock.Hold) error {
	return f.release(ctx, holds)
}

func gatherers(release func(ctx context.Context, holds []lock.Hold) error) func() lock.Locker {
	return func() lock.Locker { return gathererFunc{memlock.New(), release} }
}

var (
	firstOnly = gatherers(func(ctx context.Context, holds []lock.Hold) error {
		for _, h := range holds[:min(1, len(holds))] {
			return h.Release(ctx)
		}
		return nil
	})

	stopsAtFailure = gatherers(func(ctx context.Context, holds []lock.Hold) error {
		for _, h := range holds {
			if err := h.Release(ctx); err != nil {
				return errors.Join(err, lock.ErrNotHeld)
			}
		}
		return nil
	})

	firstFailure = gatherers(func(ctx context.Context, holds []lock.Hold) (err error) {
		for _, h := range holds {
			err = cmp.Or(err, h.Release(ctx))
		}
		return err
	})
)

// peekerFunc is a good Locker whose Peek does what the function does.
type peekerFunc struct {
	*memlock.Locker
	peek func(ctx context.Context, l *memlock.Locker, r lock.Request) error
}

func (f peekerFunc) Peek(ctx context.Context, r lock.Request) error { return f.peek(ctx, f.Locker, r) }

func seesNothing() lock.Locker {
	return peekerFunc{memlock.New(), func(context.Context, *memlock.Locker, lock.Request) error { return nil }}
}

func peekTakes() lock.Locker {
	return peekerFunc{memlock.New(), func(ctx context.Context, l *memlock.Locker, r lock.Request) error {
		r.Wait = 0
		_, err := l.Acquire(ctx, r)
		return err
	}}
}

var (
	nobodyReplaced = replacers(func(ctx context.Context, _ *memlock.Locker, _ lock.Request) (context.Context, func(), error) {
		turn, cancel := context.WithCancel(ctx)
		return turn, cancel, nil
	})

	// replacedIsLost takes the lock from the older call, which may still be at work.
	replacedIsLost = replacers(func(ctx context.Context, l *memlock.Locker, r lock.Request) (context.Context, func(), error) {
		l.ForceUnlock(r.Key)
		return l.Replace(ctx, r)
	})

	// newcomerGivesWay ends the newer of two turns.
	newcomerGivesWay = replacers(func(ctx context.Context, l *memlock.Locker, r lock.Request) (context.Context, func(), error) {
		if errors.Is(l.Peek(ctx, r), lock.ErrBusy) {
			turn, end := context.WithCancelCause(ctx)
			end(lock.ErrReplaced)
			return turn, func() {}, nil
		}
		return l.Replace(ctx, r)
	})

	replacesItself = replacers(func(ctx context.Context, l *memlock.Locker, r lock.Request) (context.Context, func(), error) {
		return l.Replace(lock.NewOwner(ctx), r)
	})

	oneLineForAll = replacers(func(ctx context.Context, l *memlock.Locker, r lock.Request) (context.Context, func(), error) {
		r.Key = "all"
		return l.Replace(ctx, r)
	})

	endedIgnored = replacers(func(ctx context.Context, l *memlock.Locker, r lock.Request) (context.Context, func(), error) {
		return l.Replace(context.WithoutCancel(ctx), r)
	})
)
