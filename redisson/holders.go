package redisson

import (
	"iter"

	"github.com/latchkey-go/latchkey/lock"
)

// lockID identifies a lock in Redis: kinds of one family share a name.
type lockID struct {
	name   string
	family lock.Kind
}

func (ho *holder) lockID() lockID { return lockID{ho.name(), ho.kind.Family()} }

// holders are those that are alive, by their lock. More than one of a lock are linked, the newest first.
type holders map[lockID]*holder

// add adds the newest holder of its lock.
func (all holders) add(ho *holder) {
	id := ho.lockID()
	if ho.next = all[id]; ho.next != nil {
		ho.next.newer = ho
	}
	all[id] = ho
}

// remove takes ho out, if it is in.
func (all holders) remove(ho *holder) {
	switch id := ho.lockID(); {
	case ho.newer != nil:
		ho.newer.next = ho.next
	case all[id] == ho && ho.next == nil:
		delete(all, id)
	case all[id] == ho:
		all[id] = ho.next
	}
	if ho.next != nil {
		ho.next.newer = ho.newer
	}
	ho.next, ho.newer = nil, nil
}

// of returns the holders of a lock. One may be removed when it is yielded.
func (all holders) of(id lockID) iter.Seq[*holder] {
	return func(yield func(*holder) bool) {
		for ho := all[id]; ho != nil; {
			next := ho.next
			if !yield(ho) {
				return
			}
			ho = next
		}
	}
}

// all returns all holders, in any order.
func (all holders) all() iter.Seq[*holder] {
	return func(yield func(*holder) bool) {
		for id := range all {
			for ho := range all.of(id) {
				if !yield(ho) {
					return
				}
			}
		}
	}
}
