//go:build race

package redisson_test

// slower is how much longer work may take with the race detector.
const slower = 3
