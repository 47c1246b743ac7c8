package checkup

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The limits of a check of one server. They are those of a lock's needs, and not those of a cache.
const (
	slowPing     = 10 * time.Millisecond  // in the middle: each lock costs two of these
	slowestPing  = 100 * time.Millisecond // of 99 in a hundred
	mostDrift    = time.Second            // deadlines in fair queues and ends of permits are by the server's clock
	leastVersion = 6.2
)

func (s *server) latency() {
	var took []time.Duration
	for range s.o.Pings {
		start := time.Now()
		if err := s.do("ping").Err(); err != nil && !denied(err) {
			s.report(Fail, "latency", fmt.Sprintf("a PING failed after %v: %v", time.Since(start).Round(time.Microsecond), err), "")
			return
		}
		took = append(took, time.Since(start))
		if s.ctx.Err() != nil {
			return
		}
	}
	slices.Sort(took)
	half, most := took[len(took)/2], took[(len(took)*99)/100]
	text := fmt.Sprintf("PING takes %v, p99 %v, of %d", half.Round(time.Microsecond), most.Round(time.Microsecond), len(took))
	switch {
	case half > slowPing:
		s.report(Warn, "latency", text, "a lock and its release cost two of these: move the program nearer to Redis; INFO commandstats and SLOWLOG GET show who keeps the server busy")
	case most > slowestPing:
		s.report(Warn, "latency", text, "something stops the server at times: SLOWLOG GET, LATENCY DOCTOR")
	default:
		s.report(OK, "latency", text, "")
	}
}

// clock compares the clocks. The answer is as old as half a round trip at most.
func (s *server) clock() {
	start := time.Now()
	list, err := s.do("time").Slice()
	trip := time.Since(start)
	if err != nil {
		s.mayNot("clock", "TIME", err)
		return
	}
	var parts [2]int64
	for i := range min(len(list), 2) {
		parts[i], _ = strconv.ParseInt(fmt.Sprint(list[i]), 10, 64)
	}
	off := time.Unix(parts[0], parts[1]*1000).Sub(start.Add(trip / 2))
	text := fmt.Sprintf("the server's is %v off from here, give or take %v", off.Round(time.Microsecond), (trip / 2).Round(time.Microsecond))
	if off.Abs()-trip/2 > mostDrift {
		s.report(Warn, "clock", text, "let NTP set both clocks: Redisson counts the deadlines of fair locks and permits by its host's, Latchkey by the server's; leases of other locks are not affected")
		return
	}
	s.report(OK, "clock", text, "")
}

func (s *server) version() {
	name, version := "Redis", s.info["redis_version"]
	if v := s.info["valkey_version"]; v != "" {
		name, version = "Valkey", v
	}
	parts := strings.SplitN(version, ".", 3)
	number, err := strconv.ParseFloat(strings.Join(parts[:min(2, len(parts))], "."), 64)
	text := fmt.Sprintf("%s %s, %s", name, version, cmp.Or(s.info["redis_mode"], "unknown mode"))
	switch {
	case err != nil:
		s.report(Warn, "version", fmt.Sprintf("the server does not say its version: %q", version), "")
	case number < leastVersion:
		s.report(Fail, "version", text, "upgrade to 6.2 or later: nothing older is tested")
	default:
		s.report(OK, "version", text, "")
	}
}

