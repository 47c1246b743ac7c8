package history

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// A Log is the file of one process. It is safe for concurrent use.
type Log struct {
	f     *os.File
	calls atomic.Int64

	mu  sync.Mutex
	err error
}

// Create begins the log of the process named proc in dir, as proc.log. A name is used once in a run: a process that
// replaces another has a name of its own.
func Create(dir, proc string) (*Log, error) {
	f, err := os.OpenFile(filepath.Join(dir, proc+".log"), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	l := &Log{f: f}
	l.Note(Event{Op: Start, Proc: proc, Pid: os.Getpid()})
	return l, nil
}

// Note writes e. Its time is that of the call, unless e has one.
func (l *Log) Note(e Event) {
	if e.At == 0 {
		e.At = Now()
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = l.f.Write(append(line, '\n'))
	}
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.err == nil {
			l.err = err
		}
	}
}

// Ask begins a call. Its number is the next of the process.
func (l *Log) Ask(e Event) *Call {
	c := &Call{l: l, id: l.calls.Add(1)}
	e.Op, e.Call = Ask, c.id
	l.Note(e)
	return c
}

// Close closes the file. Its error is the first that any of the writes had: with one, the log has a gap and proves nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.f.Close(); l.err == nil {
		l.err = err
	}
	return l.err
}

// A Call writes what happens to one call. It belongs to one goroutine.
type Call struct {
	l    *Log
	id   int64
	over bool // an Exit or a Lost was written

	deadline int64 // of the release
}

// Note writes e as an event of the call.
func (c *Call) Note(e Event) {
	e.Call = c.id
	c.l.Note(e)
}

// Enter looks at the context of a hold that was just given, and begins the section if it is good. If not, it reports
// false, and no section began.
func (c *Call) Enter(held context.Context, token int64) bool {
	return c.look(held, Event{Op: Enter, Token: token})
}

// Look looks at the context of the hold, and reports whether the section may go on. If not, the section is over.
func (c *Call) Look(held context.Context) bool {
	return c.look(held, Event{Op: Look})
}

func (c *Call) look(held context.Context, good Event) bool {
	good.At = Now() // before the context is looked at
	if err := held.Err(); err != nil {
		c.over = true
		c.Note(Event{Op: Lost, Error: context.Cause(held).Error()})
		return false
	}
	c.Note(good)
	return true
}

// Exit ends the section, before the release is called. After a Look that reported false it does nothing.
func (c *Call) Exit() {
	if !c.over {
		c.over = true
		c.Note(Event{Op: Exit})
	}
}

// Fail ends a call that got nothing; op is Busy or Failed.
func (c *Call) Fail(op Op, err error) {
	c.Note(Event{Op: op, Error: err.Error()})
}

// Releasing says that a release begins that has the context release. A release without a deadline need not be announced.
func (c *Call) Releasing(release context.Context) {
	c.deadline = Until(release)
}

// Release says how the release ended, after it has: lost says that err means that the lock was no longer held.
func (c *Call) Release(err error, lost bool) {
	e := Event{Op: Released, Deadline: c.deadline}
	switch {
	case err != nil && lost:
		e.Op, e.Error = NotHeld, err.Error()
	case err != nil:
		e.Op, e.Error = Unreleased, err.Error()
	}
	c.Note(e)
}

// Write says that a store accepted or refused a write that was sent at since, carried token, 0 for none, and added element.
func (c *Call) Write(since, token int64, element string, accepted bool) {
	op := Refused
	if accepted {
		op = Write
	}
	c.Note(Event{Op: op, Since: since, Token: token, What: element})
}
