package redisson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

const (
	// scanPage is how many keys a server looks at in one script, few enough to take it a millisecond or two.
	scanPage = 1000
	// scanPause is how long an object that was found may wait for others, to be looked at together with them.
	scanPause = 250 * time.Millisecond
	// mostSeen bounds how many objects a search remembers, so that it does not return one twice.
	mostSeen = 1 << 16
	// scans is how often a search goes through all keys: once for each of their types.
	scans = 3
)

// errMoved ends the search at a master that has lost the slot by which it was found.
var errMoved = errors.New("redisson: the slots of the cluster have moved during a search")

// errEnded ends a search whose caller wants no more of it.
var errEnded = errors.New("redisson: the search is over")

// Objects returns all lock objects whose keys match a pattern, Redisson's and ours, at all masters of a cluster. The pattern is one of
// Redis' SCAN, for keys as they are in Redis, whatever the name mapper does; "" is "*".
//
// Keys of others are passed over: locks and rate limiters are known by the fields of their hashes, expirable semaphores by the set of the
// permits that are taken, fair locks that are free by their queue. A plain semaphore, a latch and an expirable semaphore of which nothing
// is taken are a bare number, as others have, too: they are found while somebody listens to their channels. [Client.Inspect] finds them
// by name.
//
// Redis serves others during the search, which asks for a part of its keys at a time. Each object is as it was at a
// moment during the search. An object that is there all the time is returned, once in a while twice if there are over
// 65,536; others may be. An error comes with an Object without data, or with only a Key. The search goes on after it,
// at the next master or object if there is one; it ends with ctx.
func (c *Client) Objects(ctx context.Context, pattern string, opts ...SearchOption) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		s := &search{lookup: c.newLookup(ctx, opts), pattern: cmp.Or(pattern, "*"), yield: yield, found: map[string]bool{}}
		masters, err := s.masters()
		if err != nil {
			yield(Object{}, err)
		}
		for i := range masters {
			if err := s.at(&masters[i]); errors.Is(err, errEnded) || err != nil && (!yield(Object{}, err) || ctx.Err() != nil) {
				return
			}
		}
	}
}

// search is one for objects. Its methods return why it goes no further at a master.
type search struct {
	*lookup
	pattern string
	yield   func(Object, error) bool
	found   map[string]bool // keys of what was returned
}

// server is a master to search, and a key by which a question gets there.
type server struct {
	address, key string
	before, size int64 // how many keys it has, and those before it, if somebody wants to know
	looked       int64 // at how many
}

// masters lists the masters to search, with their sizes.
func (s *search) masters() (all []server, err error) {
	keys := []string{searchKey}
	if t := s.c.topology; t.Mapped() {
		if t.Master(searchKey) == "" { // any question has the map of the cluster read
			if a := s.ask(call{Script: sign, Keys: keys}); a.Err != nil {
				return nil, a.Err
			}
		}
		keys = keyOfEachSlot(t)
	}
	for _, keys := range pubsub.ByMaster(s.c.topology, keys, func(key string) string { return key }) {
		m := server{address: s.c.topology.Master(keys[0]), key: keys[0], before: s.done.Total}
		if s.progress != nil {
			if a := s.ask(call{Script: size, Keys: keys[:1]}); a.Err == nil { // or else it is not known
				m.size = max(0, a.Values[0])
			}
		}
		s.done.Total += m.size
		all = append(all, m)
	}
	return all, nil
}

