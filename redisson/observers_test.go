package redisson

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// A lock that is had while an observer looks at what there is has it look again: nothing is missed between the two.
func TestObserversMissNothing(t *testing.T) {
	c, err := New(redistest.Any(t).Client(t), Name("test"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, p := c.listener, c.presence
	during := func(look, had func()) {
		t.Helper()
		done := make(chan struct{})
		c.registry.mu.Lock()
		go func() { defer close(done); look() }()
		time.Sleep(20 * time.Millisecond) // it waits for the mutex
		had()
		c.registry.mu.Unlock()
		<-done
	}
	l.alarm.armed.Store(true)
	during(l.alarm.ring, l.held)
	p.alarm.armed.Store(true)
	during(p.alarm.ring, p.held)
	if listens, shows := l.alarm.armed.Load(), p.alarm.armed.Load(); !listens || !shows {
		t.Errorf("to look again: listener %v, presence %v, want both", listens, shows)
	}
}
