// Package sim simulates the network between go-redis and a Redis server, in the virtual time of a testing/synctest bubble.
// Clients dial into a [Network], which delays what they say and what they are answered, and loses, holds back or cuts off
// some of it. The server behind it is miniredis.
//
// # What is simulated with it
//
// The tests of package redisson play worlds on such a network: owners in several clients take, nest, extend, keep and release
// locks of all kinds and what else the package offers, with faults, and then without any. A world follows from its seed. While
// it lasts, each command that the server runs is followed by a comparison of what all owners believe with what the server has:
//
//   - Never are there two owners, or more permits than there may be, and fencing tokens rise.
//   - Nobody believes in a hold that Redis does not have, and nobody loses one without a reason.
//   - Whose lock was freed by force hears of it within 150ms where there are no faults.
//   - Nobody gets a lock while it is kept for a time.
//   - No call returns later than it may, and no free lock or permit is left to nobody while somebody waits.
//   - When the faults are over, every owner gets in once more, and at the end no key, subscription or goroutine is left.
//
// A run of many seeds also fails if it has not reached certain faults and states: see simSometimes in the tests. Whether the
// checks can fail at all is shown by mutants, which are clients with a part of their source replaced: see simMutants.
//
// # Running it
//
//	go test ./redisson                                                # 100 seeds, among the other tests
//	make sim                                                          # 1,000 seeds and the mutants
//	LATCHKEY_SIM=scene=rw,seeds=500 go test -run 'TestSim$' ./redisson  # more of one scene
//	LATCHKEY_SIM=real,seeds=20 go test -run TestSimOnServer ./redisson  # on a real redis-server, in real time
//
// A failure prints the variable that repeats it. With trace added to it, the run prints all that was said, run and returned:
//
//	LATCHKEY_SIM=scene=rw,seed=634,rounds=5,faults=rough,leases=any,bounds=strict,ctx=slow,trace go test -run 'TestSim$' ./redisson
//
// The type simOptions of the tests lists the options. A seed stays what it is as long as neither the simulation nor the client
// changes: any other question to Redis leads to another world. So a defect that was found needs a test of its own.
//
// # Repeating a run
//
// The same seed gives the same run. Goroutines that run at the same virtual instant run in any order, so nothing here may
// depend on that order:
//
//   - All that clients write at one instant is collected, and sorted by what it says, one nanosecond later.
//   - Delays and faults are drawn from a generator that is keyed by the seed, the client, what is said, and how often this
//     client has said that before. Which pooled connection carries a request does not matter.
//   - Each event on the wire has an instant of its own, so that all that follows from one has happened before the next. Only
//     what one client says twice at the same instant happens together, as nothing distinguishes the two.
package sim
