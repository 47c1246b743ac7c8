package redisson

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

const (
	// scanPage is how many keys a server looks at in one script, few enough to take it about a millisecond.
	scanPage = 500
	// askedTogether is how many objects are asked about in one pipeline.
	askedTogether = 100
	// mostSeen bounds how many objects a search remembers, so that it does not return one twice.
	mostSeen = 1 << 16
	// mostChannels bounds how many channels a search looks at of a master and a kind.
	mostChannels = 10_000
)

// errMoved ends the search at a master that has lost the slot by which it was found.
var errMoved = errors.New("redisson: the slots of the cluster have moved during a search")

// Objects returns all lock objects whose keys match a pattern, Redisson's and ours, at all masters of a cluster. The pattern is one of
// Redis' SCAN, for keys as they are in Redis, whatever the name mapper does; "" is "*".
//
// Keys of others are passed over: locks and rate limiters are known by the fields of their hashes, expirable semaphores by the set of the
// permits that are taken, fair locks that are free by their queue. A plain semaphore, a latch and an expirable semaphore of which nothing
// is taken are a bare number, as others have, too: they are found while somebody listens to their channels. [Client.Inspect] finds them
// by name.
//
// Redis is asked for a part of its keys at a time, so it serves others meanwhile. Each object is as it was at a moment during the search.
// What is there all the time is returned, of the rest some may be, and once in a while one twice if there are over 65,536. An error comes with
// an Object without data, or with only a Key. The search goes on after it, at the next master or object if there is one; it ends with ctx.
func (c *Client) Objects(ctx context.Context, pattern string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if pattern == "" {
			pattern = "*"
		}
		s := &search{c: c, ctx: ctx, pattern: pattern, yield: yield, seed: maphash.MakeSeed(), found: map[uint64]bool{}, who: identities{}}
		servers, err := c.servers(ctx)
		if err != nil {
			yield(Object{}, err)
			return
		}
		for _, server := range servers {
			if !s.at(server) {
				return
			}
		}
	}
}

// search is one for objects. A method that returns false has met the end of it.
type search struct {
	c       *Client
	ctx     context.Context
	pattern string
	yield   func(Object, error) bool
	seed    maphash.Seed
	found   map[uint64]bool // what was returned, by hash
	who     identities
}

// server is a master that is asked, and a key by which a question gets there.
type server struct{ address, key string }

// servers lists the masters with slots.
func (c *Client) servers(ctx context.Context) (all []server, err error) {
	if c.topology.Cluster() == nil {
		return []server{{key: searchKey}}, nil
	}
	// Any question has the map of the cluster read.
	if a := c.query(ctx, call{listChannels, []string{searchKey}, []any{"", 0}}); a.err != nil {
		return nil, a.err
	}
	slots, addresses := map[int]bool{}, map[string]bool{}
	for i := 0; len(slots) < pubsub.SlotCount; i++ {
		key := searchKey + strconv.Itoa(i)
		slot := pubsub.Slot(key)
		if slots[slot] {
			continue
		}
		slots[slot] = true
		if at := c.topology.Master(key); at != "" && !addresses[at] {
			addresses[at] = true
			all = append(all, server{at, key})
		}
	}
	return all, nil
}

// pass is one of the ways in which a search finds objects: by keys of a type, or by channels.
type pass struct {
	sort, pattern string                    // of keys
	names         func(key string) []string // of the objects that they can belong to
	wanted        func(o *Object) bool      // and not found by another pass
}

// passes of a search. The pattern of the first one is the caller's.
var (
	passes = []pass{
		{"hash", "", func(key string) []string { return []string{key} }, func(o *Object) bool {
			return o.Type == TypeLock || o.Type == TypeReadWrite || o.Type == TypeRateLimiter
		}},
		{"zset", "*" + takenSuffix, func(key string) []string { return bases(strings.TrimSuffix(key, takenSuffix)) }, func(o *Object) bool {
			return o.Type == TypeExpirableSemaphore
		}},
		{"list", queuePrefix + "*", func(key string) []string { return lastOf(bases(strings.TrimPrefix(key, queuePrefix))) }, func(o *Object) bool {
			return o.Type == TypeLock && len(o.Holders) == 0
		}},
	}
	channelPasses = []pass{
		{"", permitsPrefix + "*", func(channel string) []string { return bases(strings.TrimPrefix(channel, permitsPrefix)) }, func(o *Object) bool {
			return o.Type == TypeSemaphore || o.Type == TypeExpirableSemaphore
		}},
		{"", latchPrefix + "*", func(channel string) []string {
			return []string{strings.TrimSuffix(strings.TrimPrefix(channel, latchPrefix), "}")}
		}, func(o *Object) bool { return o.Type == TypeCountDownLatch }},
	}
)

