//go:build !race

package gotypetest

var flags []string
