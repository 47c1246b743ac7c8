//go:build race

package main

// flags are those of the test, so that what is vetted need not be compiled twice.
var flags = []string{"-race"}
