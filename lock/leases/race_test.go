//go:build race

package leases_test

// crowdSize is how many calls wait together; the race detector follows no more than some 8,000 goroutines.
const crowdSize = 5_000
