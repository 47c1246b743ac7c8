package redisson

import (
	"container/heap"
	"slices"
	"time"
)

// scheduled is something that claims have to see to at a time.
type scheduled interface {
	due() time.Time
	finished() bool
	place() *int // in the heap; -1 when not there
}

// placeLocked puts t where it belongs in the heap, or takes it out.
func (s *claims) placeLocked(t scheduled) {
	switch i := *t.place(); {
	case t.finished():
		if i >= 0 {
			heap.Remove(&s.schedule, i)
		}
	case i < 0:
		heap.Push(&s.schedule, t)
	default:
		heap.Fix(&s.schedule, i)
	}
}

// schedule implements heap.Interface.
type schedule []scheduled

func (h schedule) Len() int           { return len(h) }
func (h schedule) Less(i, j int) bool { return h[i].due().Before(h[j].due()) }

func (h schedule) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].place(), *h[j].place() = i, j
}

func (h *schedule) Push(x any) {
	t := x.(scheduled)
	*t.place() = len(*h)
	*h = append(*h, t)
}

func (h *schedule) Pop() any {
	old := *h
	t := old[len(old)-1]
	*t.place() = -1
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}

// without returns list without one element, in place.
func without[T comparable](list []T, x T) []T {
	if i := slices.Index(list, x); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
