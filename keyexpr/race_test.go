//go:build race

package keyexpr

// slower is what the race detector makes of times and of memory.
const slower = 20
