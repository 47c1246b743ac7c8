package redisson

import "github.com/latchkey-go/latchkey/lock"

// queueID is what those in a queue have in common: each could go when the one ahead could.
type queueID struct {
	name    string
	kind    lock.Kind // or one of those below
	permits int64
	alone   string // who stands in a queue of its own, because the fair queue is in Redis
}

// Kinds of those that wait for something else than a lock.
const (
	latchQueue lock.Kind = 128 + iota
	semaphoreQueue
	permitsQueue
	limiterQueue
)

// queueID returns the queue of those who want what ho wants.
func (ho *holder) queueID() queueID {
	id := queueID{name: ho.name(), kind: ho.kind, permits: int64(ho.limit)}
	if ho.queues {
		id.alone = ho.id
	}
	return id
}

// channel is where others tell those in the queue that it may be their turn; "" means nowhere.
func (id queueID) channel() string {
	switch id.kind {
	case lock.Exclusive, lock.Fenced:
		return lockChannel(id.name)
	case lock.Fair:
		return lockChannel(id.name) + ":" + id.alone
	case lock.Read, lock.Write:
		return rwChannel(id.name)
	case lock.Permit, permitsQueue, semaphoreQueue:
		return semaphoreChannel(id.name)
	case latchQueue:
		return latchChannel(id.name)
	}
	return ""
}