// lastOf is for a free lock: of two names with the same queue, the one without braces is the likely one.
func lastOf(names []string) []string { return names[max(0, len(names)-1):] }

// at searches at one master.
func (s *search) at(m server) bool {
	for _, p := range passes {
		if p.pattern == "" {
			p.pattern = s.pattern
		}
		more, ok := s.keys(m, p)
		if !ok || !more {
			return ok
		}
	}
	for _, p := range channelPasses {
		a := s.c.query(s.ctx, call{listChannels, []string{m.key}, []any{p.pattern, mostChannels}})
		if a.err != nil {
			return s.fail(a.err)
		}
		if !s.look(p, a.list) {
			return false
		}
	}
	return true
}

// keys searches among the keys of a master. It is not ok at the end of the search; without more, this master has failed.
func (s *search) keys(m server, p pass) (more, ok bool) {
	for cursor := "0"; ; {
		a := s.c.query(s.ctx, call{scan, []string{m.key}, []any{cursor, p.pattern, p.sort, scanPage}})
		err, keys := a.err, []any(nil)
		switch {
		case err != nil:
		case len(a.list) != 2 || !assign(&cursor, a.list[0]) || !assign(&keys, a.list[1]):
			err = errCursor
		case s.c.topology.Master(m.key) != m.address:
			err = errMoved
		}
		if err != nil {
			return false, s.fail(err)
		}
		if !s.look(p, keys) {
			return false, false
		}
		if cursor == "0" {
			return true, true
		}
	}
}

// fail returns an error to the caller, and reports whether the search goes on.
func (s *search) fail(err error) bool { return s.yield(Object{}, err) && s.ctx.Err() == nil }

// look inspects the objects that keys or channels can belong to, and returns those that are some.
func (s *search) look(p pass, found []any) bool {
	var names []string
	for _, f := range found {
		key, _ := f.(string)
		for _, name := range p.names(key) {
			twin := p.sort == "list" && s.found[s.hash("{"+name+"}")] // which has the same queue
			if name != "" && !twin && (p.sort == "hash" || matches(s.pattern, name)) && s.c.topology.check(name) == nil && !s.found[s.hash(name)] {
				names = append(names, name)
			}
		}
	}
	for part := range slices.Chunk(names, askedTogether) {
		if !s.inspect(p, part) {
			return false
		}
	}
	return s.ctx.Err() == nil || s.fail(context.Cause(s.ctx))
}

// inspect returns those of the objects with these keys that a pass wants.
func (s *search) inspect(p pass, names []string) bool {
	calls := make([]call, len(names))
	for i, name := range names {
		calls[i] = inspectCall(name)
	}
	var found []*Object
	for i, a := range s.c.askEach(s.ctx, calls) {
		name := names[i]
		o, err := readObject(name, a)
		switch {
		case err != nil:
			if !s.yield(Object{Key: name}, fmt.Errorf("redisson: a key could not be looked at: %w", err)) {
				return false
			}
		case p.wanted(&o) && !s.found[s.hash(name)]:
			found = append(found, &o)
			if len(s.found) < mostSeen {
				s.found[s.hash(name)] = true
			}
		}
	}
	s.who.learn(s.ctx, s.c, found...)
	for _, o := range found {
		if !s.yield(*o, nil) {
			return false
		}
	}
	return true
}

func (s *search) hash(name string) uint64 { return maphash.String(s.seed, name) }

// askEach asks many questions that change nothing, in few round trips to each master, and yields the answers by their places. What fails is
// asked once more by itself, which repeats it for as long as there is time.
func (c *Client) askEach(ctx context.Context, calls []call) iter.Seq2[int, answer] {
	of := map[string][]int{}
	for i, cl := range calls {
		at := c.topology.Master(cl.keys[0])
		of[at] = append(of[at], i)
	}
	return func(yield func(int, answer) bool) {
		for _, at := range slices.Sorted(maps.Keys(of)) {
			for part := range slices.Chunk(of[at], askedTogether) {
				together := make([]call, len(part))
				for i, at := range part {
					together[i] = calls[at]
				}
				for i, a := range c.road.askTogether(ctx, time.Now().Add(c.timeout), together) {
					if a.err != nil && !lasting(a.err) {
						a = c.query(ctx, together[i])
					}
					if !yield(part[i], a) {
						return
					}
				}
			}
		}
	}
}
