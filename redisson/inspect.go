package redisson

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"regexp"
	"slices"
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

// checkKey refuses what can be no key of an object.
func (c *Client) checkKey(key string) error {
	return cmp.Or((lock.Request{Key: key}).Validate(), c.checkSlot(key))
}

// inspectCall asks for all there is of an object. What belongs to it is not among KEYS: it is looked at as it turns out to matter.
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

// readObject returns what an inspection was answered of one object.
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
