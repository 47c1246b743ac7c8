package redisson

import (
	"strconv"
	"strings"
)

// The names of all keys and channels. They are the contract with Redisson: a golden test holds them.

// prefixed is Redisson's name for a thing that belongs to the lock name, built so that both share a Redis Cluster slot.
func prefixed(prefix, name string) string {
	if strings.Contains(name, "{") {
		return prefix + ":" + name
	}
	return prefix + ":{" + name + "}"
}

// suffixBase is what a suffix is added to, after a colon, and what follows a prefix. The test for a brace is Redisson's own: a closing one is not
// looked for.
func suffixBase(name string) string {
	if strings.Contains(name, "{") {
		return name
	}
	return "{" + name + "}"
}

// suffixed is Redisson's name for a key that belongs to the object name, in the same slot.
func suffixed(name, suffix string) string { return suffixBase(name) + ":" + suffix }

// searchKey begins the keys by which a search finds its way to a master. They are never made.
const searchKey = "latchkey_scan:"

// lockChannel is where the release of a plain lock is published, with payload "0". A fair lock adds a colon and the holder
// id of the waiter whose turn it is.
func lockChannel(name string) string { return prefixed("redisson_lock__channel", name) }

// fairQueue is the list of holder ids that wait for a fair lock, fairDeadlines the sorted set of the server times, in ms,
// after which each of them counts as dead.
func fairQueue(name string) string     { return prefixed("redisson_lock_queue", name) }
func fairDeadlines(name string) string { return prefixed("redisson_lock_timeout", name) }

// tokenKey is the counter of a fenced lock's tokens.
func tokenKey(name string) string { return prefixed("redisson_lock_token", name) }

// rwChannel is where the end of reading ("0") and of writing ("1") is published.
func rwChannel(name string) string { return prefixed("redisson_rwlock", name) }

// readTimeout is the key that lives as long as a reader's lease: Redisson's for the reader's first hold.
func readTimeout(name, holder string) string { return suffixed(name, holder) + ":rwlock_timeout:1" }

// semaphoreChannel is where permits that became free are published, with their number, for both kinds of semaphores.
func semaphoreChannel(name string) string { return prefixed("redisson_sc", name) }

// permitsKey is the sorted set of the permits that are taken from an expirable semaphore.
func permitsKey(name string) string { return suffixed(name, "timeout") }

// permitsMark says that a semaphore was made by an Acquire of a lock.Permit, and goes with its last permit. Redisson does not
// know it.
func permitsMark(name string) string { return prefixed("latchkey_permits", name) }

// latchChannel is where the end of a count is published with payload "0", and a new or removed count with "1". Redisson
// adds braces here to any name, also to one with a hash tag of its own.
func latchChannel(name string) string { return "redisson_countdownlatch__channel__{" + name + "}" }

// rateName is the rate limiter of a lock.Permit of that name.
func rateName(name string) string { return suffixed(name, "rate") }

// rateKeys are the keys of a rate limiter: what is left and what was taken, by all clients together and by this one.
func rateKeys(name, client string) (value, permits, ownValue, ownPermits string) {
	value, permits = suffixed(name, "value"), suffixed(name, "permits")
	return value, permits, suffixed(value, client), suffixed(permits, client)
}

// newestName is the key with the client that has the newest of the calls that are announced at a lock, and the channel where another
// one is announced; see Client.Replace. Redisson does not know it.
func newestName(name string) string { return prefixed("latchkey_newest", name) }

// wakeName is the sorted set of those who wait for a plain or fenced lock, or for a permit; see lua/wake.lua. Redisson does not know it.
func wakeName(name string) string { return prefixed("latchkey_wake", name) }

// clientName is a client's own: the channel where it is told that a lock was freed by hand, and the key that says whose client it is, if
// it has a name. Redisson does not know it.
func clientName(client string) string { return "latchkey_client:" + client }

// freesName is the stream of the locks that were freed by hand; see Client.Frees.
const freesName = "latchkey_frees"

// receiptKey is where this package notes what came of a client's last request in a slot; see receipts. Redisson does not
// know it.
func receiptKey(name, client string, slot int) string {
	return prefixed("latchkey_receipt", name) + ":" + client + ":" + strconv.Itoa(slot)
}
