//go:build !race

package redisson_test

const (
	slower          = 1
	crowdSize       = 100_000
	pairAllocations = 45.5
)
