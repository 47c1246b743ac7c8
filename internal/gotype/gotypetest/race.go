//go:build race

package gotypetest

// flags are those of the test, so that what it imports need not be compiled twice.
var flags = []string{"-race"}
