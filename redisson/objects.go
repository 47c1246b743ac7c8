package redisson

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"iter"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

const (
	// scanPage is how many keys a server looks at in one script, few enough to take it a millisecond or two.
	scanPage = 1000
	// scanPause is how long an object that was found may wait for others, to be looked at together with them.
	scanPause = 250 * time.Millisecond
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
func (c *Client) Objects(ctx context.Context, pattern string, opts ...SearchOption) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		s := &search{inquiry: c.newInquiry(ctx, opts), pattern: cmp.Or(pattern, "*"), yield: yield, seed: maphash.MakeSeed(), found: map[uint64]bool{}}
		servers, err := s.servers()
		if err != nil {
			yield(Object{}, err)
			return
		}
		for i := range servers {
			if !s.at(&servers[i]) {
				return
			}
		}
	}
}

// search is one for objects. A method that returns false has met the end of it.
type search struct {
	*inquiry
	pattern string
	yield   func(Object, error) bool
	seed    maphash.Seed
	found   map[uint64]bool // what was returned, by hash
}

// server is a master that is asked, and a key by which a question gets there.
type server struct {
	address, key string
	size         int64 // how many keys it has, if somebody wants to know
}

// servers lists the masters.
func (s *search) servers() (all []server, err error) {
	all = []server{{key: searchKey}}
	if c := s.c; c.topology.Mapped() {
		if c.topology.Master(searchKey) == "" { // any question has the map of the cluster read
			if a := s.ask(call{Script: listChannels, Keys: []string{searchKey}, Args: []any{0}}); a.Err != nil {
				return nil, a.Err
			}
		}
		all = c.masters()
	}
	if s.progress == nil {
		return all, nil
	}
	for i := range all {
		if a := s.ask(call{Script: size, Keys: []string{all[i].key}, Args: nil}); a.Err == nil { // or else it is not known
			all[i].size = max(0, a.Values[0])
			s.done.Total += all[i].size
		}
	}
	return all, nil
}

// masters lists those of a map.
func (c *Client) masters() (all []server) {
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
			all = append(all, server{address: at, key: key})
		}
	}
	return all
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
func (s *search) at(m *server) bool {
	before := s.done.Keys
	for i, p := range passes {
		if p.pattern == "" {
			p.pattern = s.pattern
		}
		more, ok := s.keys(m, p, before+m.size*int64(i)/int64(len(passes)))
		if !ok || !more {
			return ok
		}
	}
	patterns := []any{mostChannels}
	for _, p := range channelPasses {
		patterns = append(patterns, p.pattern)
	}
	a := s.ask(call{Script: listChannels, Keys: []string{m.key}, Args: patterns})
	if a.Err == nil && len(a.List) != len(channelPasses) {
		a.Err = errUnreadable
	}
	if a.Err != nil {
		return s.fail(a.Err)
	}
	for i, p := range channelPasses {
		channels, _ := a.List[i].([]any)
		if more, ok := s.look(p, s.names(p, channels)); !ok || !more {
			return ok
		}
	}
	s.advance(before + m.size)
	return true
}

// keys searches among the keys of a master, of which so many were looked at before. It is not ok at the end of the search; without more,
// this master has failed.
func (s *search) keys(m *server, p pass, before int64) (more, ok bool) {
	var names []string
	looked, looks := int64(0), time.Now()
	for cursor := "0"; ; {
		a := s.c.query(s.ctx, call{Script: scan, Keys: []string{m.key}, Args: []any{cursor, p.pattern, p.sort, scanPage}})
		err, keys := a.Err, []any(nil)
		switch {
		case err != nil:
		case len(a.List) != 2 || !assign(&cursor, a.List[0]) || !assign(&keys, a.List[1]):
			err = errCursor
		case s.c.topology.Master(m.key) != m.address:
			err = errMoved
		}
		if err != nil {
			return false, s.fail(err)
		}
		looked += scanPage
		s.advance(before + min(looked, m.size)/int64(len(passes)))
		end := cursor == "0"
		if names = append(names, s.names(p, keys)...); end || len(names) >= lookedTogether || time.Since(looks) > scanPause {
			if more, ok := s.look(p, names); !ok || !more || end {
				return more, ok
			}
			names, looks = names[:0], time.Now()
		}
	}
}

// fail returns an error to the caller, and reports whether the search goes on.
func (s *search) fail(err error) bool { return s.yield(Object{}, err) && s.ctx.Err() == nil }

// matches reports whether text matches a pattern of Redis. Of one that path.Match finds malformed, only Redis knows what it means.
func matches(pattern, text string) bool {
	plain := strings.NewReplacer("/", "\x00")
	ok, err := path.Match(plain.Replace(pattern), plain.Replace(text))
	return ok && err == nil
}

// names lists those of the objects that keys or channels can belong to which were not returned yet.
func (s *search) names(p pass, found []any) (names []string) {
	for _, f := range found {
		key, _ := f.(string)
		for _, name := range p.names(key) {
			twin := p.sort == "list" && s.found[s.hash("{"+name+"}")] // which has the same queue
			if name != "" && !twin && (p.sort == "hash" || matches(s.pattern, name)) && s.c.checkSlot(name) == nil && !s.found[s.hash(name)] {
				names = append(names, name)
			}
		}
	}
	return names
}

// look returns those of the objects with these keys that a pass wants. It is not ok at the end of the search; without more, this master has
// failed.
func (s *search) look(p pass, names []string) (more, ok bool) {
	for o, err := range s.objects(names) {
		switch {
		case err == nil && (!p.wanted(&o) || s.found[s.hash(o.Key)]):
		case err != nil && o.Key == "":
			return false, s.fail(err)
		case !s.yield(o, err):
			return false, false
		case err == nil && len(s.found) < mostSeen:
			s.found[s.hash(o.Key)] = true
		}
	}
	return true, s.ctx.Err() == nil || s.fail(context.Cause(s.ctx))
}

func (s *search) hash(name string) uint64 { return maphash.String(s.seed, name) }
