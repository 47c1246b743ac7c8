package locktest

import (
	"context"
	"slices"

	"github.com/latchkey-go/latchkey/lock"
)

var fair = []promise{
	// Nothing shows from outside when a request has got in line, so on a slow machine they may overtake each other on the
	// way. Three times in a row that is an unfair lock.
	{"service is in the order of arrival", func(s *scene) {
		const owners = 5
		var got []int
		for range 3 {
			if got = s.order(owners); slices.IsSorted(got) {
				return
			}
		}
		s.Errorf("order of service = %v", got)
	}},
}

// order returns the order in which owners that come one after another are served.
func (s *scene) order(owners int) (order []int) {
	served := make(chan int, owners)
	h := s.acquire(s.Context(), s.own(lock.Request{Wait: s.suite.patience}))
	turns := make(chan int, owners)
	s.together(owners+1, func(i int) error {
		if i == owners {
			for n := range owners {
				turns <- n
				s.pause()
			}
			return h.Release(s.Context())
		}
		n := <-turns
		return s.visit(s.Context(), s.own(lock.Request{Wait: -1}), func() error {
			served <- n
			return nil
		})
	})
	for range owners {
		order = append(order, <-served)
	}
	return order
}

var reading = []promise{
	{"readers share", func(s *scene) {
		first := s.acquire(s.Context(), s.own(lock.Request{}))
		second := s.acquire(s.Context(), s.own(lock.Request{}))
		s.release(first)
		s.busy(s.Context())
		s.free(second)
	}},

	// Each of them gets the lock while the others have it.
	{"waiting readers are served together", func(s *scene) {
		writer := s.acquire(s.Context(), s.rival(lock.Request{}))
		var waiters []*attempt
		for range 3 {
			waiters = append(waiters, s.start(s.Context(), s.own(lock.Request{Wait: -1})))
		}
		s.pause()
		s.release(writer)
		var readers []lock.Hold
		for _, w := range waiters {
			readers = append(readers, w.held())
		}
		s.free(readers...)
	}},

	// A reader who wants to write would wait for itself, so it is refused at once. Another one under the
	// same outer hold is not that reader, and waits.
	{"a reader does not become a writer", func(s *scene) {
		outer := s.outer(s.Context())
		h := s.acquire(outer.Context(), s.own(lock.Request{}))
		s.refused(h.Context(), s.rival(lock.Request{}))
		s.refused(h.Context(), s.rival(lock.Request{Wait: -1}))
		between := s.acquire(h.Context(), s.own(lock.Request{Key: s.key + ":between"}))
		s.refused(between.Context(), s.rival(lock.Request{Wait: -1}))
		s.release(between)
		s.alive(h, "the read lock")
		s.busy(outer.Context())
		s.release(h)
		s.release(s.acquire(outer.Context(), s.rival(lock.Request{Wait: -1})))
		s.free(outer)
	}},
}

var writing = []promise{
	{"a writer excludes readers", func(s *scene) {
		h := s.acquire(s.Context(), s.own(lock.Request{}))
		s.start(s.Context(), s.read(lock.Request{})).fails(lock.ErrBusy)
		reader := s.inLine(s.Context(), s.read(lock.Request{}))
		s.release(h)
		s.release(reader.held())
		s.free()
	}},

	// From the release of the write lock on, others may read too, and nobody has written in between.
	{"a writer may read and then stop writing", func(s *scene) {
		writer := s.acquire(s.Context(), s.own(lock.Request{}))
		reader := s.acquire(context.WithoutCancel(writer.Context()), s.read(lock.Request{}))
		s.start(s.Context(), s.read(lock.Request{})).fails(lock.ErrBusy)
		s.release(s.acquire(reader.Context(), s.own(lock.Request{}))) // a writer all the time
		s.release(writer)
		s.busy(s.Context())
		s.alive(reader, "the read lock")
		s.refused(reader.Context(), s.own(lock.Request{}))
		s.release(s.acquire(s.Context(), s.read(lock.Request{Wait: -1})))
		s.free(reader)
	}},

	// The same, if it is the lease that ends the writing.
	{"a writer that is lost leaves its reader among readers", func(s *scene) {
		writer, reader := s.beneath(s.own(lock.Request{}), s.read(lock.Request{Wait: -1}))
		s.ends(writer, lock.ErrLost)
		other := s.acquire(s.Context(), s.read(lock.Request{Wait: s.suite.patience}))
		s.busy(s.Context())
		s.alive(reader, "the read lock")
		s.release(other, reader)
		s.releases(writer, lock.ErrLost)
		s.free()
	}},
}

func (s *scene) read(r lock.Request) lock.Request { return s.request(lock.Read, r) }

var fenced = []promise{
	// A store that has seen a token refuses smaller ones, so a lost holder that goes on can't overwrite the next one's work.
	{"tokens grow", func(s *scene) {
		var last int64
		for range 2 {
			lost := s.acquire(s.Context(), s.own(lock.Request{Wait: -1, Lease: lease}))
			last = s.token(lost, last)
			s.ends(lost, lock.ErrLost)
			h := s.acquire(s.Context(), s.own(lock.Request{Wait: -1}))
			last = s.token(h, last)
			again := s.acquire(h.Context(), s.own(lock.Request{}))
			last = s.token(again, last-1) // re-entry may have the same
			s.release(again, h)
		}
		s.free()
	}},
}

// token returns the fencing token of h, which must be greater than last.
func (s *scene) token(h lock.Hold, last int64) int64 {
	s.Helper()
	t, ok := h.(interface{ Token() int64 })
	if !ok {
		s.Fatal("a fenced hold has no method Token() int64")
	}
	if t.Token() <= last {
		s.Errorf("token %d does not follow %d", t.Token(), last)
	}
	return t.Token()
}
