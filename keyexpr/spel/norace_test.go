//go:build !race

package spel

const slower = 1
