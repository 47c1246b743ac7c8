//go:build race

package vet_test

// flags are those of the test, so that what is loaded need not be compiled twice.
var flags = []string{"-race"}
