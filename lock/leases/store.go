package leases

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// Store is the part of a Locker that a service implements. Its methods are called by many goroutines, for one Entry by
// one at a time. The answer to any call may be lost, and any request may arrive late, after newer ones: so no call may
// shorten a lease that an earlier one may have granted, except Free, after which nobody relies on the entry.
//
// Their errors are those of package lock: ErrBusy, ErrNotHeld, ErrRefused and ErrUnsupported, also wrapped. Any other
// error is an outage: the service may have done the work, or may still do it.
type Store interface {
	// Take gives e its key for d from now on, if nobody is in the way. It answers ErrBusy otherwise, best as a *lock.BusyError
	// with the Remaining time, or a *lock.KindError if the holders have another family of kinds. A Take that returns one of
	// the errors of package lock has left nothing behind. The Locker asks once for each Entry, but a driver may repeat the request:
	// if it has been granted before, it is granted again.
	Take(ctx context.Context, e *Entry, d time.Duration) (Grant, error)
	// Extend lets the lease of e end d from now, if it would end earlier. It returns how long the lease lasts from now on, or 0
	// for d, which is less than what is known in any case. ErrNotHeld says that there is no such entry; Extend never makes one.
	Extend(ctx context.Context, e *Entry, d time.Duration) (time.Duration, error)
	// Free removes e, if keep is 0. Otherwise the entry is to end by itself keep from now, be that earlier or later than before;
	// a service whose leases are coarse may keep it longer, as the Locker calls Free again then. ErrNotHeld says that there is no
	// such entry.
	Free(ctx context.Context, e *Entry, keep time.Duration) error
}

// Queue is a Store that keeps the order of waiters. The Locker calls Enter in place of Take for all that wait, and
// leaves the order to it. The waiters for any other Store stand in line within the process, and the first of them asks
// again after a pause; see Poll.
type Queue interface {
	Store
	// Enter is Take, but waits in the service's own line until it is e's turn or ctx has ended, and renews e until then. It calls
	// e.Answered as soon as the service has put e in line. After an error, Free is called to take e out of the line, and an
	// outage is followed by an Enter of another Entry.
	Enter(ctx context.Context, e *Entry, d time.Duration) (Grant, error)
}

// Watcher is a Store that can notify waiters when a key may have become free.
type Watcher interface {
	Store
	// Watch returns a channel that gets a value when the key may have become free, and a function that ends that. A
	// message may be lost or too many: the Locker asks again after its pause in any case. An error means the same as a channel
	// that stays silent.
	Watch(ctx context.Context, key string) (changed <-chan struct{}, stop func(), err error)
}

// Downgrader is a Store with read and write locks.
type Downgrader interface {
	Store
	// Downgrade makes a write lock that is held a read lock, without a moment in between in which others could write. If
	// others are in the way of that, it leaves e a write lock and returns nil. It must not set e.Kind.
	Downgrade(ctx context.Context, e *Entry) error
}

// Peeker is a Store that can look at a key without taking anything.
type Peeker interface {
	Store
	// Peek returns the error that a Take of an entry of that key, kind and limit would, and takes nothing.
	Peek(ctx context.Context, e *Entry) error
}

// Grant is the yes of a Store.
type Grant struct {
	// Lease is how long the entry lasts if it is not renewed; 0 is the lease that was requested. A service with a
	// coarse clock may grant more, and one that bounds leases less.
	Lease time.Duration
	// Since is when the question was sent whose answer proves the Lease; zero is when Take was called. A Queue renews the entries
	// of those who wait by itself, and has to set it.
	Since time.Time
	// Token is the fencing token of a Fenced lock.
	Token int64
}

// Entry is one stay's entry in the service, existing or requested.
type Entry struct {
	Key   string
	Kind  lock.Kind // with which the stay begins
	Limit int       // of a Permit
	// ID is different for each Entry of all processes: 26 characters of A to Z and 2 to 7, after the prefix that the option ID
	// gives.
	ID string
	// Data is the Store's own.
	Data any

	turn     chan struct{} // has room for the one call that is under way
	answered atomic.Bool
	stay     atomic.Pointer[stay]  // once it is granted
	gone     atomic.Pointer[error] // the reason, once the Store has said so
}

// Lost notifies the Locker that e is gone, with the reason, if a Store hears of that by itself. It may be called at any
// time, more than once and by several goroutines, and does nothing if e is not held.
func (e *Entry) Lost(reason error) {
	e.gone.CompareAndSwap(nil, &reason)
	if s := e.stay.Load(); s != nil {
		s.lose(reason)
	}
}

// Answered notes that the service has answered, so that the end of the wait is not taken for an outage.
func (e *Entry) Answered() { e.answered.Store(true) }
