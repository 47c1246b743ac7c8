package redisson

import (
	"strconv"
	"strings"
)

// prefixed is Redisson's name for a thing that belongs to the lock name, built so that both share a Redis Cluster slot.
// The test for a brace is Redisson's own: a closing one is not looked for.
func prefixed(prefix, name string) string {
	if strings.Contains(name, "{") {
		return prefix + ":" + name
	}
	return prefix + ":{" + name + "}"
}

// lockChannel is where the release of a plain lock is published, with payload "0".
func lockChannel(name string) string { return prefixed("redisson_lock__channel", name) }

// suffixed is Redisson's name for a key that belongs to the object name, in the same slot.
func suffixed(name, suffix string) string {
	if strings.Contains(name, "{") {
		return name + ":" + suffix
	}
	return "{" + name + "}:" + suffix
}

// semaphoreChannel is where permits that became free are published, with their number, for both kinds of semaphores.
func semaphoreChannel(name string) string { return prefixed("redisson_sc", name) }

// permitsKey is the sorted set of the permits that are taken from an expirable semaphore.
func permitsKey(name string) string { return suffixed(name, "timeout") }

// latchChannel is where the end of a count is published with payload "0", and a new or removed count with "1". Redisson
// adds braces here to any name, also to one with a hash tag of its own.
func latchChannel(name string) string { return "redisson_countdownlatch__channel__{" + name + "}" }

// rateKeys are the keys of a rate limiter: what is left and what was taken, by all clients together and by this one.
func rateKeys(name, client string) (value, permits, ownValue, ownPermits string) {
	value, permits = suffixed(name, "value"), suffixed(name, "permits")
	return value, permits, suffixed(value, client), suffixed(permits, client)
}

// receiptKey is where this package notes what came of a client's last request in a slot; see receipts. Redisson does not
// know it.
func receiptKey(name, client string, slot int) string {
	return prefixed("latchkey_receipt", name) + ":" + client + ":" + strconv.Itoa(slot)
}

// hashTag is the part of a key that decides its slot in a Redis Cluster.
func hashTag(key string) string {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}
