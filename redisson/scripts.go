package redisson

import (
	"embed"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/redisson/internal/transport"
)

type (
	script = transport.Script
	call   = transport.Call
	answer = transport.Answer
)

//go:embed lua/*.lua
var sources embed.FS

// All scripts. Some begin with parts that they share.
//
// A server that was a master, and is a replica now, runs a script as far as its first write, and knows only what was.
// So each script that says that a lock is held or gone writes before it answers, if need be nothing: a replica refuses
// the write, and a fresh connection repeats the question. That write is its last: after the first one, Redis does not
// look any more whether there is memory.
var (
	lockAcquire = takes(load("e178e45ed0d4a7f843a87e22962fdd7be7cb078a", "lease", "token", "lock_acquire"))
	lockUpdate  = load("6f6e74d7ec9f3620cd6ad79f6e3659e0e3af5740", "lease", "token", "lock_update")
	lockWait    = takes(define("725cb4b060aab583d6aee8b1fe2cd1fd195b9026", "lock_wait",
		source("wake")+function("local take", lockAcquire)+source("lock_wait")))
	lockPass    = load("f30a81a584966a653d324bab5e6b2200c370c4a7", "wake", "lock_pass")
	lockRelease = load("5e769e64bba8a41de8b69b5a061d7bef23382021", "wake", "lock_release")
	lockHolder  = lists(load("830984768d1d3b63aa8a011ed4761ecae2a1f16a", "lock_holder"))
	lockState   = load("2630b3981cc3356751947e18c397a4f06fedc953", "lock_state")

	fairAcquire = lists(takes(load("9ac58d0724337efe8f6421d277412a754051dbc6", "lease", "now", "fair_prelude", "fair_acquire")))
	fairRelease = load("43c068800ecb10b257971480db94bc21bf0fd0ad", "now", "fair_prelude", "fair_release")
	fairOwn     = lists(load("698082a4618d96272144f60a5aa4b8c3bc42bb67", "now", "fair_prelude", "fair_own"))

	readAcquire  = takes(load("3c7ca368105828065670881c3c9e0cc3ca35c3c8", "lease", "read_acquire"))
	writeAcquire = takes(load("41edab012edcf378907a967e406583f09dc70304", "lease", "write_acquire"))
	rwUpdate     = load("d878c56ade082e91f3040931e99ff40c19323b20", "lease", "rw_update")
	rwRelease    = load("17292626b12523ee8abb3a466fbadcc131e51ef6", "rw_release")

	permitAcquire = takes(define("ec48da8a96cd02df79ecaa76904aa717bd45260b", "permit_acquire",
		source("now")+"local pace = function(KEYS, ARGV)\n"+source("rate", "permit_rate")+"end\n"+source("permit_prelude", "permit_acquire")))
	permitWait = takes(define("5253e83e3442bfcba7fc52f5f0c0b5bafec9d50d", "permit_wait",
		source("wake")+function("local take", permitAcquire)+source("lock_wait")))
	permitPass    = load("ac7dce68ec115413bd6d636c3ed1ec19ba30f9a3", "wake", "now", "permit_prelude", "permit_pass")
	permitUpdate  = load("0b07951e2ff5bb89d1a4f76775e0796e7155399c", "now", "permit_prelude", "permit_update")
	permitRelease = load("89ea2d2c31f9c674d767c8d1d49900362c58d428", "wake", "now", "permit_prelude", "permit_release")

	semaphoreAcquire = load("4e0da86d2e9de3876f07a8938012c77421aaf10c", "receipt", "semaphore_acquire")
	semaphoreRelease = load("ca6dda2d44275496bd232be4489ffd5c051e617f", "receipt", "semaphore_release")
	semaphoreAdd     = load("5dbe0853981b2c336ce279008819920638e95a0b", "receipt", "semaphore_add")

	permitsAcquire = load("cd20222c7b76d0b4b2218fdf20df5325dcb0d366", "receipt", "now", "permits", "permits_acquire")
	permitsRelease = load("1ba5769d6ebed4a7fb2c7dd327a6a7b00ac571a6", "receipt", "now", "permits", "permits_release")
	permitsLook    = load("268f6c4784ed8424721e5252d40362b14265e1b9", "now", "permits", "permits_look")
	permitsUpdate  = load("2981f06f668e4a42b9b88d42cc8e9eb532f2f4fa", "receipt", "now", "permits", "permits_update")
	permitsSet     = load("b1eca270014ace8a1a42b92e823b89ae842be5ae", "receipt", "now", "permits", "permits_set")

	latchDown  = load("43dcb1e35c8b70850f44171acccc55ccfafc1f01", "receipt", "countdownlatch_down")
	latchAwait = load("c772f9e75fe8e1084724defeb926cad66a7aa65a", "countdownlatch_await")

	rateAcquire = load("69277674203509d73efc60d859951cd4cea4a23e", "receipt", "now", "rate", "rate_acquire")
	rateRelease = load("adbad6608460fff5fa2712cb99a598a513cdd433", "receipt", "now", "rate", "rate_release")
	rateLook    = load("59dcb362d5cdf59005d136a125b517924b90b220", "now", "rate", "rate_look")
	rateSet     = load("56659b4b0d9a31e75779f7f1ec0dae9463071f7e", "receipt", "now", "rate", "rate_set")

	newestAnnounce = load("be8e6e5789637debee76156619847410df52f95a", "receipt", "newest_announce")
	newestLook     = load("260cfc04f25cf79fb6285e8f9f546138326a1b1d", "newest_look")

	force      = lists(load("1c49732046aae9dad0dd9a8713c31bc3d2063cec", "object", "now", "fair_prelude", "wake", "force"))
	clientShow = load("cff0d4a9acda96bd9ac86fe635ed5e0cae060422", "client_show")
	clientWho  = lists(load("cf8ef35280474a6706c6c012b1881d6f9c84865c", "client_who"))
	freesAdd   = load("170cfd22b9e41aa29a79c423ddb704501a490c9d", "frees_add")
	freesLook  = lists(load("f6d0dadcc6ee873a8581d5c1f3d36a8648802208", "frees_look"))
	tell       = load("a852117c7d6694b4cb6ebf5b1e1ae7436d7b1025", "tell")

	inspect = lists(load("46ee9c3984962489ad5a4027699621685f2fbde2", "object", "now", "inspect"))
	scan    = lists(load("b7b6c3314a94fc77ef0a255a01225da1474fa4fa", "object", "scan"))
	size    = load("805db38bde265cfd534cd5c6adb33f20e779a770", "size")

	reserve = takes(define("e924ce360911e142cd8c47361764ac3e6656d7c1", "reserve",
		function("local look", peek)+takers()+source("reserve")))
	peek       = load("9d31358205c3bba0424baac9ce9a88c5e6bbc1c9", "now", "peek")
	numberSet  = load("5251d33c9e622974eec37439e9be7546e224c034", "receipt", "number_set")
	number     = load("514227757269efcf0f6f83bb61fc7f7388297f8a", "number")
	foreign    = load("fff80e4b8cd319761ff336ceaaa275f9a73d0cdd", "foreign")
	sign       = load("5a1f6cba0347a5963f9349d844b5f8467adf7ef6", "sign")
	deleteKeys = load("fe9c07c71a46978a45baca2087c3e4196f3b5ffb", "receipt", "delete")
)

