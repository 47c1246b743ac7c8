// Package queue has a queue that anybody leaves at once, wherever in it, and that takes no memory of its own for those who stand in it.
package queue

import "iter"

// Queue is a queue of places, each of which belongs to a T, whose zero value is nobody. The zero Queue is empty. Neither a Queue
// that is in use nor a Place in one may be copied.
type Queue[T any] struct{ ends Place[T] } // in a ring with the places: behind it is the first

// Place is one place in a queue, or in none, as the zero value is.
type Place[T any] struct {
	of            T
	ahead, behind *Place[T]
}

// Join makes p, which is in no queue, the last place, and gives it to x.
func (q *Queue[T]) Join(p *Place[T], x T) { p.Follow(q.end().ahead, x) }

// Lead makes p, which is in no queue, the first place, and gives it to x.
func (q *Queue[T]) Lead(p *Place[T], x T) { p.Follow(q.end(), x) }

func (q *Queue[T]) end() *Place[T] {
	if q.ends.ahead == nil {
		q.ends.ahead, q.ends.behind = &q.ends, &q.ends
	}
	return &q.ends
}

// Follow makes p, which is in no queue, the place behind ahead, which is in one, and gives it to x.
func (p *Place[T]) Follow(ahead *Place[T], x T) {
	p.of, p.ahead, p.behind = x, ahead, ahead.behind
	p.ahead.behind, p.behind.ahead = p, p
}

// First returns to whom the first place belongs.
func (q *Queue[T]) First() T {
	if q.ends.behind == nil {
		return q.ends.of
	}
	return q.ends.behind.of // if that is the end again, nobody
}

// All returns to whom the places belong, in order. Nobody may leave meanwhile.
func (q *Queue[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for p := q.ends.behind; p != nil && p != &q.ends; p = p.behind {
			if !yield(p.of) {
				return
			}
		}
	}
}

// In reports whether p is in a queue.
func (p *Place[T]) In() bool { return p.ahead != nil }

// Leave takes p out of its queue, and reports whether it was in one.
func (p *Place[T]) Leave() bool {
	if !p.In() {
		return false
	}
	p.ahead.behind, p.behind.ahead = p.behind, p.ahead
	*p = Place[T]{}
	return true
}
