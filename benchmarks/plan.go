package main

// we is the peer that the goals are for.
const (
	we        = "latchkey"
	ourUser   = "latchkey-default"
	base      = "go-redis" // of the ratios, and of the check that the machine was quiet
	bestRival = "rueidislock"
	floorLine = "bare-line"
	floorMany = "bare-gathered"
	byHand    = "by hand"
)

// plan lists all figures of figures.json: first those with a goal, then what they are made of.
var plan = append(goals, measured...)

var goals = []planned{
	{id: "uncontended_floor_ratio", metric: "pair_us", base: "bare", unit: "ratio", about: "time of a pair ÷ the bare pair", peer: we, goal: atMost(1.10)},
	{id: "uncontended_allocs", metric: "pair_allocs", unit: "allocations", about: "allocations of a pair", peer: we, goal: atMost(30)},
	{id: "uncontended_pair", metric: "pair_us", base: base, unit: "ratio", about: "time of a pair ÷ go-redis", peer: we, goal: timesFloor(1.10), floor: "bare"},
	{id: "uncontended_default", metric: "pair_us", base: base, unit: "ratio", about: "time of a pair on a user's own client ÷ go-redis", peer: ourUser, goal: timesFloor(1.20), floor: "bare-default"},
	{id: "uncontended_link", metric: "link_pair_us", base: base, unit: "ratio", about: "time of a pair over 0.5 ms of latency ÷ go-redis", peer: we, goal: atMost(1.03), floor: "bare"},
	{id: "own_keys_64", metric: "own_keys_64_rate", base: base, unit: "ratio", about: "64 callers with own keys: pairs a second ÷ go-redis", peer: we, goal: atLeast(1.4), floor: floorMany},
	{id: "one_key_commands", metric: "one_key_commands", unit: "commands", about: "64 callers on one key: commands an acquisition", peer: we, goal: atMost(1.2)},
	{id: "one_key_rate", metric: "one_key_per_s", base: bestRival, unit: "ratio", about: "64 callers on one key: acquisitions a second ÷ rueidislock", peer: we, goal: atLeast(2.2), floor: floorLine},
	{id: "processes_commands", metric: "processes_commands", unit: "commands", about: "4 processes × 16: commands an acquisition", peer: we, goal: atMost(2.5)},
	{id: "processes_rate", metric: "processes_per_s", base: bestRival, unit: "ratio", about: "4 processes × 16: acquisitions a second ÷ rueidislock", peer: we, goal: atLeast(1.5)},
	{id: "processes_longest", metric: "processes_longest_ms", base: bestRival, unit: "ratio", about: "4 processes × 16: longest wait ÷ rueidislock", peer: we, goal: atMost(1)},
	{id: "turns_commands", metric: "turns_commands", unit: "commands", about: "strict turns between two processes: commands a turn", peer: we, goal: atMost(3.5)},
	{id: "turns", metric: "turns_gap_us", base: bestRival, unit: "ratio", about: "strict turns: release to acquisition, median ÷ rueidislock", peer: we, goal: atMost(0.9), floor: floorLine},
	{id: "herd_scale", metric: "herd_scale", unit: "ratio", about: "one key, a caller in each client: acquisitions a second of 192 clients ÷ 4", peer: we, goal: atLeast(0.8)},
	{id: "herd_rate", metric: "herd_192_per_s", base: "redsync", unit: "ratio", about: "192 clients: acquisitions a second ÷ redsync, which polls", peer: we, goal: atLeast(1.2)},
	{id: "herd_longest", metric: "herd_longest", unit: "ratio", about: "192 clients: longest wait ÷ the time in which each has one turn", peer: we, goal: atMost(3)},
	{id: "held_goroutines", metric: "held_10000_goroutines", unit: "goroutines", about: "goroutines for each of 10,000 held locks", peer: we, goal: atMost(0)},
	{id: "held_bytes", metric: "held_10000_bytes", unit: "B", about: "memory for each of 10,000 held locks", peer: we, goal: atMost(700)},
	{id: "held_redis_share", metric: "held_100000_share", unit: "share", about: "renewal of 100,000 held locks: share of Redis' time", peer: we, goal: atMost(0.05)},
	{id: "stuck", metric: "stuck", unit: "callers", worst: true, about: "callers that never got the lock in a run on one key, also after a freeze of the server; the worst round counts", peer: we, goal: atMost(0)},
	{id: "reentry_commands", metric: "reentry_commands", unit: "commands", about: "commands of a nested guard on a held key", peer: we, goal: atMost(1)},
	{id: "key_ns", metric: "key_ns", unit: "ns", about: "a key of two paths", peer: we, goal: atMost(140), floor: byHand},
	{id: "guard_ns", metric: "guard_ns", unit: "ns", about: "`guard.Func` around nothing, with memlock", peer: we, goal: atMost(800), floor: byHand},
	{id: "jvm_rate", metric: "own_keys_64_rate", base: java, unit: "ratio", about: "64 callers with own keys: pairs a second ÷ Redisson on a warm JVM", peer: we, goal: atLeast(4), floor: floorMany},
	{id: "jvm_one_key", metric: "one_key_per_s", base: java, unit: "ratio", about: "64 callers on one key: acquisitions a second ÷ Redisson on a warm JVM", peer: we, goal: atLeast(8), floor: floorLine},
}

