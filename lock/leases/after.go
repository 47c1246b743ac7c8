package leases

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/lock"
)

// after is what the release of a hold leaves to be done.
type after int

const (
	nothing after = iota
	toDowngrade
	toKeep
	toFree
)

// leave does what the end of a hold has left to be done. Its error is nil, ErrLost if the entry was gone, or an outage, after which
// the rest is done in the background.
func (s *stay) leave(ctx context.Context, then after) error {
	switch then {
	case toDowngrade:
		s.downgrade(ctx)
		return nil
	case toFree:
		return s.free(ctx)
	}
	return nil
}

// downgrade lets readers in beside s, if the service can. If it fails, they wait until s is over.
func (s *stay) downgrade(ctx context.Context) {
	if d, ok := s.l.store.(Downgrader); ok {
		_ = plain(ctx, s.entry, s.l.timeout, func(ctx context.Context) error { return d.Downgrade(ctx, s.entry) })
	}
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	if p := s.l.places[s.key]; p != nil {
		p.wakeLocked()
	}
}

// keep lets the entry, under which nobody works anymore, end by itself d from now, or later if another hold was kept for longer.
func (s *stay) keep(ctx context.Context, d time.Duration) error {
	asked := time.Now()
	s.l.mu.Lock()
	need, _ := s.needLocked(asked)
	s.l.mu.Unlock()
	d = max(d, need)
	err := s.retryFree(ctx, d)
	if errors.Is(err, lock.ErrLost) {
		s.lose(errGone)
	}
	if err == nil {
		s.l.mu.Lock()
		defer s.l.mu.Unlock()
		s.lastsLocked(asked.Add(d), 0)
	}
	return err
}

// free removes the entry, if need be in the background.
func (s *stay) free(ctx context.Context) error {
	defer s.forget()
	err := s.retryFree(ctx, 0)
	if err != nil && !errors.Is(err, lock.ErrLost) && !errors.Is(err, lock.ErrRefused) {
		s.l.mu.Lock()
		rest := time.Until(s.possible)
		s.l.mu.Unlock()
		s.l.remove(s.entry, rest, false)
	}
	return err
}

// retryFree asks the service to free the entry until ctx has ended or the timeout is over. It returns an ErrLost if there was none.
func (s *stay) retryFree(ctx context.Context, keep time.Duration) error {
	asked := time.Now()
	end := asked.Add(s.l.timeout)
	doubt := false
	for pause := firstTidy / 10; ; pause *= 2 {
		err := s.l.free(ctx, s.entry, keep)
		switch {
		case errors.Is(err, lock.ErrNotHeld) && doubt && time.Since(asked) >= keep: // an earlier one did it; what it keeps is there until then
			return nil
		case errors.Is(err, lock.ErrNotHeld):
			return &lock.LostError{Reason: errGone}
		case err == nil, errors.Is(err, lock.ErrRefused):
			return err
		}
		doubt = true
		if time.Now().Add(pause).After(end) || !clock.Sleep(ctx, pause) {
			return err
		}
	}
}

// forget takes s out of the way of the others in this process.
func (s *stay) forget() {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	p := s.l.places[s.key]
	p.stays = slices.DeleteFunc(p.stays, func(o *stay) bool { return o == s })
	close(s.gone)
	p.known = time.Now()
	p.wakeLocked()
	s.l.sweepLocked(s.key)
}
