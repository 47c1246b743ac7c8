//go:build !race

package main

var flags []string
