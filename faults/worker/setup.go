// Package worker is what a worker process of a run does: random programs with locks of all kinds, of which its history tells.
package worker

import (
	"time"
)

// Setup is what a worker is started with.
type Setup struct {
	// Name is the process in the history, and its file there in Dir.
	Name, Dir string
	// Board is the file of the board, and Place the worker's part of it.
	Board string
	Place int
	// Servers are the Redis servers: one, or those of a RedLock.
	Servers []Endpoint
	// Store is the URL of a Redis for sets, which no fault strikes; "" if there are none.
	Store string
	// Watchdog, Timeout and FairWait are options of the clients, and Pool is how many connections each has; 0 is the default.
	Watchdog, Timeout, FairWait time.Duration
	Pool                        int
	Seed                        uint64
	// Broken has the worker enter without its lock now and then: a run must find that.
	Broken bool
}

// Endpoint is where Redis is.
type Endpoint struct {
	// Name is that of the server, or of all servers together, in the history.
	Name string
	// URL is that of a server, or a cluster with addr parameters. With Sentinels, it is the name of the master.
	URL       string
	Sentinels []string
	// Via says through which address a worker reaches one that it was given; others it reaches directly.
	Via map[string]string
}

// Order is an order to a worker, one JSON object a line.
type Order struct {
	// Do is round, heal, burst, exhaust, garbage or end.
	Do string
	// Round is the number of the round, Callers is how many goroutines play it, and Mix are the kinds of locks in it.
	Round, Callers int
	Mix            []string
	// Keys is how many names each kind has, and Limit how many permits.
	Keys, Limit int
	// Differ says that every second worker has one permit more.
	Differ bool
	// Count is how many calls a burst has, how many goroutines make garbage, and for how many milliseconds the pool is exhausted.
	Count int
}

// Reply is what a worker answers to a heal, when all its callers are done, and to an end.
type Reply struct {
	Do    string
	Round int
	Error string
}
