package sqllock

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock/leases"
)

// Listener listens to a channel of PostgreSQL until ctx ends or it fails. It calls listening once LISTEN has been answered, and heard
// with the payload of each message. Database/sql has no messages, so that needs the driver: package pgxlisten is one, in 20 lines.
//
// The Locker calls it from one goroutine when somebody begins to wait, ends it some seconds after the last one has gone, and calls it
// again a second after a failure. Polling goes on in any case.
type Listener func(ctx context.Context, channel string, listening func(), heard func(payload string)) error

const (
	linger    = 5 * time.Second // so that waiters who come one after another share a connection
	relisten  = time.Second
	oneSignal = 1
)

// watchedStore is a store whose waiters hear of releases.
type watchedStore struct {
	*store
	hub *hub
}

var _ leases.Watcher = watchedStore{}

// Watch implements [leases.Watcher].
func (s watchedStore) Watch(_ context.Context, key string) (<-chan struct{}, func(), error) {
	changed, stop := s.hub.join(nameOf(key, s.nameLength))
	return changed, stop, nil
}

// hub hands the messages of one connection to those who wait.
type hub struct {
	listen  Listener
	channel string

	mu      sync.Mutex
	waiters map[string]map[chan struct{}]bool // by name
	end     context.CancelFunc                // of the connection; nil if there is none
	idle    *time.Timer                       // ends it, while nobody waits
}

func newHub(l Listener, channel string) *hub {
	return &hub{listen: l, channel: channel, waiters: map[string]map[chan struct{}]bool{}}
}

// join has a channel signalled when the lock of that name may be free, until stop.
func (h *hub) join(name string) (changed <-chan struct{}, stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.idle != nil {
		h.idle.Stop()
		h.idle = nil
	}
	if h.end == nil {
		var ctx context.Context
		ctx, h.end = context.WithCancel(context.Background())
		go h.run(ctx)
	}
	if h.waiters[name] == nil {
		h.waiters[name] = map[chan struct{}]bool{}
	}
	c := make(chan struct{}, oneSignal)
	h.waiters[name][c] = true
	return c, func() { h.leave(name, c) }
}

func (h *hub) leave(name string, c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.waiters[name], c)
	if len(h.waiters[name]) == 0 {
		delete(h.waiters, name)
	}
	if len(h.waiters) == 0 && h.idle == nil && h.end != nil {
		h.idle = time.AfterFunc(linger, h.hangUp)
	}
}

// hangUp ends the connection, unless somebody has come.
func (h *hub) hangUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiters) == 0 && h.end != nil {
		h.end()
		h.end, h.idle = nil, nil
	}
}

// run listens until ctx ends. Messages are lost while there is no connection, so each new one is news for all.
func (h *hub) run(ctx context.Context) {
	for ctx.Err() == nil {
		_ = h.listen(ctx, h.channel, func() { h.wake("", true) }, func(name string) { h.wake(name, false) })
		select {
		case <-ctx.Done():
		case <-time.After(relisten):
		}
	}
}

// wake signals those who wait for a name, or all.
func (h *hub) wake(name string, all bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n, waiters := range h.waiters {
		if !all && n != name {
			continue
		}
		for c := range waiters {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}
