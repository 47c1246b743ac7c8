package redisson

import (
	"container/heap"
	"slices"
)

// schedule is a heap of what the registry has to see to. What is due first is at the top.
type schedule []*entry

// entry is a part of what can be scheduled.
type entry struct {
	of    any // a *holder or a *retry
	due   instant
	index int // in the heap, from 1; 0 when not there
}

// set gives the entry a time, or takes it out of the schedule if that is zero.
func (s *schedule) set(e *entry, of any, due instant) {
	switch e.of, e.due = of, due; {
	case due == 0 && e.index > 0:
		heap.Remove(s, e.index-1)
	case due == 0:
	case e.index > 0:
		heap.Fix(s, e.index-1)
	default:
		heap.Push(s, e)
	}
}

// Len implements [heap.Interface].
func (s schedule) Len() int { return len(s) }

// Less implements [heap.Interface].
func (s schedule) Less(i, j int) bool { return s[i].due < s[j].due }

// Swap implements [heap.Interface].
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i+1, j+1
}

// Push implements [heap.Interface].
func (s *schedule) Push(x any) {
	*s = append(*s, x.(*entry))
	(*s)[len(*s)-1].index = len(*s)
}

// Pop implements [heap.Interface].
func (s *schedule) Pop() any {
	last := len(*s) - 1
	e := (*s)[last]
	(*s)[last], e.index = nil, 0
	*s = (*s)[:last]
	return e
}

// without returns list without one element, in place.
func without[T comparable](list []T, x T) []T {
	if i := slices.Index(list, x); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