// keyOfEachSlot returns keys by which a search finds its way to each master.
func keyOfEachSlot(t *pubsub.Topology) (keys []string) {
	slots := map[int]bool{}
	for i := 0; len(slots) < pubsub.SlotCount; i++ {
		key := searchKey + strconv.Itoa(i)
		if slot := pubsub.Slot(key); !slots[slot] {
			slots[slot] = true
			if t.Master(key) != "" {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// pass is one of the ways in which a search finds objects: by keys of a type, or by channels. See lua/scan.lua.
type pass struct{ sort, pattern string }

// at searches at one master.
func (s *search) at(m *server) error {
	for _, p := range []pass{
		{"hash", s.pattern},
		{"zset", "*:timeout"},
		{"list", "redisson_lock_queue:*"},
		{"channel", "redisson_[cs]*"}, // of latches and semaphores
	} {
		if err := s.scan(m, p); err != nil {
			return err
		}
	}
	s.advance(m.before + m.size)
	return nil
}

// scan goes through the keys of a type, or the channels, of a master.
func (s *search) scan(m *server, p pass) error {
	var names []string
	looks, cursor, end := time.Now(), "0", false
	for !end {
		a := s.c.query(s.ctx, call{Script: scan, Keys: []string{m.key}, Args: []any{cursor, p.pattern, p.sort, scanPage}})
		var found []any
		switch {
		case a.Err != nil:
			return a.Err
		case !unpack(a.List, &cursor, &found):
			return errUnreadable
		case s.c.topology.Master(m.key) != m.address:
			return errMoved
		}
		m.looked += scanPage
		s.advance(m.before + min(m.looked/scans, m.size))
		names, end = append(names, s.unknown(p, found)...), cursor == "0"
		if end || len(names) >= lookedTogether || time.Since(looks) > scanPause {
			if err := s.give(names); err != nil {
				return err
			}
			names, looks = nil, time.Now()
		}
	}
	return nil
}

// matches reports whether text matches a pattern of Redis. It is false for a pattern that path.Match finds malformed:
// only Redis knows the meaning of that.
func matches(pattern, text string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(text, "/", "\x00"))
	return ok && err == nil
}

// unknown lists those of the names that match the pattern, and were not returned yet.
func (s *search) unknown(p pass, found []any) (names []string) {
	for _, f := range found {
		name, _ := f.(string)
		if name != "" && !s.found[name] && (p.sort == "hash" || matches(s.pattern, name)) && s.c.checkSlot(name) == nil {
			names = append(names, name)
		}
	}
	return names
}

// give yields the objects at these keys, without those that belong to others.
func (s *search) give(names []string) error {
	for o, err := range s.objects(names) {
		switch {
		case err != nil && o.Key == "":
			return err
		case err == nil && (o.Type == TypeNone || o.Type == TypeOther || s.found[o.Key]):
			continue
		case !s.yield(o, err):
			return errEnded
		}
		if len(s.found) < mostSeen {
			s.found[o.Key] = true
		}
	}
	return context.Cause(s.ctx)
}

// lookedTogether is how many objects a server inspects at a time, with a script for each: so it serves others in
// between.
const lookedTogether = 100

// SearchOption changes one thing about a [Client.Objects] or [Client.InspectKeys].
type SearchOption func(*lookup)

// Progress is how far somebody has come who looks at objects.
type Progress struct {
	// Keys is how many keys were looked at, of Total. In a search, Total is how many there were in Redis when it began, at all masters, and
	// both are 0 where Redis does not say. Keys is reckoned from the number of steps, so it is nearly right; it is Total in the end, if all
	// masters have answered.
	Keys, Total int64
	// Questions is the number of questions to Redis, without those that go through all keys by SCAN, and through all
	// channels. The scripts for up to 100 objects travel together and are one question.
	Questions int
}

// OnProgress calls f after each step, in the goroutine that ranges over the objects. In a search it costs a question for each master.
func OnProgress(f func(Progress)) SearchOption {
	return func(in *lookup) { in.progress = f }
}

// InspectKeys is [Client.InspectKey] for many keys, in few round trips: one for each hundred keys at a master, and one for the names of their
// clients. The objects come in any order. An error comes with an Object with only a Key, or, for all keys at a master that does not answer, with one
// without data.
func (c *Client) InspectKeys(ctx context.Context, keys []string, opts ...SearchOption) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		in := c.newLookup(ctx, opts)
		in.done.Total = int64(len(keys))
		var good []string
		for _, key := range keys {
			if err := c.checkKey(key); err == nil {
				good = append(good, key)
			} else if !yield(Object{Key: key}, err) {
				return
			}
		}
		for o, err := range in.objects(good) {
			if !yield(o, err) {
				return
			}
			in.advance(in.done.Keys + 1)
		}
	}
}

// lookup looks at many objects for a caller.
type lookup struct {
	c        *Client
	ctx      context.Context
	who      map[string]Identity // of known clients, by id; zero for one that says nothing
	progress func(Progress)      // may be nil
	done     Progress
}

func (c *Client) newLookup(ctx context.Context, opts []SearchOption) *lookup {
	in := &lookup{c: c, ctx: ctx, who: map[string]Identity{}}
	for _, opt := range opts {
		opt(in)
	}
	return in
}

// ask asks one question.
func (in *lookup) ask(cl call) answer {
	in.done.Questions++
	return in.c.query(in.ctx, cl)
}

// advance notes that so many keys were looked at in all.
func (in *lookup) advance(keys int64) {
	in.done.Keys = keys
	if in.progress != nil {
		in.progress(in.done)
	}
}

// objects looks at keys, one master after the other. Its errors are as those of InspectKeys.
func (in *lookup) objects(keys []string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for _, keys := range pubsub.ByMaster(in.c.topology, keys, func(key string) string { return key }) {
			for keys := range slices.Chunk(keys, lookedTogether) {
				found, errs := in.look(keys)
				for i, o := range found {
					if !yield(o, errs[i]) {
						return
					}
				}
				if found[len(found)-1].Key == "" {
					break
				}
			}
		}
	}
}

// look looks at some keys of one master. An object without a key, the last one, comes with why it has not looked at the rest.
func (in *lookup) look(keys []string) (found []Object, errs []error) {
	calls := make([]call, len(keys))
	for i, key := range keys {
		calls[i] = inspectCall(key)
	}
	in.done.Questions++
	for i, a := range in.c.askAll(in.ctx, time.Now().Add(in.c.timeout), calls) {
		o, err := readObject(keys[i], a)
		down := err != nil && !reply.IsReply(err) && !errors.Is(err, errUnreadable) // so others would not be answered, either
		if err != nil && !down {
			o, err = Object{Key: keys[i]}, fmt.Errorf("redisson: a key could not be looked at: %w", err)
		}
		found, errs = append(found, o), append(errs, err)
		if down {
			break
		}
	}
	in.learn(found)
	return found, errs
}
