//go:build race

package spel

// slower is how much longer everything may take with the race detector.
const slower = 20
