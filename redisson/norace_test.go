//go:build !race

package redisson_test

const slower = 1
