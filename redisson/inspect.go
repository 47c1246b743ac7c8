package redisson

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// Inspect returns what Redis knows of the object with that name, as given to [Client.Lock] and its like. It is one script, which changes
// nothing, so that all of the answer was true at one moment; the names of the clients are asked for after it.
//
// What an object is, its data say. A free semaphore and a latch are a bare number, and so may be a key of somebody else: where nothing
// else of a semaphore is there, and somebody listens for the end of a latch, it is that, and otherwise a semaphore. An object that does
// not exist has [TypeNone], and is no error.
func (c *Client) Inspect(ctx context.Context, name string) (Object, error) {
	if err := c.checkName(name); err != nil {
		return Object{}, err
	}
	return c.inspect(ctx, c.mapName(name))
}

// InspectKey is Inspect for a key as it is in Redis, such as that of an [Object]. The name mapper does not apply.
func (c *Client) InspectKey(ctx context.Context, key string) (Object, error) {
	if err := c.checkKey(key); err != nil {
		return Object{}, err
	}
	return c.inspect(ctx, key)
}

// checkKey refuses what can be no key of an object.
func (c *Client) checkKey(key string) error {
	return cmp.Or((lock.Request{Key: key}).Validate(), c.checkSlot(key))
}

func (c *Client) inspect(ctx context.Context, key string) (Object, error) {
	in := c.newInquiry(ctx, nil)
	o, err := readObject(key, in.ask(inspectCall(key)))
	if err == nil {
		in.who.learn(in, &o)
	}
	return o, err
}

// inspectCall asks for all there is of an object. What belongs to it is not among KEYS: it is looked at as it turns out to matter.
func inspectCall(key string) call {
	return call{Script: inspect, Keys: []string{key}, Args: []any{fairQueue(key), fairDeadlines(key), tokenKey(key), permitsMark(key), suffixBase(key),
		lockChannel(key), rwChannel(key), semaphoreChannel(key), latchChannel(key), wakeName(key)}}
}

// seen is what an inspection was answered of one object, by its parts.
type seen struct {
	ttl              int64
	holders, waiting int64
	free             int64 // permits whose time is over, and that nobody has given back yet
	onLock, onRW     int64 // listeners
	onPermits, onEnd int64
	sort             string
	fields, queue    []any
	number, token    string
	taken            bool
}

// errUnreadable is the error of an answer that the script can't give.
var errUnreadable = errors.New("redisson: an inspection was answered something else")

// parse takes an answer apart.
func (s *seen) parse(parts []any) error {
	var marked string
	to := []any{&s.ttl, &s.holders, &s.waiting, &s.free, &s.onLock, &s.onRW, &s.onPermits, &s.onEnd,
		&s.sort, &s.fields, &s.queue, &s.number, &s.token, &marked}
	if len(parts) != len(to) {
		return errUnreadable
	}
	for i := range to {
		if !assign(to[i], parts[i]) {
			return errUnreadable
		}
	}
	s.taken = marked != ""
	return nil
}

// assign sets *to, a string, a list or an integer, and reports whether the value is one.
func assign(to, value any) (ok bool) {
	switch to := to.(type) {
	case *string:
		*to, ok = value.(string)
	case *[]any:
		*to, ok = value.([]any)
	case *int64:
		*to, ok = value.(int64)
	}
	return ok
}

// readObject returns what an inspection was answered of one object.
func readObject(key string, a answer) (Object, error) {
	if a.Err != nil {
		return Object{}, a.Err
	}
	var s seen
	if err := s.parse(a.List); err != nil {
		return Object{}, err
	}
	o := Object{Key: key, TTL: ttl(s.ttl), QueueLength: s.waiting}
	for _, w := range s.queue {
		waiter, err := readWaiter(w)
		if err != nil {
			return Object{}, err
		}
		o.Queue = append(o.Queue, waiter)
	}
	o.Token, _ = strconv.ParseInt(s.token, 10, 64) // what is no number is no counter
	var err error
	switch s.sort {
	case "hash":
		err = o.readHash(&s)
	case "string":
		err = o.readNumber(&s)
	case "none":
		o.readNothing(&s)
	default:
		o = Object{Key: key, Type: TypeOther, TTL: o.TTL}
	}
	if err != nil {
		return Object{}, err
	}
	return o, nil
}

// ttl is a time to live that Redis has answered.
func ttl(ms int64) time.Duration {
	const none = -2
	if ms == none {
		return 0
	}
	return duration(ms)
}

