package main

import "fmt"

// The growth that is allowed from the warm-up to the end. A leak grows with the number of operations, of which each
// load makes many thousands: a loss with one in a hundred of them is above these limits.
const (
	// moreGoroutines and moreFDs are for what go-redis and net/http start and end when they like, such as a connection in the place of
	// a broken one. The pools have their bounds, and the warm-up has filled them.
	moreGoroutines, moreFDs = 16, 8
	// moreHeap is a part of the heap, and leastHeap is for small ones: buffers and pools of sync.Pool.
	moreHeap, leastHeap = 0.10, 2 << 20
	// moreRSS is larger, as Go gives pages back only when they are free as a whole.
	moreRSS, leastRSS = 0.25, 16 << 20
	// moreRedis is for the memory of Redis, which rehashes its tables and keeps buffers for its clients.
	moreRedis, leastRedis = 0.10, 2 << 20
	// moreClients is for the connections of Redis' clients, like moreFDs.
	moreClients = 8
	// closedGoroutines and closedFDs may be more after Close than before there was a client: the poller of the network, which Go keeps.
	closedGoroutines, closedFDs = 1, 3
)

// state is all that a scenario has at a time.
type state struct {
	usage
	redis redisState
}

type redisState struct {
	memory, keys, channels int64
	clients                int64
}

// grown says what of the state has grown since the warm-up by more than it may.
func (s state) grown(warm state) (problems []string) {
	check := func(what string, now, then int64, part float64, least int64) {
		if more := now - then; more > max(int64(part*float64(then)), least) {
			problems = append(problems, fmt.Sprintf("%s grew from %d to %d", what, then, now))
		}
	}
	check("heap", s.Heap, warm.Heap, moreHeap, leastHeap)
	check("RSS", s.RSS, warm.RSS, moreRSS, leastRSS)
	check("goroutines", int64(s.Goroutines), int64(warm.Goroutines), 0, moreGoroutines)
	check("file descriptors", int64(s.FDs), int64(warm.FDs), 0, moreFDs)
	check("Redis' memory", s.redis.memory, warm.redis.memory, moreRedis, leastRedis)
	check("Redis' clients", s.redis.clients, warm.redis.clients, 0, moreClients)
	check("Redis' keys", s.redis.keys, warm.redis.keys, 0, 0)
	check("Redis' channels", s.redis.channels, warm.redis.channels, 0, 0)
	return problems
}

// left says what is left after Close of what was not there before. The processes are so many.
func (s state) left(base state, processes int) (problems []string) {
	check := func(what string, now, then, more int64) {
		if now-then > more {
			problems = append(problems, fmt.Sprintf("%d %s are left after Close, %d were there before", now, what, then))
		}
	}
	check("goroutines", int64(s.Goroutines), int64(base.Goroutines), closedGoroutines*int64(processes))
	check("file descriptors", int64(s.FDs), int64(base.FDs), closedFDs*int64(processes))
	check("keys", s.redis.keys, base.redis.keys, 0)
	check("channels", s.redis.channels, base.redis.channels, 0)
	check("clients of Redis", s.redis.clients, base.redis.clients, 0)
	return problems
}
