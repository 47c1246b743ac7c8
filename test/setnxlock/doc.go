// Package setnxlock holds no code but its tests, which run package lock/setnxlock against the Go libraries that it shares locks with:
// bsm/redislock and redsync, each in a process of its own. The libraries in Java are in redisson/interop.
package setnxlock
