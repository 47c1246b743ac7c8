package setnxlock

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
	"github.com/redis/go-redis/v9"
)

// store is a leases.Store. Its texts say how locks are written.
type store struct {
	rdb   redis.UniversalClient
	fresh *reply.Fresh // nil in a cluster
	texts
}

var (
	_ leases.Store   = (*store)(nil)
	_ leases.Peeker  = (*store)(nil)
	_ leases.Watcher = (*watchingStore)(nil)
)

// Take implements [leases.Store].
func (s *store) Take(ctx context.Context, e *leases.Entry, d time.Duration) (leases.Grant, error) {
	a, _, err := s.ask(ctx, takeScript, false, e, s.valueOf(e), milliseconds(d))
	return leases.Grant{}, a.refused(err)
}

// Extend implements [leases.Store].
func (s *store) Extend(ctx context.Context, e *leases.Entry, d time.Duration) (time.Duration, error) {
	a, _, err := s.ask(ctx, extendScript, true, e, s.valueOf(e), milliseconds(d))
	return a.left, a.gone(err)
}

// Free implements [leases.Store].
func (s *store) Free(ctx context.Context, e *leases.Entry, keep time.Duration) error {
	asked := time.Now()
	a, doubt, err := s.ask(ctx, freeScript, true, e, s.valueOf(e), s.channelOf(e.Key), milliseconds(max(0, keep)))
	if err == nil && doubt && time.Since(asked) >= keep {
		return nil // if nothing is there, an earlier attempt has freed it; what that was to keep is there until then
	}
	return a.gone(err)
}

// Peek implements [leases.Peeker].
func (s *store) Peek(ctx context.Context, e *leases.Entry) error {
	a, _, err := s.ask(ctx, peekScript, true, e)
	return a.refused(err)
}

// refused reads an answer about a lock that somebody wants.
func (a answer) refused(err error) error {
	switch {
	case err != nil:
		return err
	case a.code == otherType:
		return otherTypeError(a.kind)
	case a.code == no:
		return &lock.BusyError{Remaining: max(0, a.left)}
	}
	return nil
}

// gone reads an answer about a lock that somebody has.
func (a answer) gone(err error) error {
	if err == nil && a.code != yes {
		return lock.ErrNotHeld
	}
	return err
}

// milliseconds rounds up, so that no lease is shorter than requested.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// single is a command that go-redis does not repeat: ask does, because it has to know that an earlier attempt may have run.
type single struct{ *redis.Cmd }

// NoRetry keeps go-redis from repeating the command by itself.
func (single) NoRetry() bool { return true }

const firstPause, longestPause = 5 * time.Millisecond, 200 * time.Millisecond

// ask runs sc until it is answered, ctx has ended, or another attempt has no prospect. In doubt, an attempt without an answer
// came before the one that was answered. A Take must not be repeated after such an attempt: it may be on its way for so long
// that it takes the lock again when it has been released.
func (s *store) ask(ctx context.Context, sc *script, repeat bool, e *leases.Entry, args ...any) (a answer, doubt bool, err error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		sent := time.Now()
		a, err = s.askOnce(ctx, s.rdb, sc, e, args)
		if s.fresh != nil && elsewhere(err) {
			s.fresh.Repeat(ctx, sent, func(via reply.Sender) (wrong bool) {
				a, err = s.askOnce(ctx, via, sc, e, args)
				return elsewhere(err)
			})
		}
		if err == nil {
			return a, doubt, nil
		}
		doubt = doubt || reply.MayHaveRun(err)
		if doubt && !repeat || !reply.Classify(err).Repeat || !clock.Sleep(ctx, pause) {
			return a, doubt, classify(err)
		}
	}
}

// elsewhere reports whether a server said that the connection leads to the wrong one, or to one that is not ready. Nothing has run.
func elsewhere(err error) bool { return err != nil && reply.Classify(err).Elsewhere }

// askOnce sends the digest of a script, and the script itself only if the server does not know it.
func (s *store) askOnce(ctx context.Context, via reply.Sender, sc *script, e *leases.Entry, args []any) (answer, error) {
	a, err := s.send(ctx, via, "evalsha", sc.digest, e, args)
	if err != nil && reply.Classify(err).NoScript {
		a, err = s.send(ctx, via, "eval", sc.source, e, args)
	}
	return a, err
}

func (s *store) send(ctx context.Context, via reply.Sender, name, code string, e *leases.Entry, args []any) (answer, error) {
	cmd := single{redis.NewCmd(ctx, append([]any{name, code, 1, s.keyOf(e.Key)}, args...)...)}
	cmd.SetFirstKeyPos(3)
	_ = via.Process(ctx, cmd) // the command has the error, too
	a, err := readAnswer(cmd.Cmd)
	if s.fresh != nil {
		err = reply.Alone(err)
	}
	return a, err
}

// watchingStore is a store with a channel on which releases are announced.
type watchingStore struct {
	*store
	listener *listener
}

// Watch implements [leases.Watcher].
func (s *watchingStore) Watch(_ context.Context, key string) (changed <-chan struct{}, stop func(), err error) {
	changed, stop = s.listener.listen(s.channelOf(key))
	return changed, stop, nil
}
