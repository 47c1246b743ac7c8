package redisson

import (
	"errors"
	"fmt"
	"sync"

	"github.com/latchkey-go/latchkey/lock"
)

// ErrTooManyWaiters says that a call had to wait where as many calls as [MaxWaiters] allows were waiting already.
var ErrTooManyWaiters = errors.New("redisson: too many waiters")

// waiters counts the calls of a client that wait.
type waiters struct {
	mostOfKey, most int // 0 sets no bound
	metrics         *metrics

	mu    sync.Mutex
	ofKey map[string]int // by the name of what is waited for, as mapped
	all   int
}

// admit counts one more call that waits for name. It returns an error, and counts nothing, where a bound is reached.
func (ws *waiters) admit(name string) error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	switch {
	case ws.mostOfKey > 0 && ws.ofKey[name] >= ws.mostOfKey:
		return fmt.Errorf("%w: %d calls wait for this key", ErrTooManyWaiters, ws.mostOfKey)
	case ws.most > 0 && ws.all >= ws.most:
		return fmt.Errorf("%w: %d calls of this client wait", ErrTooManyWaiters, ws.most)
	}
	ws.ofKey[name]++
	ws.all++
	return nil
}

// stay is one call's part in the count. It belongs to the call's goroutine.
type stay struct {
	waiters *waiters
	name    string
	kind    lock.Kind // or that of a line
	began   bool
}

// begin counts the call before it waits for the first time.
func (s *stay) begin() (err error) {
	if s.began {
		return nil
	}
	if err = s.waiters.admit(s.name); err == nil {
		s.began = true
		s.waiters.metrics.waits(s.kind, 1)
	}
	return err
}

// end follows the wait, however that ended.
func (s *stay) end() {
	if !s.began {
		return
	}
	ws := s.waiters
	ws.metrics.waits(s.kind, -1)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.all--
	if ws.ofKey[s.name]--; ws.ofKey[s.name] == 0 {
		delete(ws.ofKey, s.name)
	}
}
