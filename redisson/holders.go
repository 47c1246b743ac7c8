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

// holders are those that are alive, by their lock, in the order in which they were admitted.
type holders map[lockID][]*holder

// lockIDs yields the locks of ho: those of all levels of a permit.
func (ho *holder) lockIDs(yield func(lockID) bool) {
	if !yield(ho.lockID()) {
		return
	}
	if p, ok := ho.family.(*permit); ok {
		for _, l := range p.levels {
			if !yield(lockID{l.name, lock.Permit}) {
				return
			}
		}
	}
}

// add adds the newest holder of its locks.
func (all holders) add(ho *holder) {
	for id := range ho.lockIDs {
		all[id] = append(all[id], ho)
	}
}

// remove takes ho out, if it is in.
func (all holders) remove(ho *holder) {
	for id := range ho.lockIDs {
		if all[id] = without(all[id], ho); len(all[id]) == 0 {
			delete(all, id)
		}
	}
}

// newest returns the holder of a lock that was admitted last, and nil if there is none.
func (all holders) newest(id lockID) *holder {
	if some := all[id]; len(some) > 0 {
		return some[len(some)-1]
	}
	return nil
}

// all returns all holders, in any order.
func (all holders) all() iter.Seq[*holder] {
	return func(yield func(*holder) bool) {
		for id, some := range all {
			for _, ho := range some {
				if ho.lockID() == id && !yield(ho) {
					return
				}
			}
		}
	}
}
