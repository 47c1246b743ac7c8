package redisson

import (
	"strconv"
	"time"
)

// Object is what Redis had of a lock, or of something like it, at one moment. See [Client.Inspect].
type Object struct {
	// Key is the object's main key in Redis: its name after the name mapper. It can have any bytes.
	Key  string
	Type ObjectType
	// Mode is "read" or "write" for a read/write lock that is held, and empty otherwise.
	Mode string
	// TTL is how long the key lasts unless somebody renews it. Negative: it has no end. It is 0 where there is no key.
	TTL time.Duration
	// Holders are those who have the lock, or permits of an expirable semaphore: at most 1,000, of HolderCount in all. Of a plain
	// semaphore Redis knows no holders.
	Holders     []Holder
	HolderCount int64
	// Queue is who waits for a fair lock, in order: at most the first 1,000, of QueueLength in all. Of a plain or fenced lock it is the clients of
	// this package of which somebody waits, in the order in which they are woken. Of others that wait, Redis knows only that their processes
	// listen.
	Queue       []Waiter
	QueueLength int64
	// Listeners is how many clients listen to the object's channel, which most do while one of their calls waits, and for a quarter of a
	// second longer. Waiters for a spin lock do not, and those in the queue of a fair lock have channels of their own. In a cluster
	// without sharded channels, it counts those at the object's master.
	Listeners int64
	// Token is the last fencing token that was given out, and 0 if there was none, as for all locks that are not fenced.
	Token int64
	// Permits is how many permits of a semaphore are free, or the count of a latch.
	Permits int64
}

// Holder is one who has a lock, or one permit.
type Holder struct {
	// ID is the id of the holder in Redis, "<client>:<number>", or that of a permit in hexadecimal.
	ID string
	// Client is the client's part of ID, see [Client.ID]. It is empty for a permit unless its client has the option [Describe].
	Client string
	// Count is how many holds the holder has; of a lock of this package it may be too high until the next renewal.
	Count int
	// Lease is how long the holder has the lock unless it renews it. Negative: without an end.
	Lease time.Duration
	// Write says that the holder writes, and not that it reads; always false where there is no such difference.
	Write bool
	// Who is the zero Identity unless the client has the option [Name].
	Who Identity
	// About is nil unless the client has the option [Describe].
	About *About
	// Renewed is when the client has renewed the lease last, as far as can be told: zero where it is not described, or not renewed.
	Renewed time.Time
}

// About is what a client with the option [Describe] says of a hold. Its JSON is what Redis has.
type About struct {
	// Since is when the lock was taken, by the clock of its host.
	Since time.Time `json:"since"`
	// For is the Holder of the lock.Request, such as the name of a guard.
	For string `json:"for,omitempty"`
	// Trace is the id of the trace in which it was taken, in hexadecimal.
	Trace string `json:"trace,omitempty"`
	// Renews says that the watchdog renews the lease, which otherwise ends by itself.
	Renews bool `json:"renews,omitempty"`
	// Waits are keys, ten at most, for which calls under the hold wait: it ends after that.
	Waits []string `json:"waits,omitempty"`
}

// Waiter is one in the queue of a fair lock, or a client that waits for a plain or fenced one: its ID is that of no holder then, and Until is zero.
type Waiter struct {
	// ID and Client are as those of a Holder.
	ID, Client string
	// Until is when it counts as dead if it does not come again, by the server's clock. It is zero where a stranger has removed that.
	Until time.Time
	Who   Identity
}

// Identity says whose client it is. Its JSON is what Redis has. It is zero for a client without the option [Name].
type Identity struct {
	Name    string    `json:"name"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Since   time.Time `json:"since"`
	// Watchdog is the client's watchdog's timeout, in nanoseconds in Redis; see [WatchdogTimeout]. A third of it is between two renewals, and
	// between two signs of life.
	Watchdog time.Duration `json:"watchdog,omitempty"`
	// Describes says that the client has the option [Describe].
	Describes bool `json:"describes,omitempty"`
	// Heard is when the client gave the last sign of life, by the clock of who asks.
	Heard time.Time `json:"-"`
}

// ObjectType is what a key in Redis is.
type ObjectType int

// The types of an Object.
const (
	// TypeNone says that there is no such key: nobody holds the lock. There may be a Token all the same.
	TypeNone ObjectType = iota
	// TypeLock is a plain, fair, fenced or spin lock: they have the same data. A fair lock that is free and has a queue is one, too.
	TypeLock
	// TypeReadWrite is a read/write lock.
	TypeReadWrite
	// TypeSemaphore is a plain semaphore, or a number that looks like one: see [Client.Inspect].
	TypeSemaphore
	// TypeExpirableSemaphore is a semaphore whose permits have an end, also that of lock.Permit.
	TypeExpirableSemaphore
	// TypeCountDownLatch is a latch for whose end somebody waits.
	TypeCountDownLatch
	// TypeRateLimiter is a rate limiter.
	TypeRateLimiter
	// TypeOther is a key that belongs to somebody else.
	TypeOther
)

var typeTexts = [...]string{"none", "lock", "readwrite", "semaphore", "expirablesemaphore", "countdownlatch", "ratelimiter", "other"}

// String returns the type in one word of lower case letters, such as "readwrite".
func (t ObjectType) String() string {
	if t < 0 || int(t) >= len(typeTexts) {
		return "ObjectType(" + strconv.Itoa(int(t)) + ")"
	}
	return typeTexts[t]
}