// many maps scripts for one lock to those that do the same for many.
var many = map[*script]*script{
	lockUpdate:    manyOf("5e78d3323da9b06515e784e04eb7f5f5bc9b0a62", lockUpdate),
	lockRelease:   manyOf("2097d1a5081c8c19d6d745f2cb22d16296fbb081", lockRelease),
	fairRelease:   manyOf("22d275389fa7368f9916bb0535230f0ce22f34ef", fairRelease),
	rwRelease:     manyOf("07c9fbf44bdb9cf4347308a406d3622572c47ede", rwRelease),
	permitRelease: manyOf("d717cc862461c78ed7cf5d6666fa9057f7610a58", permitRelease),
}

func manyOf(sha string, one *script) *script {
	return define(sha, "many_"+one.Name, function("local one", one)+source("many"))
}

// loaded are all scripts.
var loaded []*script

// define makes a script. The digests are constants, held by a test.
func define(sha, name, text string) *script {
	s := transport.NewScript(name, text, sha)
	loaded = append(loaded, s)
	return s
}

// load joins the files of a script, which has the name of the last one.
func load(sha string, files ...string) *script {
	return define(sha, files[len(files)-1], source(files...))
}

func source(files ...string) (source string) {
	for _, name := range files {
		text, err := sources.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic("redisson: " + err.Error()) // a name above is wrong, as any test shows
		}
		source += string(text)
	}
	return source
}

// function sets a variable of Lua to a script that is a function there.
func function(variable string, s *script) string {
	return variable + " = function(KEYS, ARGV)\n" + s.Source + "end\n"
}

