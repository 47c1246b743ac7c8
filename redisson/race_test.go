//go:build race

package redisson_test

// slower is how much longer work may take with the race detector.
const slower = 3

// crowdSize is how many calls wait together; the race detector follows no more than some 8,000 goroutines.
const crowdSize = 5_000

// pairAllocations is how many allocations an uncontended pair may take: the race detector has one more escape.
const pairAllocations = 47.5
