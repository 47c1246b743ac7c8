package guardtest

import (
	"maps"
	"slices"
	"testing"
)

// Steps returns what has happened so far, in order.
func (l *Locker) Steps() []Step {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.steps)
}

// Keys returns the keys of the locks acquired so far, in order. A key that was acquired twice is there twice.
func (l *Locker) Keys() []string { return l.keysOf(Acquired) }

// AskedFor returns the keys that Acquire was called with so far, in order.
func (l *Locker) AskedFor() []string { return l.keysOf(Asked) }

func (l *Locker) keysOf(op Op) []string {
	var keys []string
	for _, s := range l.Steps() {
		if s.Op == op {
			keys = append(keys, s.Key)
		}
	}
	return keys
}

// Held returns the keys of the locks that were acquired and not released, in the order of their acquisition.
func (l *Locker) Held() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []string
	for _, h := range l.held {
		keys = append(keys, h.request.Key)
	}
	return keys
}

// WantKeys fails t unless the locks acquired so far are those of keys, in this order.
func (l *Locker) WantKeys(t testing.TB, keys ...string) {
	t.Helper()
	if got := l.Keys(); !slices.Equal(got, keys) {
		t.Errorf("locks taken: %q, want %q", got, keys)
	}
}

// WantHeld fails t unless the locks of keys are held now, and no others.
func (l *Locker) WantHeld(t testing.TB, keys ...string) {
	t.Helper()
	if got := l.Held(); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(keys))) {
		t.Errorf("locks held: %q, want %q", got, keys)
	}
}

// WantNothingHeld fails t if a lock was not released, or was released more often than it was acquired.
func (l *Locker) WantNothingHeld(t testing.TB) {
	t.Helper()
	if got := l.Held(); len(got) > 0 {
		t.Errorf("locks not released: %q", got)
	}
	open := make(map[string]int)
	for _, s := range l.Steps() {
		switch s.Op {
		case Acquired:
			open[s.Key]++
		case Released:
			open[s.Key]--
		}
	}
	for _, key := range slices.Sorted(maps.Keys(open)) {
		if open[key] < 0 {
			t.Errorf("lock %q was released %d times too often", key, -open[key])
		}
	}
}

// WantOneOrder fails t if keys were taken under one another in opposite orders, such as b under a in one call and a under b
// in another. Two such calls at once wait for each other until one of them gives up.
func (l *Locker) WantOneOrder(t testing.TB) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, circle := range l.orders.circles() {
		t.Errorf("keys are taken in opposite orders: %s", circle)
	}
}
