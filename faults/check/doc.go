// Package check judges the history of a run of faults: what its workers did with their locks while servers, connections and
// processes were at fault. It knows nothing of Latchkey, so that it judges any locker.
//
// [Check] applies these rules. Each is a function of its own, in the file named here.
//
//	holders      two owners are never inside at once, but for readers; permits never exceed their limit     holders.go
//	token        a later holder has a greater fencing token                                                  tokens.go
//	write        a store accepts no write with a token lower than one that it has accepted                   tokens.go
//	update       what a store acknowledged is there at the end                                               tokens.go
//	once         and is not there twice                                                                      tokens.go
//	deadline     a call is back 100 ms after its deadline at the latest                                      calls.go
//	wait         a call is back soon after its wait                                                          calls.go
//	return       each call comes back, but of processes that were killed                                     calls.go
//	reentry      an owner that holds a lock is not told that it is busy                                      calls.go
//	idle         nobody waits for a lock that stands idle longer than its lease                              idle.go
//	heal         after the last fault, all that wait without a bound get in                                  calls.go
//	leftover     nothing is left over at the end                                                             calls.go
//	latch        a wait for a latch ends when the latch is open                                              synchronizers.go
//	rate         a rate limiter admits no more than its rate                                                 synchronizers.go
//	model        the calls of a key are those of a sequential model (porcupine)                              model.go
//
// # What is counted apart
//
// A section is the time of a worker between Enter and Exit. One of two that overlap is excused, and counted, if the log
// shows why nobody could have prevented it:
//
//   - Its process was stopped when the other entered, or had been until just before, and it ended within [Options.Grace]
//     of being continued: work that was paused after its last look cannot know ([Result.Stopped]).
//   - Its server lost its data after the call was sent and before the other entered, and it ended within its lease
//     ([Result.AfterLoss]).
//
// The time in which its process was stopped, or had no processor, counts against no call. A section of a process that was killed ends at the kill.
package check
