//go:build !race

package keyexpr

const slower = 1
