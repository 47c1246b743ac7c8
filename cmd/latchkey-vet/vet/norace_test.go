//go:build !race

package vet_test

var flags []string