// memory looks for eviction: a lock is a key with a time to live, and so among the first to be evicted.
func (s *server) memory() {
	policy, limit := s.info["maxmemory_policy"], s.info["maxmemory"]
	if policy == "" {
		s.report(Unknown, "eviction", "the server does not say its maxmemory-policy", "")
		return
	}
	used, _ := strconv.ParseFloat(s.info["used_memory"], 64)
	most, _ := strconv.ParseFloat(limit, 64)
	const do = "CONFIG SET maxmemory-policy noeviction"
	switch {
	case policy != "noeviction" && most > 0:
		s.report(Fail, "eviction", fmt.Sprintf("maxmemory-policy is %s: when memory is short, locks are evicted while they are held", policy),
			do+"; CONFIG REWRITE; keep caches in another Redis")
	case policy != "noeviction":
		s.report(Warn, "eviction", fmt.Sprintf("maxmemory-policy is %s, which evicts held locks as soon as somebody sets maxmemory", policy), do+"; CONFIG REWRITE")
	case most > 0 && used > 0.9*most:
		s.report(Warn, "eviction", fmt.Sprintf("noeviction, but %.0f%% of maxmemory are used: at 100%% no lock can be taken (OOM)", 100*used/most), "CONFIG SET maxmemory with more, or remove what else is in this Redis")
	default:
		s.report(OK, "eviction", "maxmemory-policy is noeviction", "")
	}
}

func (s *server) persistence() {
	aof, rdb := s.info["aof_enabled"] == "1", ""
	save, known := s.config("save")
	if known && save != "" {
		rdb = "snapshots (save " + save + ")"
	}
	switch {
	case s.info["aof_last_write_status"] == "err", s.info["rdb_last_bgsave_status"] == "err":
		s.report(Fail, "persistence", "the last write to disk failed: the server refuses all writes (MISCONF)", "see the server's log; free space on its disk, then BGSAVE")
	case aof:
		fsync, known := s.config("appendfsync")
		if known {
			fsync = ", fsync " + fsync
		}
		s.report(OK, "persistence", "append-only file"+fsync+": a restart keeps the locks, but for those of the last moment", "")
	case rdb != "":
		s.report(Warn, "persistence", rdb+" only: a restart loses the locks taken since the last one, and brings back older ones", "CONFIG SET appendonly yes; CONFIG REWRITE")
	case !known:
		s.report(Warn, "persistence", "no append-only file; this user may not ask for snapshots: a restart loses locks", "CONFIG SET appendonly yes; CONFIG REWRITE")
	default:
		s.report(Warn, "persistence", "none: a restart loses all locks while they are held", "CONFIG SET appendonly yes; CONFIG REWRITE")
	}
}

func (s *server) replication() {
	if role := s.info["role"]; role != "master" {
		s.report(Fail, "replicas", fmt.Sprintf("this server is a %s of %s:%s: it refuses writes, or loses them", role, s.info["master_host"], s.info["master_port"]),
			"put the master's address, or that of the sentinels with master_name, into the URL")
		return
	}
	n, _ := strconv.Atoi(s.info["connected_slaves"])
	lag, least := 0, math.MaxInt
	for i := range n {
		for part := range strings.SplitSeq(s.info["slave"+strconv.Itoa(i)], ",") {
			if text, ok := strings.CutPrefix(part, "lag="); ok {
				seconds, _ := strconv.Atoi(text)
				lag, least = max(lag, seconds), min(least, seconds)
			}
		}
	}
	if former := s.info["master_replid2"]; strings.Trim(former, "0") != "" {
		s.report(OK, "failover", "this server was promoted since it started, or had replicas and has read its snapshot: what was lost then, that lost, and no eviction", "")
	}
	switch {
	case n == 0:
		s.report(Warn, "replicas", "none: without this server there are no locks", "REPLICAOF on a second server, and Sentinel or a cluster to fail over; or accept that")
	case least > 2 && least < math.MaxInt:
		s.report(Fail, "replicas", fmt.Sprintf("%d, and none has answered for %ds: each acquire fails, not replicated", n, least),
			"look at the replica's log and network; CLIENT KILL TYPE replica lets this server go on without it")
	case lag > 10:
		s.report(Warn, "replicas", fmt.Sprintf("%d, but one is %ds behind: a failover to it loses as much", n, lag), "look at the replica's log and network")
	default:
		s.report(OK, "replicas", fmt.Sprintf("%d, at most %ds behind; one of them confirms each lock", n, lag), "")
	}
}
