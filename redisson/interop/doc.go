// Package interop holds no code but its tests, which run package redisson against Redisson itself: a Java program in the
// folder java does to Redisson's objects what a test asks for, on the Redis that the Go side uses.
//
// The scenarios are numbered, and ../WIRE.md says by number what they have shown. Each plays real processes, most of them
// in both directions, on one server or, where the name begins with cluster, in a Redis Cluster of three masters.
// Those whose name begins with setnx are for package lock/setnxlock, with lock4j, Spring Integration and ShedLock.
// "make interop" runs them all; by hand it is
//
//	LATCHKEY_INTEROP=1 go test -v -run 'TestInterop/^03' ./redisson/interop
//
// Without LATCHKEY_INTEROP=1 nothing is built and everything is skipped, because the first run fetches Redisson and what
// it needs. So it is where there is no JDK 17, Maven or redis-server; LATCHKEY_REQUIRE=redis,redisson runs the scenarios
// too, and makes what is missing a failure. Maven builds and keeps all that it fetches in java/target.
package interop