// takers are the scripts that take one lock, by its kind.
func takers() string {
	return "local takes = {}\n" +
		function("takes.exclusive", lockAcquire) +
		function("takes.fair", fairAcquire) +
		function("takes.read", readAcquire) +
		function("takes.write", writeAcquire) +
		function("takes.permit", permitAcquire)
}

func takes(s *script) *script {
	s.Takes = true
	return s
}

func lists(s *script) *script {
	s.Lists = true
	return s
}

// The names of all keys and channels. They are the contract with Redisson: a golden test holds them.

// prefixed is Redisson's name for a thing that belongs to the lock name, built so that both share a Redis Cluster slot.
func prefixed(prefix, name string) string {
	if strings.Contains(name, "{") {
		return prefix + ":" + name
	}
	return prefix + ":{" + name + "}"
}

// suffixBase is what a suffix is added to, after a colon, and what follows a prefix. The test for a brace is Redisson's own: a closing one is not
// looked for.
func suffixBase(name string) string {
	if strings.Contains(name, "{") {
		return name
	}
	return "{" + name + "}"
}

// suffixed is Redisson's name for a key that belongs to the object name, in the same slot.
func suffixed(name, suffix string) string { return suffixBase(name) + ":" + suffix }

// searchKey begins the keys by which a search finds its way to a master. They are never made.
const searchKey = "latchkey_scan:"

// lockChannel is where the release of a plain lock is published, with payload "0". A fair lock adds a colon and the holder
// id of the waiter whose turn it is.
func lockChannel(name string) string { return prefixed("redisson_lock__channel", name) }

// fairQueue is the list of holder ids that wait for a fair lock, fairDeadlines the sorted set of the server times, in ms,
// after which each of them counts as dead.
func fairQueue(name string) string     { return prefixed("redisson_lock_queue", name) }
func fairDeadlines(name string) string { return prefixed("redisson_lock_timeout", name) }

// tokenKey is the counter of a fenced lock's tokens.
func tokenKey(name string) string { return prefixed("redisson_lock_token", name) }

// rwChannel is where the end of reading ("0") and of writing ("1") is published.
func rwChannel(name string) string { return prefixed("redisson_rwlock", name) }

// readTimeout is the key that lives as long as a reader's lease: Redisson's for the reader's first hold.
func readTimeout(name, holder string) string { return suffixed(name, holder) + ":rwlock_timeout:1" }

// semaphoreChannel is where permits that became free are published, with their number, for both kinds of semaphores.
func semaphoreChannel(name string) string { return prefixed("redisson_sc", name) }

// permitsKey is the sorted set of the permits that are taken from an expirable semaphore.
func permitsKey(name string) string { return suffixed(name, "timeout") }

// permitsMark says that a semaphore was made by an Acquire of a lock.Permit, and goes with its last permit. Redisson does not
// know it.
func permitsMark(name string) string { return prefixed("latchkey_permits", name) }

// latchChannel is where the end of a count is published with payload "0", and a new or removed count with "1". Redisson
// adds braces here to any name, also to one with a hash tag of its own.
func latchChannel(name string) string { return "redisson_countdownlatch__channel__{" + name + "}" }

// rateName is the rate limiter of a lock.Permit of that name.
func rateName(name string) string { return suffixed(name, "rate") }

// rateKeys are the keys of a rate limiter: its own, and what is left and what was taken, by all clients together and by this one.
func rateKeys(name, client string) []string {
	value, permits := suffixed(name, "value"), suffixed(name, "permits")
	return []string{name, value, permits, suffixed(value, client), suffixed(permits, client)}
}

// newestName is the key with the client that has the newest of the calls that are announced at a lock, and the channel where another
// one is announced; see Client.Replace. Redisson does not know it.
func newestName(name string) string { return prefixed("latchkey_newest", name) }

// wakeName is the sorted set of those who wait for a plain or fenced lock, or for a permit; see lua/wake.lua. Redisson does not know it.
func wakeName(name string) string { return prefixed("latchkey_wake", name) }

// clientName is a client's own name: of the channel on which it learns that a lock was freed by hand, and of the key
// that says whose client it is, if it has a name. Redisson does not know it.
func clientName(client string) string { return "latchkey_client:" + client }

// freesName is the stream of the locks that were freed by hand; see Client.Frees.
const freesName = "latchkey_frees"

// receiptKey is the key with the outcome of a client's last request in a slot; see receipts. Redisson does not know it.
func receiptKey(name, client string, slot int) string {
	return prefixed("latchkey_receipt", name) + ":" + client + ":" + strconv.Itoa(slot)
}
