// Package interop holds no code but its tests, which run package setnxlock against the Go libraries that it shares locks with:
// bsm/redislock and redsync, each in a process of its own. It is a module of its own because of them. The libraries in Java are in
// redisson/interop.
package interop
