package redisson

import "strings"

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

// suffixed is Redisson's other rule for names that belong to the lock name.
func suffixed(name, suffix string) string {
	if strings.Contains(name, "{") {
		return name + ":" + suffix
	}
	return "{" + name + "}:" + suffix
}
