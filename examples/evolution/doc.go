// Package evolution is the road that everybody walks from a mutex to a lock between machines: ten small programs, each with the
// test that shows its hole. README.md is the way to read them. This package has nothing but a test of it.
package evolution
