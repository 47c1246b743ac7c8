package redisson_test

// mutant is a broken client: the source of the package with one text replaced. The simulation must find it.
type mutant struct {
	name     string
	file     string
	old, new string // old is in the file once
	run      string // options
	want     string // what must be violated, as a regular expression
}

// simMutants are the broken clients.
var simMutants = []mutant{
	// Scripts.
	{
		name: "a release does not look who holds the lock",
		file: "release.lua", old: "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then", new: "if redis.call('exists', KEYS[1]) == 0 then",
		run: "scene=plain", want: "two owners|believes",
	},
	{
		name: "a renewal makes a lock that is not there any more",
		file: "renew.lua", old: "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then\n  return {0}\nend",
		new: "redis.call('hset', KEYS[1], ARGV[1], 1)",
		run: "scene=plain", want: "two owners|believes|has not heard|idle",
	},
	{
		name: "an acquire does not look whether the lock is free",
		file: "acquire.lua", old: "redis.call('exists', KEYS[1]) == 0", new: "redis.call('hlen', KEYS[1]) < 2",
		run: "scene=spin", want: "two owners",
	},
	{
		name: "a fencing token is given twice",
		file: "acquire.lua", old: "redis.call('incr', KEYS[2])", new: "redis.call('incrby', KEYS[2], #KEYS[1] - 1)",
		run: "scene=fenced", want: "token",
	},
	{
		name: "dead waiters stay at the head of a fair queue",
		file: "fair_prelude.lua", old: "tonumber(deadline) > now", new: "tonumber(deadline) > 0",
		run: "scene=fair,faults=rough", want: "liveness|idle|left",
	},
	{
		name: "a waiter that leaves stays in the fair queue",
		file: "fair_release.lua", old: "  redis.call('zrem', KEYS[3], ARGV[1])\n  redis.call('lrem', KEYS[2], 0, ARGV[1])\n", new: "",
		run: "scene=fair", want: "liveness|idle|left",
	},
	{
		name: "a writer does not look for readers",
		file: "write_acquire.lua", old: "redis.call('exists', KEYS[1]) == 1", new: "redis.call('hget', KEYS[1], 'mode') == 'write'",
		run: "scene=rw", want: "two owners",
	},
	{
		name: "one permit more than there are",
		file: "permit_acquire.lua", old: "if free < 1 then", new: "if free < 0 then",
		run: "scene=permit", want: "permits of L are taken",
	},
	{
		name: "a permit can be given back twice",
		file: "permit_release.lua", old: "if not taken then", new: "if not taken and redis.call('zcard', KEYS[2]) == 0 then",
		run: "scene=permit,faults=rough", want: "permits of L",
	},
	{
		name: "a request that was seen is done again",
		file: "receipt.lua", old: "if seen and tonumber(seen) >= tonumber(number) then", new: "if false then",
		run: "scene=semaphore,faults=rough", want: "permits of L|left|liveness",
	},
	{
		name: "a permit of a rate is taken without being counted",
		file: "rate_acquire.lua", old: "redis.call('zadd', taken, now, ARGV[2])", new: "",
		run: "scene=rate,faults=none", want: "permits within",
	},
	{
		name: "a latch does not say that it is open",
		file: "countdownlatch_down.lua", old: "if count == 1 then", new: "if count == 0 then",
		run: "scene=latch,faults=none", want: "idle",
	},

	// Go.
	{
		name: "all owners of a client have one id",
		file: "client.go", old: "strconv.FormatInt(c.holders.Add(1), 10)", new: "strconv.Itoa(1)",
		run: "scene=plain", want: "two owners|believes",
	},
	{
		name: "one id for all tries",
		file: "waiting.go", old: "\t\t\tcl = w.newClaim(cl.seat)\n", new: "",
		run: "scene=plain,faults=rough", want: "two owners|believes|has not heard|idle|liveness",
	},
	{
		name: "a lease is counted from its answer",
		file: "script.go", old: "a.values, a.err = c.send(ctx, cl)", new: "a.values, a.err = c.send(ctx, cl)\n\t\ta.sent = time.Now()",
		run: "scene=plain,faults=rough", want: "two owners|believes",
	},
	{
		name: "no margin",
		file: "claim.go", old: "return min(lease/20, time.Second)", new: "return 0 * min(lease/20, time.Second)",
		run: "scene=plain", want: "two owners|believes",
	},
	{
		name: "a renewal without an answer counts",
		file: "watchdog.go", old: "\t\tcl.lastErr = o.err\n", new: "\t\tcl.until = later(cl.until, sent.Add(goodFor(w.timeout)))\n",
		run: "scene=plain,faults=rough,leases=renewed", want: "two owners|believes",
	},
	{
		name: "a line loses a waiter",
		file: "queue.go", old: "\tcase wasHead:\n", new: "\tcase wasHead && ln.places.Len() > 1:\n",
		run: "scene=plain", want: "liveness|late|idle",
	},
	{
		name: "an acquire without an answer is forgotten",
		file: "acquire.go", old: "traces := cl.doubt || cl.queued", new: "traces := cl.queued",
		run: "scene=plain,faults=lossy", want: "idle|left|believes|two owners",
	},
	{
		name: "a subscription is not followed by a look",
		file: "signal.go", old: "\tif ch.live() {\n\t\tch.advance()\n\t}\n", new: "",
		run: "scene=plain,faults=none", want: "idle",
	},
}
