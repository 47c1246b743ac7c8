package console

import (
	"context"
	"sync"
	"time"
)

// linger is how long a feed goes on without a viewer: a page that is loaded looks twice, for itself and for its live view.
const linger = 3 * time.Second

// feed reads something again and again for all who look at it together, and rests while nobody does. Each viewer enters,
// looks, and leaves. It is safe for concurrent use.
type feed[T any] struct {
	// read reads once. It may publish what it has so far, and returns how long to rest before the next time. Its context ends
	// when nobody has looked for a while.
	read func(ctx context.Context, last T, publish func(T)) (next T, rest time.Duration)
	idle func() // called when it has come to rest; may be nil

	mu      sync.Mutex
	viewers int
	running bool
	stop    context.CancelFunc // of the one that runs
	timer   *time.Timer        // that will stop it
	state   T
	version int           // of state; 0 is none yet
	changed chan struct{} // closed when there is another
	ready   time.Time     // when the next reading may begin
}

// enter counts a viewer, until it calls leave.
func (f *feed[T]) enter() (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.viewers++
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
	if !f.running {
		ctx, stop := context.WithCancel(context.Background())
		f.running, f.stop = true, stop
		go f.run(ctx)
	}
	return sync.OnceFunc(f.leave)
}

func (f *feed[T]) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.viewers--
	if f.viewers == 0 {
		f.timer = time.AfterFunc(linger, f.rest)
	}
}

// rest ends the reading if there is still nobody.
func (f *feed[T]) rest() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.viewers == 0 && f.stop != nil {
		f.stop()
	}
}

// run reads until its context ends.
func (f *feed[T]) run(ctx context.Context) {
	for f.pause(ctx) {
		f.mu.Lock()
		last := f.state
		f.mu.Unlock()
		next, rest := f.read(ctx, last, f.publish)
		if ctx.Err() != nil {
			break
		}
		f.mu.Lock()
		f.ready = time.Now().Add(rest)
		f.mu.Unlock()
		f.publish(next)
	}
	f.ended()
}

// pause waits until the next reading may begin, and reports whether it should.
func (f *feed[T]) pause(ctx context.Context) bool {
	f.mu.Lock()
	wait := time.NewTimer(time.Until(f.ready))
	f.mu.Unlock()
	defer wait.Stop()
	select {
	case <-wait.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// ended starts anew if somebody came while the last reading was being stopped.
func (f *feed[T]) ended() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = false
	f.stop()
	if f.viewers > 0 {
		ctx, stop := context.WithCancel(context.Background())
		f.running, f.stop = true, stop
		go f.run(ctx)
	} else if f.idle != nil {
		f.idle()
	}
}

func (f *feed[T]) publish(state T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = state
	f.version++
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// look returns the state, its version, and a channel that is closed when there is another.
func (f *feed[T]) look() (state T, version int, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return f.state, f.version, f.changed
}

// fresh returns a state that is good enough for one look: the present one if good says so, or else the first that is, or
// whatever there is after patience. ok is false if there is none.
func (f *feed[T]) fresh(ctx context.Context, patience time.Duration, good func(T) bool) (state T, ok bool) {
	leave := f.enter()
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		state, version, changed := f.look()
		if version > 0 && good(state) {
			return state, true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return state, version > 0
		}
	}
}
