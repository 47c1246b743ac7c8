package leases_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

var (
	seeds     = flag.Int("leases.seeds", 40, "how many seeds of the simulation to run")
	firstSeed = flag.Uint64("leases.seed", 0, "the first seed; 0 is one of chance")
)

// TestNoTwoOwnersWhateverIsLost plays with several processes, a network and a service in virtual time. Requests are slow, lost, or late,
// also after the caller has given them up; answers are lost; calls hang.
func TestNoTwoOwnersWhateverIsLost(t *testing.T) {
	first := *firstSeed
	if first == 0 {
		first = rand.Uint64N(1 << 40)
	}
	var seen sights
	for seed := first; seed < first+uint64(*seeds); seed++ {
		synctest.Test(t, func(t *testing.T) { newWorld(t, seed, &seen).play() })
		if t.Failed() {
			t.Fatalf("go test ./lock/leases -run %s -leases.seeds 1 -leases.seed %d", t.Name(), seed)
		}
	}
	t.Logf("%d seeds: %v", *seeds, seen)
	if seen.sections == 0 || seen.lost == 0 || seen.failed == 0 || seen.busy == 0 || seen.left == 0 {
		t.Errorf("the simulation is too tame: %+v", seen)
	}
}

type sights struct{ sections, lost, failed, busy, left int }

// world is one play: its network is wild until healed.
type world struct {
	*testing.T
	seed    uint64
	seen    *sights
	service *memory
	lockers []*leases.Locker

	mu     sync.Mutex
	rand   *rand.Rand
	inside map[string][]*visit
	tokens map[string]int64
	calm   bool

	forgotten map[string]time.Time // entries by ID
	entries   map[string]*leases.Entry
	cut       [processes]time.Time // until when a process is cut off from the service
}

const (
	processes = 3
	watchdog  = 6 * time.Second
)

// visit is a hold as its owner sees it.
type visit struct {
	locker int
	r      lock.Request
	hold   lock.Hold
}

func newWorld(t *testing.T, seed uint64, seen *sights) *world {
	w := &world{
		T: t, seed: seed, seen: seen, service: newMemory(), rand: rand.New(rand.NewPCG(seed, 0)),
		inside: make(map[string][]*visit), tokens: make(map[string]int64), forgotten: make(map[string]time.Time),
		entries: make(map[string]*leases.Entry),
	}
	for i := range processes {
		var store leases.Store = wild{w, i, w.service}
		switch seed % 3 {
		case 0:
			store = wildLine{wild{w, i, w.service}}
		case 1:
			store = wildWatch{wild{w, i, w.service}}
		}
		w.lockers = append(w.lockers, newLocker(t, store, leases.Kinds("", allKinds...), leases.Watchdog(watchdog),
			leases.Timeout(time.Second)))
	}
	return w
}

func (w *world) play() {
	var owners sync.WaitGroup
	for i := range 9 {
		owners.Go(func() {
			for range 6 {
				w.owner(w.Context(), i%3, 3)
			}
		})
	}
	owners.Wait()
	w.mu.Lock()
	w.calm = true
	w.mu.Unlock()
	w.free()
}

// free checks that everybody gets in once the network is well, and that nothing is left when all late requests have arrived.
func (w *world) free() {
	time.Sleep(10 * time.Minute)
	if n := w.service.left(); n > 0 {
		w.Errorf("%d entries are left", n)
	}
	for key, kind := range map[string]lock.Kind{"x": lock.Exclusive, "rw": lock.Write, "p": lock.Permit} {
		h, err := w.lockers[0].Acquire(w.Context(), lock.Request{Key: key, Kind: kind, Limit: 2})
		if err != nil {
			w.Errorf("%s is not free: %v", key, err)
			continue
		}
		if err := h.Release(w.Context()); err != nil {
			w.Error(err)
		}
	}
}

func (w *world) n(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.IntN(n)
}

func (w *world) chance(percent int) bool { return w.n(100) < percent }

func (w *world) span(most time.Duration) time.Duration {
	return time.Duration(w.n(int(most/time.Millisecond)+1)) * time.Millisecond
}

// request is one at random, of a family that belongs to its key.
func (w *world) request() lock.Request {
	var r lock.Request
	switch w.n(3) {
	case 0:
		r = lock.Request{Key: "x", Kind: []lock.Kind{lock.Exclusive, lock.Fair, lock.Fenced, lock.Spin}[w.n(4)]}
	case 1:
		r = lock.Request{Key: "rw", Kind: []lock.Kind{lock.Read, lock.Write}[w.n(2)]}
	default:
		r = lock.Request{Key: "p", Kind: lock.Permit, Limit: 2}
	}
	switch w.n(5) {
	case 2:
		r.Lease = time.Hour
	case 0:
		r.Lease = 100*time.Millisecond + w.span(8*time.Second)
	case 1:
		r.MaxHold = 100*time.Millisecond + w.span(8*time.Second)
	}
	if w.chance(2) { // against the rule that a key is of one family
		r.Key = []string{"x", "rw", "p"}[w.n(3)]
	}
	r.Wait = []time.Duration{0, -1, w.span(time.Second), w.span(20 * time.Second)}[w.n(4)]
	return r
}

// owner takes a lock, perhaps more under it, and gives it back in one of the ways there are.
func (w *world) owner(ctx context.Context, locker, depth int) {
	r := w.request()
	call, cancel := ctx, context.CancelFunc(func() {})
	patience := time.Duration(-1)
	if w.chance(20) || r.Wait < 0 {
		patience = w.span(20 * time.Second)
		call, cancel = context.WithTimeout(ctx, patience)
	}
	defer cancel()
	start := time.Now()
	h, err := w.lockers[locker].Acquire(call, r)
	w.bounded(r, patience, time.Since(start), err)
	if err != nil {
		w.count(err)
		time.Sleep(w.span(time.Second))
		return
	}
	v := w.enter(locker, r, h)
	w.work(h, locker, depth)
	w.leave(r.Key, v)
	w.end(h)
}

