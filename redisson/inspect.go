package redisson

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// Object is the state of a lock, or of something like it, in Redis at one moment. See [Client.Inspect].
type Object struct {
	// Key is the object's main key in Redis: its name after the name mapper. It can have any bytes.
	Key  string
	Type ObjectType
	// Mode is "read" or "write" for a read/write lock that is held, and empty otherwise.
	Mode string
	// TTL is how long the key lasts unless somebody renews it. Negative: it has no end. It is 0 where there is no key.
	TTL time.Duration
	// Holders are those who have the lock, or permits of an expirable semaphore: at most 1,000, of HolderCount in all.
	// Redis knows no holders of a plain semaphore.
	Holders     []Holder
	HolderCount int64
	// Queue lists the waiters of a fair lock, in order: at most the first 1,000, of QueueLength in all. For a plain or
	// fenced lock, and for permits, it lists the clients of this package that have waiters, in the order in which they
	// are woken. Redis knows of other waiters only that their processes listen.
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

// Holder is one holder of a lock, or of one permit.
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

// About is the description of a hold by a client with the option [Describe]. Its JSON is what Redis has.
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

// Waiter is one in the queue of a fair lock, or a client that waits for a plain or fenced one, or for a permit: its ID is that of no holder then, and Until is zero.
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
	// Heard is when the client gave the last sign of life, by the caller's clock.
	Heard time.Time `json:"-"`
}

// ObjectType is the type of a key in Redis.
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

// Inspect returns what Redis knows of the object with that name, as given to [Client.Lock] and its like. It is one
// script, which changes nothing, so that all of the answer was true at one moment. It looks up the names of the clients
// after that.
//
// The data of an object show its type. A free semaphore and a latch are a bare number, and so may be a key of somebody
// else. Such a number is a latch if nothing else of a semaphore is there, and somebody listens for the end of a latch.
// Otherwise it is a semaphore. An object that does not exist has [TypeNone], and is no error.
func (c *Client) Inspect(ctx context.Context, name string) (Object, error) {
	if err := c.checkName(name); err != nil {
		return Object{}, err
	}
	return c.InspectKey(ctx, c.mapName(name))
}

// InspectKey is Inspect for a key as it is in Redis, such as that of an [Object]. The name mapper does not apply.
func (c *Client) InspectKey(ctx context.Context, key string) (Object, error) {
	if err := c.checkKey(key); err != nil {
		return Object{}, err
	}
	found, errs := c.newLookup(ctx, nil).look([]string{key})
	return found[0], errs[0]
}

// checkKey refuses a text that can be no key of an object.
func (c *Client) checkKey(key string) error {
	return cmp.Or((lock.Request{Key: key}).Validate(), c.checkSlot(key))
}

// inspectCall asks for all there is of an object. The keys that belong to it are not among KEYS: the script looks at
// them where they turn out to matter.
func inspectCall(key string) call {
	return call{Script: inspect, Keys: []string{key}, Args: []any{fairQueue(key), fairDeadlines(key), tokenKey(key), permitsMark(key), suffixBase(key),
		lockChannel(key), rwChannel(key), semaphoreChannel(key), latchChannel(key), wakeName(key)}}
}

// errUnreadable is the error of an answer that the script can't give.
var errUnreadable = errors.New("redisson: an inspection was answered something else")

// unpack sets what to points at, strings, lists and integers, to the parts of a list, and reports whether they are these.
func unpack(list any, to ...any) bool {
	parts, ok := list.([]any)
	ok = ok && len(parts) == len(to)
	for i := 0; ok && i < len(to); i++ {
		switch to := to[i].(type) {
		case *string:
			*to, ok = parts[i].(string)
		case *[]any:
			*to, ok = parts[i].([]any)
		case *int64:
			*to, ok = parts[i].(int64)
		}
	}
	return ok
}

// readObject returns the object in an inspection's answer.
func readObject(key string, a answer) (Object, error) {
	if a.Err != nil {
		return Object{}, a.Err
	}
	o := Object{Key: key}
	var left int64
	var sort string
	var holders, queue []any
	ok := unpack(a.List, &left, &sort, &o.Mode, &holders, &o.HolderCount, &queue, &o.QueueLength, &o.Listeners, &o.Token, &o.Permits)
	o.TTL, o.Type = duration(left), ObjectType(slices.Index(typeTexts[:], sort))
	for _, h := range holders {
		ok = ok && o.readHolder(h)
	}
	for _, w := range queue {
		ok = ok && o.readWaiter(w)
	}
	if !ok || o.Type < 0 {
		return Object{}, errUnreadable
	}
	return o, nil
}

// holderID is that of a holder: Redisson's own, of its transactions, and ours. The side that writes has its mark behind it.
var holderID = regexp.MustCompile(`^([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}):\d[^ ]{0,200}$`)

// clientOf returns the client's part of the id of a holder, and nothing if it is no such id.
func clientOf(id string) string {
	if m := holderID.FindStringSubmatch(id); m != nil {
		return m[1]
	}
	return ""
}

const writes = ":write"

// readHolder adds a holder, and reports whether it is one.
func (o *Object) readHolder(from any) bool {
	var h Holder
	var count, lease int64
	ok := unpack(from, &h.ID, &count, &lease)
	if o.Type == TypeExpirableSemaphore {
		if len(h.ID) == permitSize {
			h.Client = idFrom([]byte(h.ID[:permitSize/2]))
		}
		h.ID = hex.EncodeToString([]byte(h.ID))
	} else {
		h.ID, h.Write = strings.CutSuffix(h.ID, writes)
		if h.Client = clientOf(h.ID); noteOf(h.ID) != "" {
			h.About = &About{For: noteOf(h.ID)}
		}
	}
	h.Count, h.Lease = int(count), duration(lease)
	o.Holders = append(o.Holders, h)
	return ok
}

// readWaiter adds a waiter, and reports whether it is one.
func (o *Object) readWaiter(from any) bool {
	var w Waiter
	var until int64
	ok := unpack(from, &w.ID, &until)
	w.Client = clientOf(w.ID)
	if until != 0 {
		w.Until = time.UnixMilli(until)
	}
	o.Queue = append(o.Queue, w)
	return ok
}
