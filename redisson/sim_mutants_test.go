package redisson_test

// mutant is a broken client: the sources of the package with some texts replaced. The simulation must find it.
type mutant struct {
	name  string
	edits []edit
	run   string // options
	want  string // what must be violated, as a regular expression
}

// edit replaces a text that is in a file once.
type edit struct{ file, old, new string }

// simMutants are the broken clients.
var simMutants = []mutant{
	// Who holds the lock.
	{
		name:  "a release does not look who holds the lock",
		edits: []edit{{"lua/lock_release.lua", "if call('hexists', key, ARGV[1]) == 0 then", "if call('exists', key) == 0 then"}},
		run:   "scene=plain", want: "two owners|believes",
	},
	{
		name:  "a renewal makes a lock that is not there any more",
		edits: []edit{{"lua/lock_update.lua", "if not has then\n  call('hdel', key, '') -- changes nothing; see scripts.go\n  return {0}\nend\n", ""}},
		run:   "scene=plain", want: "two owners|believes|has not heard|idle|keeps for another",
	},
	{
		name:  "a renewal beside others does not see that its lock is gone",
		edits: []edit{{"lua/many.lua", "said[1] or said + 1", "30001 or said + 1"}},
		run:   "scene=multi,leases=renewed,faults=none", want: "has not heard|late",
	},
	{
		name:  "an acquire does not look whether the lock is free",
		edits: []edit{{"lua/lock_acquire.lua", "local free = left == -2", "local free = call('hlen', key) < 2"}},
		run:   "scene=spin", want: "two owners",
	},
	{
		name:  "a writer does not look for readers",
		edits: []edit{{"lua/write_acquire.lua", "if left == -2 then", "if redis.call('hget', KEYS[1], 'mode') ~= 'write' then"}},
		run:   "scene=rw", want: "two owners",
	},
	{
		name: "the last reader forgets that it is the last",
		edits: []edit{
			{"release.go", "if len(ho.holds) == 0 {", "if len(ho.holds) == 0 && ho.kind != lock.Read {"},
			{"release.go", "(handsOver(ho.family) || reads) && ho.has(h.kind)", "(handsOver(ho.family) && ho.has(h.kind) || reads)"},
		},
		run: "scene=rw,faults=none", want: "keeps for another|idle|left: ",
	},
	{
		name:  "a reader shares with a writer",
		edits: []edit{{"release.go", "ho.kind != lock.Read || !ho.has(lock.Read)", "false"}},
		run:   "scene=rw", want: "two owners|believes",
	},
	{
		name:  "a reserved lock is good from when it is acquired",
		edits: []edit{{"reserve.go", "\tone.ho.begin(&one.h)\n", "\tone.ho.begin(&one.h)\n\tone.answer.Sent = time.Now()\n"}},
		run:   "scene=multi,leases=any", want: "believes|two owners",
	},
	{
		name:  "what was reserved in vain is kept",
		edits: []edit{{"registry.go", "if took {", "if false {"}},
		run:   "scene=multi,faults=none", want: "left: .*in vain",
	},
	{
		name:  "all owners of a client have one id",
		edits: []edit{{"client.go", "number := 1<<62 | int64(randomBits())<<30 | c.holders.Add(1)&(1<<30-1)", "number := int64(1)"}},
		run:   "scene=plain", want: "two owners|believes",
	},
	{
		name:  "two processes out of one memory image have the same next holder",
		edits: []edit{{"client.go", "1<<62 | int64(randomBits())<<30 | c.holders.Add(1)&(1<<30-1)", "c.holders.Add(1)"}},
		run:   "scene=plain", want: "two owners|believes",
	},
	{
		name:  "a call re-enters what its siblings hold",
		edits: []edit{{"acquire.go", "\tfor outer != nil {\n", "\tif ho := c.registry.holders.newest(id); outer == nil && ho != nil && len(ho.holds) > 0 {\n\t\touter = ho.holds[0]\n\t}\n\tfor outer != nil {\n"}},
		run:   "scene=plain", want: "two owners",
	},
	{
		name: "a call re-enters a hold that has ended",
		edits: []edit{
			{"hold.go", "func (h *hold) Held() bool { return h.Remaining() > 0 }", "func (h *hold) Held() bool { return true }"},
			{"registry.go", "if outer.state != held || ho.dead", "if ho.dead"}, {"acquire.go", "if outer.Held() {", "if true {"},
		},
		run: "scene=plain", want: "two owners",
	},
	{
		name:  "a lock that is not re-entrant is re-entered",
		edits: []edit{{"acquire.go", "case outer != nil && !reentrant:", "case outer != nil && !reentrant && false:"}},
		run:   "scene=spin", want: "not re-entrant",
	},
	{
		name:  "a minority of the servers is enough",
		edits: []edit{{"redlock.go", "quorum: len(locks)/2 + 1", "quorum: len(locks) / 2"}},
		run:   "scene=red", want: "two owners|believes",
	},
	{
		name:  "a RedLock forgets who answers after the majority",
		edits: []edit{{"redhold.go", "for _, p := range h.parts {\n\t\tif own", "for _, p := range h.parts[:min(len(h.parts), h.c.r.quorum)] {\n\t\tif own"}},
		run:   "scene=red,faults=none", want: "did not get what it holds",
	},
	{
		name:  "a fencing token is given twice",
		edits: []edit{{"lua/token.lua", "redis.pcall('incr', KEYS[2])", "redis.pcall('incrby', KEYS[2], #KEYS[1] - 1)"}},
		run:   "scene=fenced", want: "token",
	},
	{
		name:  "nobody is told of a forced release",
		edits: []edit{{"forceunlock.go", "\tc.askEach(ctx, time.Now().Add(c.timeout), calls)\n", "\t_ = calls\n"}},
		run:   "scene=plain,faults=none", want: "has not heard",
	},
	{
		name:  "a client that begins to hear does not ask what was forced before",
		edits: []edit{{"forceunlock.go", "\t\t\tc.registry.doubtAll()\n", ""}},
		run:   "scene=plain,faults=none", want: "has not heard",
	},

	// Leases, and what is believed about them.
	{
		name:  "a lease is counted from its answer",
		edits: []edit{{"internal/transport/call.go", "a := Answer{Sent: sent}", "a := Answer{Sent: time.Now()}"}},
		run:   "scene=plain,faults=rough", want: "two owners|believes",
	},
	{
		name:  "no margin",
		edits: []edit{{"holder.go", "return lease - margin(lease)", "return lease - 0*margin(lease)"}},
		run:   "scene=plain,faults=rough", want: "two owners|believes",
	},
	{
		name:  "a late acquire is believed",
		edits: []edit{{"holder.go", "max(ho.validUntil, instantOf(a.Sent).add(goodFor(lease)))", "max(ho.validUntil, present().add(goodFor(lease)))"}},
		run:   "scene=plain,faults=rough", want: "two owners|believes",
	},
	{
		name:  "a renewal without an answer counts",
		edits: []edit{{"registry.go", "\tcase !a.Gone():\n\t\tho.outdated = true\n", "\tcase !a.Gone():\n\t\tho.outdated = true\n\t\tho.validUntil = present().add(s.timeout)\n"}},
		run:   "scene=plain,faults=rough,leases=renewed", want: "two owners|believes|nobody has", // it hears of its end when Redis has none
	},
	{
		name:  "a partial release of a reader believes in the lease that it asks for",
		edits: []edit{{"lua/rw_update.lua", "return {1, math.min(left, reading), 0}", "return {1, lease + 3000, 0}"}},
		run:   "scene=read", want: "two owners|believes|has removed its lock",
	},
	{
		name: "readers are kept by count",
		edits: []edit{
			{"lock.go", "c.reads, c.writes, how, readTimeout(ho.name(), ho.id)}", "c.reads, c.writes, how, readTimeout(ho.name(), ho.id)[:len(readTimeout(ho.name(), ho.id))-1] + fmt.Sprint(c.reads)}"},
		},
		run: "scene=read", want: "two owners|believes",
	},
	{
		name:  "a reader that leaves takes the leases of the others along",
		edits: []edit{{"lua/rw_release.lua", "longest = math.max(longest, left)", "longest = math.min(math.max(longest, left), 500)"}},
		run:   "scene=read", want: "two owners|believes|keeps for another",
	},
	{
		name:  "a writer's shorter lease is not believed in time",
		edits: []edit{{"holder.go", "\tho.validUntil = min(ho.validUntil, now.add(goodFor(ho.cut.lease)))\n", ""}},
		run:   "scene=write", want: "two owners|believes",
	},
	{
		name:  "an update does not make a lease longer",
		edits: []edit{{"lua/lock_update.lua", "ARGV[2], token", "tonumber(ARGV[2]) < 4000 and ARGV[2] or 0, token"}},
		run:   "scene=plain", want: "two owners|believes|lost early",
	},
	{
		name:  "renewals come late",
		edits: []edit{{"registry.go", "at := asked.Add(lease / 3)", "at := asked.Add(lease)"}},
		run:   "scene=plain,faults=none", want: "lost early",
	},
	{
		name:  "a lock is not kept",
		edits: []edit{{"lua/lock_release.lua", "if ARGV[4] ~= '0' then", "if ARGV[4] == 'kept' then"}},
		run:   "scene=plain", want: "keeps for another",
	},
	{
		name:  "a forced unlock ends later holds",
		edits: []edit{{"registry.go", "if ho.admitted < asked {", "if true {"}},
		run:   "scene=plain,faults=all,rounds=20", want: "nobody has|keeps for another",
	},

	// Waiting.
	{
		name: "a line loses a waiter",
		edits: []edit{
			{"localqueue.go", "\tdefault:\n\t\tp.queue.resumeLocked()\n", "\tcase len(slices.Collect(p.queue.places.All())) == 1:\n\tdefault:\n\t\tp.queue.resumeLocked()\n"},
			{"localqueue.go", "import (\n", "import (\n\t\"slices\"\n"},
		},
		run: "scene=plain", want: "liveness|late|idle",
	},
	{
		name:  "a message that comes during a try is missed",
		edits: []edit{{"wait.go", "if lives && now != changed {", "if false {"}},
		run:   "scene=write,faults=none", want: "idle",
	},
	{
		name:  "who waits is not in the wake list",
		edits: []edit{{"lua/lock_wait.lua", "'nx', since, me", "'xx', since, me"}},
		run:   "scene=plain,faults=none", want: "idle",
	},
	{
		name:  "who waits no more passes nothing on, and the second in the wake list never looks",
		edits: []edit{{"wait.go", "if over != \"\" {", "if false {"}, {"wake.go", "\t\ts.second.Reset(secondTime)\n", "\t\ts.second.Stop()\n"}},
		run:   "scene=plain", want: "idle|late|left",
	},
	{
		name:  "a head that counts on its predecessor never asks",
		edits: []edit{{"localqueue.go", "\tln.alarm.Reset(d)\n", "\tln.alarm.Stop()\n"}},
		run:   "scene=plain", want: "liveness|late|idle|outage without a fault",
	},
	{
		name:  "a waiter leaves the lock behind that was on its way to it",
		edits: []edit{{"wait.go", "\t\t\tw.c.registry.abandon(w.hold)\n", ""}, {"hold.go", "\t\t\tc.registry.abandon(t.next)\n\t\t}\n\tdefault", "\t\t}\n\tdefault"}},
		run:   "scene=plain,faults=none", want: "idle|left|late|liveness",
	},
	{
		name:  "a lock passes on with the old token",
		edits: []edit{{"release.go", "\tif next.kind == lock.Fenced {\n", "\tif next.kind == lock.Fenced && false {\n"}},
		run:   "scene=fenced", want: "token",
	},
	{
		name:  "a waiter that leaves stays in the fair queue, and nobody sees to that",
		edits: []edit{{"acquire.go", "a.Err == nil && len(a.List) > 0 && c.doubt(", "false && c.doubt("}, {"lua/fair_release.lua", "if deadline then", "if false then"}, {"lua/fair_release.lua", "if deadline or not whole() then", "if false then"}},
		run:   "scene=fair", want: "liveness|idle|left",
	},
	{
		name:  "nobody removes its own waiters that are back",
		edits: []edit{{"family.go", "(swept bool) {\n", "(swept bool) {\n\tif true {\n\t\treturn false\n\t}\n"}},
		run:   "scene=fair,faults=back", want: "idle|late|liveness",
	},
	{
		name:  "a wait for a latch ends by a message of before",
		edits: []edit{{"internal/pubsub/registry.go", "m.from = ch.sent + 1", "m.from = 0"}},
		run:   "scene=latch", want: "a latch was closed",
	},
	{
		name:  "a latch does not say that it is open",
		edits: []edit{{"lua/countdownlatch_down.lua", "if count == 1 then", "if count == 0 then"}},
		run:   "scene=latch,faults=none", want: "idle",
	},
	{
		name:  "a MultiLock keeps what it has while it waits for the rest",
		edits: []edit{{"multilock.go", "\t\twithdraw(ctx, try.parts)\n", ""}},
		run:   "scene=multi", want: "liveness|left|late|believes",
	},

	// What is not answered.
	{
		name:  "an acquire without an answer is forgotten",
		edits: []edit{{"registry.go", "if ho.queued || ho.doubts > 0 || ho.dead {", "if took || ho.queues || ho.dead {"}},
		run:   "scene=plain,faults=lossy", want: "idle|left|believes|two owners",
	},
	{
		name:  "a release without an answer is not repeated",
		edits: []edit{{"release.go", "if a.Err != nil && !a.Gone() || ho.inDoubt(now) {", "if a.Err == nil && ho.inDoubt(now) {"}},
		run:   "scene=spin,faults=lossy", want: "idle|left",
	},
	{
		name:  "an undo is not sent",
		edits: []edit{{"receipt.go", "\t\tc.registry.retry(undo, present().add(c.receiptLife()))\n", ""}},
		run:   "scene=semaphore,faults=lossy", want: "left|liveness",
	},
	{
		name:  "a request that was seen is done again",
		edits: []edit{{"lua/receipt.lua", "if seen and tonumber(seen) >= tonumber(number) then", "if false then"}},
		run:   "scene=semaphore,faults=rough", want: "permits of L|left|liveness",
	},
	{
		name:  "a forced release that was seen is done again",
		edits: []edit{{"lua/force.lua", "if seen and tonumber(seen) >= tonumber(number) then", "if false then"}},
		run:   "scene=plain,faults=rough", want: "believes|nobody has|keeps for another",
	},

	// Servers that are not ready.
	{
		name:  "an answer of a demoted server is followed by a long pause", // which alone is not found
		edits: []edit{{"internal/transport/call.go", "r.fresh != nil && slices", "false && slices"}, {"internal/transport/call.go", "firstPause  = 8", "firstPause  = 128"}},
		run:   "faults=demoted", want: "an outage without a fault|late|idle",
	},
	{
		name:  "a demoted server says that a lock is gone",
		edits: []edit{{"lua/lock_update.lua", "call('hdel', key, '')", ""}},
		run:   "scene=plain,faults=demoted", want: "lost|gone|removed|outage",
	},
	{
		name:  "what a failed call may have left is looked for all the time",
		edits: []edit{{"watchdog.go", "rt.pause = min(pause, t.retryAfter())", "rt.pause = firstAgain"}},
		run:   "scene=plain,faults=lossy", want: "vain",
	},
	{
		name:  "too few replicas are an answer for good",
		edits: []edit{{"../internal/reply/answers.go", `Class{Type: "no_replicas", Repeat: true, Elsewhere: true}`, `Class{Type: "no_replicas"}`}},
		run:   "faults=away", want: "an outage without a fault|late|idle",
	},
	{
		name:  "a caller that leaves a server that is not ready hears of that",
		edits: []edit{{"internal/transport/road.go", "ended && r.repeatable(a.Err)", "false"}},
		run:   "faults=away", want: "an outage without a fault",
	},

	// Numbers.
	{
		name:  "one permit more than there are",
		edits: []edit{{"lua/permit_acquire.lua", "not level.held and free < 1", "not level.held and free < 0"}},
		run:   "scene=permit", want: "permits of L are taken",
	},
	{
		name:  "a permit that is given back twice takes another one along",
		edits: []edit{{"lua/permit_release.lua", "ARGV[1]) == 1 then\n", "ARGV[1]) == 1 or redis.call('zremrangebyrank', level.taken, 0, 0) > 0 then\n"}},
		run:   "scene=permit,faults=rough", want: "permits of L|believes",
	},
	{
		name:  "a permit whose lease is over stays taken",
		edits: []edit{{"lua/permit_prelude.lua", "redis.call('zremrangebyscore', level.taken, '-inf', now)", "0"}},
		run:   "scene=levels", want: "idle|liveness|late|believes|removed its lock",
	},
	{
		name:  "a release gives the first level back, and not the others",
		edits: []edit{{"lua/permit_release.lua", "in ipairs(levels) do", "in ipairs({levels[1]}) do"}},
		run:   "scene=levels", want: "idle|left|liveness",
	},
	{
		name:  "a level is kept when the next one is full",
		edits: []edit{{"lua/permit_acquire.lua", "  frees[i] = free\n", "  frees[i] = free\n  redis.call('zadd', level.taken, 'nx', now + ARGV[3], ARGV[1])\n"}},
		run:   "scene=levels", want: "idle|left|liveness",
	},
	{
		name:  "an update does not notice that a level is gone",
		edits: []edit{{"lua/permit_update.lua", "local lease\n", "gone = not levels[1].held\nlocal lease\n"}},
		run:   "scene=levels,leases=renewed", want: "has not heard|believes|are taken",
	},
	{
		name:  "who waits for a level does not move on to the one that is full",
		edits: []edit{{"permit.go", "return w.at != was && w.place.queue != nil", "return w.at != was && w.at < 0"}},
		run:   "scene=levels,faults=none", want: "idle|liveness|starved",
	},
	{
		name:  "who moves on to another level stays in the list of the first",
		edits: []edit{{"wait.go", "if over != \"\" {", "if over != \"\" && !errors.Is(err, errElsewhere) {"}},
		run:   "scene=levels,faults=none", want: "idle|liveness|starved",
	},
	{
		name:  "a release of a permit tells nobody",
		edits: []edit{{"lua/permit_release.lua", "free > 0) and announce(", "free < 0) and announce("}},
		run:   "scene=permit,faults=none", want: "idle",
	},
	{
		name:  "of several permits that are free, only the first in the list is told",
		edits: []edit{{"lua/wake.lua", "local place, plain = (free or 1) - 1,", "local place, plain = 0,"}},
		run:   "scene=levels,faults=none", want: "idle",
	},
	{
		name:  "the first in the list is passed over",
		edits: []edit{{"lua/wake.lua", "first, second, noted = front(wake, place)\n  while", "first, second, noted = front(wake, place + 1)\n  while"}},
		run:   "scene=permit,faults=none", want: "starved|idle",
	},
	{
		name:  "a rate forgets what was taken",
		edits: []edit{{"lua/permit_rate.lua", "redis.call('zadd', taken, now, member)\n", ""}},
		run:   "scene=begin,faults=none", want: "permits within",
	},
	{
		name: "a permit of a rate is taken before the levels",
		edits: []edit{
			{"lua/permit_acquire.lua", "3 * #levels\n", "3 * #levels\nlocal paced = ARGV[4] ~= '0' and pace({unpack(KEYS, last + 1, last + 5)}, {ARGV[4], ARGV[5], ARGV[1]}) or 0\n"},
			{"lua/permit_acquire.lua", "local wait = ARGV[4] ~= '0' and (gone or last == 0) and pace({unpack(KEYS, last + 1, last + 5)}, {ARGV[4], ARGV[5], ARGV[1]}) or 0\n", "local wait = paced\n"},
		},
		run: "scene=begin,faults=none", want: "permits within|idle",
	},
	{
		name:  "a permit of a rate is taken without being counted",
		edits: []edit{{"lua/rate_acquire.lua", "redis.call('zadd', taken, now, ARGV[2])", ""}},
		run:   "scene=rate,faults=none", want: "permits within",
	},
}