func (w *world) count(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, lock.ErrBusy):
		w.seen.busy++
	case errors.Is(err, context.DeadlineExceeded):
		w.seen.left++
	case !errors.Is(err, lock.ErrUnsupported):
		w.seen.failed++
	}
}

// bounded checks that an Acquire has not taken longer than it may.
func (w *world) bounded(r lock.Request, patience, took time.Duration, err error) {
	const slack = 110 * time.Millisecond
	if patience >= 0 && took > patience+slack {
		w.Errorf("seed %d: Acquire of %+v came back %v after its caller had gone: %v", w.seed, r, took-patience, err)
	}
	if r.Wait >= 0 && took > max(r.Wait+500*time.Millisecond, time.Second)+slack { // the service may not have answered at all
		w.Errorf("seed %d: Acquire of %+v took %v: %v", w.seed, r, took, err)
	}
}

// enter judges whether h may be beside those that are inside.
func (w *world) enter(locker int, r lock.Request, h lock.Hold) *visit {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.sections++
	v := &visit{locker: locker, r: r, hold: h}
	permits := map[any]bool{leases.EntryOf(h): true}
	for _, o := range w.inside[r.Key] {
		if o.hold.Context().Err() != nil || leases.EntryOf(o.hold) == leases.EntryOf(h) || !w.lacks(o).IsZero() {
			continue
		}
		permits[leases.EntryOf(o.hold)] = true
		both := o.r.Kind == lock.Read && r.Kind == lock.Read || r.Kind == lock.Permit && len(permits) <= r.Limit
		if !both && h.Context().Err() == nil && w.lacks(v).IsZero() {
			w.Errorf("seed %d: %v of process %d is in %q beside %v of process %d", w.seed, r.Kind, locker, r.Key, o.r.Kind, o.locker)
		}
	}
	if f, ok := h.(interface{ Token() int64 }); ok && w.lacks(v).IsZero() {
		if f.Token() < w.tokens[r.Key] {
			w.Errorf("seed %d: token %d after %d", w.seed, f.Token(), w.tokens[r.Key])
		}
		w.tokens[r.Key] = f.Token()
	}
	w.inside[r.Key] = append(w.inside[r.Key], v)
	return v
}

// forget removes all that the service has of key, as an operator may.
func (w *world) forget(key string) {
	told := w.chance(50) // by the store, which hears of it by itself
	w.mu.Lock()
	defer w.mu.Unlock()
	w.service.mu.Lock()
	defer w.service.mu.Unlock()
	for _, r := range w.service.keys[key] {
		w.forgotten[r.id] = time.Now()
		if e := w.entries[r.id]; e != nil && told {
			go e.Lost(errNetwork)
		}
	}
	delete(w.service.keys, key)
	w.service.changed()
}

// lacks returns since when the service does not have what v relies on, or zero: also if a request that came late has brought it back. The owner
// can't know before it is told.
func (w *world) lacks(v *visit) time.Time {
	e := leases.EntryOf(v.hold)
	w.service.mu.Lock()
	defer w.service.mu.Unlock()
	if w.service.find(e) != nil {
		return time.Time{}
	}
	return w.forgotten[e.ID]
}

func (w *world) leave(key string, v *visit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.hold.Context().Err() != nil && errors.Is(context.Cause(v.hold.Context()), lock.ErrLost) {
		w.seen.lost++
	}
	if since := time.Since(w.lacks(v)); !w.lacks(v).IsZero() && since > 4*watchdog && v.r.Lease == 0 && v.hold.Context().Err() == nil {
		w.Errorf("seed %d: %v in %q was not told in %v that the service had lost it", w.seed, v.r.Kind, key, since)
	}
	w.inside[key] = slices.DeleteFunc(w.inside[key], func(o *visit) bool { return o == v })
}

// work is what is done under a lock: wait, extend, or more locks, until the context ends.
func (w *world) work(h lock.Hold, locker, depth int) {
	for range w.n(4) {
		switch {
		case depth > 0 && w.chance(50):
			w.owner(h.Context(), locker, depth-1)
		case w.chance(30):
			_ = h.(interface {
				Extend(context.Context, time.Duration) error
			}).Extend(context.WithoutCancel(h.Context()), w.span(5*time.Second))
		case w.chance(5):
			w.forget(w.request().Key)
		case w.chance(20):
			_ = w.lockers[locker].Peek(h.Context(), w.request())
		}
		select {
		case <-h.Context().Done():
			return
		case <-time.After(w.span(3 * time.Second)):
		}
	}
}

func (w *world) end(h lock.Hold) {
	ctx, cancel := context.WithTimeout(context.Background(), w.span(4*time.Second))
	defer cancel()
	start := time.Now()
	if w.chance(15) {
		_ = h.(interface {
			Keep(context.Context, time.Duration) error
		}).Keep(ctx, w.span(3*time.Second))
	} else {
		_ = h.Release(ctx)
	}
	if took := time.Since(start); took > 4*time.Second+110*time.Millisecond {
		w.Errorf("seed %d: a release took %v", w.seed, took)
	}
}

func (s sights) String() string {
	return fmt.Sprintf("%d sections, %d lost, %d busy, %d failed, %d left", s.sections, s.lost, s.busy, s.failed, s.left)
}
