package history

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// Op says what an Event tells.
type Op string

// The events of workers. An Ask begins a call and ends with one of Enter, Lost, Busy and Failed; after Enter come
// Looks, an Exit, or a Lost in its place, and one of Released, NotHeld and Unreleased.
const (
	Start      Op = "start"      // the first line of a file: Proc, Pid
	Ask        Op = "ask"        // a call begins: all that describes it
	Enter      Op = "enter"      // the lock was given, and the context looked at: the section begins; Token
	Look       Op = "look"       // the context was looked at, and was good at the time of the event
	Lost       Op = "lost"       // the context was looked at, and was over: the section ends; also instead of Enter
	Exit       Op = "exit"       // the work is done, the section ends, and the release comes next
	Released   Op = "released"   // the release said that the lock is given back
	NotHeld    Op = "notheld"    // the release said that the lock was no longer held
	Unreleased Op = "unreleased" // the release failed: it may have taken effect, or may later; Error
	Busy       Op = "busy"       // the call gave up, after its Wait or with its context, and holds nothing; Error
	Failed     Op = "failed"     // the call failed, and may have held the lock for a while; Error
	Write      Op = "write"      // a store accepted a write, sent at Since, that carried Token and added the element What
	Refused    Op = "refused"    // a store refused such a write
	Final      Op = "final"      // the Elements that the stores of Keys hold at the end
	Set        Op = "set"        // an object was given Limit (permits of a semaphore, count of a latch); Keys, Kind, Since
	Count      Op = "count"      // a latch was counted down by one, between Since and the event
	Delayed    Op = "delayed"    // the process had no processor from Since on: a timer was that late
	Leftover   Op = "leftover"   // N of What were left over at the end
)

// The events of the orchestrator.
const (
	Fault    Op = "fault"    // a fault begins: What is its kind, ID its number; Servers and Procs are whom it strikes
	Healed   Op = "healed"   // the fault with this ID is over
	Stop     Op = "stop"     // Procs are about to be stopped by SIGSTOP
	Cont     Op = "cont"     // Procs run again
	Kill     Op = "kill"     // Procs are about to be killed
	DataLost Op = "datalost" // Servers may have lost locks, between Since and the event
	Heal     Op = "heal"     // nothing is at fault from now on
)

// An Event is a line of a log. Which fields it has, its Op says; those that it has not are zero.
type Event struct {
	At     int64  `json:"t"`           // ns of CLOCK_MONOTONIC; set by Log
	Op     Op     `json:"op"`          //
	Proc   string `json:"p,omitempty"` // who wrote it; only in the Start of a file, and set for all events by Read
	Worker int    `json:"w,omitempty"` // the goroutine; of an Ask
	Call   int64  `json:"c,omitempty"` // the call, numbered from 1 in each process; set by Log

	// The fields of an Ask.
	Kind     string        `json:"kind,omitempty"`     // lock, fair, fenced, spin, read, write, multi, redlock, mutex (not re-entrant), semaphore, permit, latch, limiter
	Keys     []string      `json:"keys,omitempty"`     // the keys that it wants; more than one of a multi-lock
	Servers  []string      `json:"servers,omitempty"`  // where the keys are; of a fault, whom it strikes
	Owner    string        `json:"owner,omitempty"`    // calls of one owner re-enter
	Permits  int           `json:"permits,omitempty"`  // how many it wants; 0 is 1
	Limit    int           `json:"limit,omitempty"`    // how many permits there are
	Wait     time.Duration `json:"wait,omitempty"`     // negative is without a bound
	Lease    time.Duration `json:"lease,omitempty"`    // how long Redis keeps the lock without its holder; the watchdog's timeout, if renewed
	Deadline int64         `json:"deadline,omitempty"` // of the call's context, on the clock of At; 0 is none; after a release, of its context
	Rate     time.Duration `json:"rate,omitempty"`     // of a limiter: Limit permits within this time

	// The fields of other events.
	Token    int64    `json:"token,omitempty"`    // the fencing token; of an Enter, a Write and a Refused
	Error    string   `json:"error,omitempty"`    // why a call failed
	What     string   `json:"what,omitempty"`     // the kind of a fault; the element of a write; what was left over
	N        int      `json:"n,omitempty"`        // how many were left over
	ID       int      `json:"id,omitempty"`       // the number of a fault
	Procs    []string `json:"procs,omitempty"`    // whom a fault, a Stop, a Cont and a Kill strike
	Since    int64    `json:"since,omitempty"`    // the earliest time at which it can have happened
	Elements []string `json:"elements,omitempty"` //
	Pid      int      `json:"pid,omitempty"`      //
	Line     int      `json:"-"`                  // in the file of Proc; set by Read
}

// Now is the time of an event that happens now.
func Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // Linux has this clock
	}
	return ts.Nano()
}

// Until is the deadline of ctx on the clock of Now, and 0 if it has none.
func Until(ctx context.Context) int64 {
	t, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return Now() + int64(time.Until(t))
}
