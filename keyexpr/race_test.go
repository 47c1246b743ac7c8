//go:build race

package keyexpr

// raceEnabled reports whether the race detector is on.
const raceEnabled = true