// measured are the figures without a goal.
var measured = slicesOf(
	plain("pair", "µs", "_us", "_p50_us", "_p99_us"),
	plain("link_pair", "µs", "_us", "_p50_us", "_p99_us"),
	plain("own_keys", "1/s", "_8_rate", "_64_rate", "_512_rate"),
	contention("busy_key"), contention("one_key"), contention("link_key"), contention("processes"),
	plain("turns", "µs", "_gap_us"),
	plain("herd", "1/s", "_4_per_s", "_192_per_s"),
	plain("pair", "commands", "_commands", "_executed"),
	plain("one_key", "commands", "_executed"),
	plain("processes", "commands", "_executed"),
	plain("http", "µs", "_us"), plain("grpc", "µs", "_us"),
	plain("freeze", "callers", "_lost"), plain("freeze", "ms", "_longest_ms"),
	heldPlan(),
	plain("turns", "commands", "_executed"),
)

// heldPlan leaves out what has a goal.
func heldPlan() []planned {
	var all []planned
	units := []string{"B", "goroutines", "scripts/s", "kB/s", "share"}
	for i, m := range heldMetrics(heldCounts, "bytes", "goroutines", "scripts", "traffic", "share") {
		if m != "held_10000_bytes" && m != "held_10000_goroutines" && m != "held_100000_share" {
			all = append(all, planned{id: m, metric: m, unit: units[i%len(units)]})
		}
	}
	return all
}

func plain(prefix, unit string, suffixes ...string) []planned {
	var all []planned
	for _, s := range suffixes {
		all = append(all, planned{id: prefix + s, metric: prefix + s, unit: unit})
	}
	return all
}

func contention(prefix string) []planned {
	return slicesOf(plain(prefix, "1/s", "_per_s"), plain(prefix, "share", "_changes"), plain(prefix, "µs", "_gap_us", "_gap_p99_us"),
		plain(prefix, "ms", "_longest_ms"), plain(prefix, "callers", "_starved"))
}

func slicesOf(lists ...[]planned) []planned {
	var all []planned
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// reasons say why a goal is not met, by id, where that was looked into. They are written into the figures of a run that misses the goal.
var reasons = map[string]string{
	"own_keys_64":             gatheringCost,
	"jvm_rate":                gatheringCost,
	"one_key_rate":            askedOnce,
	"jvm_one_key":             away,
	"uncontended_default":     waitedFor,
	"uncontended_link":        "the scripts of a lock that others can re-enter, renew and wait for do more than `SET NX PX`",
	"herd_rate":               "of 192 that poll, somebody asks soon after a release, and herd_longest is what that costs; here the one that is woken has to wake up",
	"key_ns":                  "a template finds the fields by reflection; " + absolute,
	"guard_ns":                "a guard also measures, and tells the work when it loses the lock; " + absolute,
	"held_redis_share":        absolute,
	"uncontended_floor_ratio": noted,
	"uncontended_pair":        noted,
	"turns":                   noted + ", is in series with the other side's call",
}

const (
	noted         = "what a client notes about a hold, beside the scripts"
	waitedFor     = "a client with go-redis' defaults heeds no deadline, so another goroutine waits in place of the caller: ContextTimeoutEnabled saves that, and redisson.Open sets it"
	absolute      = "this is a time and no ratio, and was met on machines where `fmt.Sprintf` makes a key from two fields in some 100 ns"
	gatheringCost = "what a hold is beside its scripts, a context, its place in the watchdog and a caller to be woken, takes a third of the time"
	askedOnce     = "a lock that passes on within a process asks Redis once, so that each release knows whether it was there"
	away          = "64 callers that are away for 2 ms after each turn take 32,000 a second at most, however fast the lock is"
)
