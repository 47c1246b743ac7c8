package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/lock"
)

const (
	firstPause   = 10 * time.Millisecond
	longestPause = 250 * time.Millisecond
)

// leastAttempt is the time that a slow disk and an election need.
const leastAttempt = 500 * time.Millisecond

// ask calls op until it has an answer, the timeout is over or ctx has ended. The client takes the next member each time, so an attempt
// gets no more than a third of the time: its member may be cut off. Op must be safe to repeat. ask reports how many attempts
// have failed: each of them may have done its work, and may still do so.
func (s *store) ask(ctx context.Context, op func(context.Context) error) (failed int, err error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), s.timeout)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err = s.attempt(ctx, op)
		if err == nil || settled(err) {
			return failed, err
		}
		failed++
		if ctx.Err() == nil && clock.Sleep(ctx, pause) {
			continue
		}
		if caller.Err() == nil && errors.Is(err, context.DeadlineExceeded) { // not the caller's
			err = errSilent
		}
		return failed, fmt.Errorf("etcd: %w", err)
	}
}

// patience is how long a member may take to answer.
func (s *store) patience() time.Duration { return max(s.timeout/3, leastAttempt) }

func (s *store) attempt(ctx context.Context, op func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	return classify(op(ctx))
}

var (
	errNoLease = errors.New("etcd does not have the lease anymore")
	errExists  = errors.New("etcd has this lease already")
	errSilent  = errors.New("no member answers in time")
	errFull    = errors.New("etcd takes no writes")
)

// settled reports whether asking again is of no use.
func settled(err error) bool {
	return errors.Is(err, lock.ErrRefused) || errors.Is(err, errNoLease) || errors.Is(err, errExists) || errors.Is(err, errFull) ||
		errors.Is(err, rpctypes.ErrCompacted)
}

// classify turns an error of the client into one of the errors above or of package lock. Any other is an outage.
func classify(err error) error {
	if err == nil {
		return nil
	}
	err = rpctypes.Error(err)
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return errNoLease
	case errors.Is(err, rpctypes.ErrLeaseExist):
		return errExists
	case errors.Is(err, rpctypes.ErrNoSpace), errors.Is(err, rpctypes.ErrCorrupt):
		return fmt.Errorf("%w: %w", errFull, err)
	case refused(err):
		return fmt.Errorf("%w: %w", lock.ErrRefused, err)
	}
	return err
}

// refused reports whether etcd will give the same answer for ever.
func refused(err error) bool {
	switch {
	case errors.Is(err, rpctypes.ErrAuthOldRevision): // somebody has just changed a user
		return false
	case errors.Is(err, rpctypes.ErrNotCapable), errors.Is(err, rpctypes.ErrLeaseTTLTooLarge):
		return true
	}
	switch codeOf(err) {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unimplemented:
		return true
	}
	return false
}

func codeOf(err error) codes.Code {
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return e.Code()
	}
	return status.Code(err)
}