// readNothing says what is known where there is no key.
func (o *Object) readNothing(s *seen) {
	o.Listeners = s.onLock + s.onRW + s.onPermits + s.onEnd
	if o.QueueLength > 0 {
		o.Type = TypeLock
	}
}

// limiterFields are those of a rate limiter. Those that it always has are true.
var limiterFields = map[string]bool{"rate": true, "interval": true, "type": true, "keepAliveTime": false}

// readHash finds out whether a hash is a lock, a read/write lock or a rate limiter: by all of its fields.
func (o *Object) readHash(s *seen) error {
	const of = 3 // field, value and lease
	o.Type, o.Listeners, o.HolderCount = TypeLock, s.onLock, s.holders
	limits := 0
	for _, f := range s.fields {
		var field, value string
		var lease int64
		if l, ok := f.([]any); !ok || len(l) != of || !assign(&field, l[0]) || !assign(&value, l[1]) || !assign(&lease, l[2]) {
			return errUnreadable
		}
		needed, limiter := limiterFields[field]
		switch h, ok := readHolder(field, value); {
		case field == "mode" && (value == "read" || value == "write"):
			o.Mode, o.Type, o.Listeners = value, TypeReadWrite, s.onRW
			o.HolderCount--
		case limiter:
			if needed {
				limits++
			}
		case ok:
			h.Lease = ttl(lease)
			o.Holders = append(o.Holders, h)
		default:
			*o = Object{Key: o.Key, Type: TypeOther, TTL: o.TTL}
			return nil
		}
	}
	switch {
	case limits == 3 && len(o.Holders) == 0 && o.Mode == "":
		*o = Object{Key: o.Key, Type: TypeRateLimiter, TTL: o.TTL}
	case limits > 0 || len(o.Holders) == 0:
		*o = Object{Key: o.Key, Type: TypeOther, TTL: o.TTL}
	}
	return nil
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

// readHolder returns what a field of a lock says.
func readHolder(field, value string) (h Holder, ok bool) {
	count, err := strconv.Atoi(value)
	if err != nil || clientOf(field) == "" {
		return h, false
	}
	h = Holder{Client: clientOf(field), Count: count}
	h.ID, h.Write = strings.CutSuffix(field, writes)
	return h, true
}

func readWaiter(w any) (waiter Waiter, err error) {
	var id, until string
	if l, ok := w.([]any); !ok || len(l) != 2 || !assign(&id, l[0]) || !assign(&until, l[1]) {
		return waiter, errUnreadable
	}
	waiter = Waiter{ID: id, Client: clientOf(id)}
	if ms, err := strconv.ParseFloat(until, 64); err == nil {
		waiter.Until = time.UnixMilli(int64(ms))
	}
	return waiter, nil
}

// readNumber finds out what a number is.
func (o *Object) readNumber(s *seen) error {
	n, err := strconv.ParseInt(s.number, 10, 64)
	switch {
	case err != nil:
		*o = Object{Key: o.Key, Type: TypeOther, TTL: o.TTL}
		return nil //nolint:nilerr // that it is no number is the answer
	case s.taken:
		o.Type, o.Listeners = TypeExpirableSemaphore, s.onPermits
	case s.onEnd > 0 && s.onPermits == 0:
		o.Type, o.Listeners = TypeCountDownLatch, s.onEnd
	default:
		o.Type, o.Listeners = TypeSemaphore, s.onPermits
	}
	o.Permits, o.HolderCount = n+s.free, s.holders
	for _, f := range s.fields {
		var id, count string
		var lease int64
		if l, ok := f.([]any); !ok || len(l) != 3 || !assign(&id, l[0]) || !assign(&count, l[1]) || !assign(&lease, l[2]) {
			return errUnreadable
		}
		o.Holders = append(o.Holders, Holder{ID: hex.EncodeToString([]byte(id)), Count: 1, Lease: permitLease(lease)})
	}
	return nil
}

// permitLease is negative for a permit without an end, whose time is one that is far away.
func permitLease(ms int64) time.Duration {
	if ms > farAway {
		return -1
	}
	return duration(ms)
}

// farAway is longer than any lease, and shorter than the time from now to the one that stands for no end.
const farAway = 100 * 365 * 24 * 60 * 60 * 1000

// errCursor is the error of a search that the server answers without a cursor.
var errCursor = fmt.Errorf("%w: a cursor is missing", errUnreadable)
