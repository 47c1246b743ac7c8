//go:build !race

package leases_test

const crowdSize = 100_000
