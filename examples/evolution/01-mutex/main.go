// 01-mutex is a mutex: all a program needs, until it runs twice.
package main

import (
	"context"
	"sync"

	"github.com/latchkey-go/latchkey/examples/evolution/play"
)

var step = play.Step{
	Name:  "01-mutex",
	New:   func(play.Setting) (play.Locker, error) { return &Lock{}, nil },
	Holes: []play.Play{play.TwoMachines},
}

func main() { play.Main(step) }

// Lock is a lock in the memory of this process, where no other one can see it.
type Lock struct{ mu sync.Mutex }

// TryLock reports whether this process has the lock now.
func (l *Lock) TryLock(context.Context) (bool, error) { return l.mu.TryLock(), nil }

// Unlock frees the lock.
func (l *Lock) Unlock(context.Context) error {
	l.mu.Unlock()
	return nil
}
