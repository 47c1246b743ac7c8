package redisson

import (
	"embed"

	"github.com/latchkey-go/latchkey/lock"
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
// A server that was a master, and is a replica now, runs a script as far as its first write, and knows of no more than what was. So no script
// says that a lock is held or gone without a write, if need be of nothing: a replica refuses it, and a fresh connection is asked. That write is
// its last: after the first one, Redis does not look any more whether there is memory.
var (
	lockAcquire = taking("b67c55bb74929a7948ead298cddf5f4b13d44878", "token", "lock_acquire")
	lockUpdate  = load("0dbdbaa45691b732db9b454a3cb10a5ca420fa4a", "token", "lock_update")
	lockWait    = waiting("243b8d881c4b58ba6bf7df90eeb461eec84cb9cf")
	lockPass    = load("4ef29ab2399abc274a7326eff563f8906edf190c", "wake", "lock_pass")
	lockRelease = load("6152fe7b7b2e88ca82d48fe5994c14ffe16d5def", "wake", "lock_release")
	lockState   = load("2630b3981cc3356751947e18c397a4f06fedc953", "lock_state")

	fairAcquire = lists(taking("0fd25b501f446dcfc4bf243ff84a91f8caaa8bda", "now", "fair_prelude", "fair_acquire"))
	fairRelease = load("a5475e5b4a6215b8bcde125a548b365a10f2fd28", "now", "fair_prelude", "fair_release")
	fairOwn     = listing("82306d3f91ba54061f26ccdf8bbe49e7af64e5ed", "now", "fair_prelude", "fair_own")

	readAcquire  = taking("380d6b5bbb11bc4e68ccd745179b79707da7a127", "read_acquire")
	writeAcquire = taking("514f08d46302dcc3300876055a60fcc530151e7b", "write_acquire")
	rwUpdate     = load("c8291d70cf0f627efc63e6ff99abc6c387fc1de9", "rw_update")
	rwRelease    = load("17292626b12523ee8abb3a466fbadcc131e51ef6", "rw_release")

	permitAcquire = taking("eb40a7009c5afc9532ae053e80bac0ebc67abf16", "now", "permit_prelude", "permit_acquire")
	permitUpdate  = load("ecbbe72d3b78bc7113c2767601ce7e40066711c8", "now", "permit_prelude", "permit_update")
	permitRelease = load("a1547d88a1a132d649f0e48434c42ed298ba5ace", "now", "permit_prelude", "permit_release")

	semaphoreAcquire = load("4e0da86d2e9de3876f07a8938012c77421aaf10c", "receipt", "semaphore_acquire")
	semaphoreRelease = load("ca6dda2d44275496bd232be4489ffd5c051e617f", "receipt", "semaphore_release")
	semaphoreAdd     = load("5dbe0853981b2c336ce279008819920638e95a0b", "receipt", "semaphore_add")

	permitsAcquire = load("b579149cd407292ddbf29438c0e91137af35e6d0", "receipt", "now", "permits", "permits_acquire")
	permitsRelease = load("1ba5769d6ebed4a7fb2c7dd327a6a7b00ac571a6", "receipt", "now", "permits", "permits_release")
	permitsCount   = load("11eca424a011e5fb991d16db285b301f4bbf3675", "now", "permits", "permits_count")
	permitsLease   = load("215818460066eb24aa93ad10d4dc8dcd4297c952", "now", "permits", "permits_lease")
	permitsUpdate  = load("2981f06f668e4a42b9b88d42cc8e9eb532f2f4fa", "receipt", "now", "permits", "permits_update")
	permitsSet     = load("a7f632aba55d9cc5c87eaae253a334923a6e0cbf", "receipt", "now", "permits", "permits_set")

	latchDown  = load("a883bfa36de7bc91ce428aa5c410a5efe79ccd78", "receipt", "countdownlatch_down")
	latchAwait = load("427289bfcab156567c592704c590664fbcb11b3b", "countdownlatch_await")

	rateAcquire = load("46d4c5ca68d34d3934d8efe0fa90b04146a96351", "receipt", "rate_permits", "now", "rate", "rate_acquire")
	rateRelease = load("d3cdc500a0df86119f07297339f297102d506bf0", "receipt", "rate_permits", "now", "rate", "rate_release")
	rateLook    = load("5fa5ef7571372b8fe68fc2ef84b0eebfb4ee6dba", "rate_permits", "now", "rate", "rate_look")
	rateSet     = load("8029e16eeec6ff73083e9055ba9ae37caae0e2ef", "receipt", "rate_permits", "rate_set")

	newestAnnounce = load("be8e6e5789637debee76156619847410df52f95a", "receipt", "newest_announce")
	newestLook     = load("260cfc04f25cf79fb6285e8f9f546138326a1b1d", "newest_look")

	force      = listing("dff9a7619074ca62c25f59e248e76afc63e508d9", "object", "now", "fair_prelude", "wake", "force")
	clientShow = load("941d4e75ec0fbca8bca6d091ab51ab048231bd42", "client_show")
	clientWho  = listing("4dc72c8515192ed23b79aabef8d2bda65376b820", "client_who")
	tell       = load("a852117c7d6694b4cb6ebf5b1e1ae7436d7b1025", "tell")

	inspect = listing("d313b4d42feeccc239ba3c07d86d5e69ade7be70", "object", "now", "inspect")
	scan    = listing("17b680987d1a4bdd7b42d81024f98bd4c7a2d7ac", "object", "scan")
	size    = load("805db38bde265cfd534cd5c6adb33f20e779a770", "size")

	reserve    = reserving("a03cb5e143704ba9131d93108148741282eb3889")
	peek       = load("75213556a05fac2a53c058ffbdb42b3f98aa37a4", "now", "peek")
	numberSet  = load("5251d33c9e622974eec37439e9be7546e224c034", "receipt", "number_set")
	number     = load("514227757269efcf0f6f83bb61fc7f7388297f8a", "number")
	sign       = load("5a1f6cba0347a5963f9349d844b5f8467adf7ef6", "sign")
	deleteKeys = load("fe9c07c71a46978a45baca2087c3e4196f3b5ffb", "receipt", "delete")
)

// many are scripts that do for many what a script does for one.
var many = map[*script]*script{
	lockUpdate:    manyOf("7a22bdc532c15d9290fe786afc9b177c3219f73f", lockUpdate),
	lockRelease:   manyOf("85029e556175d55b6085b155c2d813406b2d5ebe", lockRelease),
	fairRelease:   manyOf("565702bfb3bf36946731c67cf061f50986a4a194", fairRelease),
	rwRelease:     manyOf("28d53aad12a483c4bd52d3d8320b66ca1a7d813b", rwRelease),
	permitRelease: manyOf("4ff20bd6b3da0c115573d557cfdbe27cb1814ad2", permitRelease),
}

func manyOf(sha string, one *script) *script {
	return transport.NewScript("many_"+one.Name, "local function one(KEYS, ARGV)\n"+one.Source+source("many"), sha)
}

// loaded are all scripts but those of many.
var loaded []*script

// load joins the files of a script. The digests are constants, held by a test.
func load(sha string, files ...string) *script {
	s := transport.NewScript(files[len(files)-1], source(files...), sha)
	loaded = append(loaded, s)
	return s
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

func taking(sha string, files ...string) *script {
	s := load(sha, files...)
	s.Takes = true
	return s
}

// reserving is the script that takes several locks, of any kinds. Those for one stand in it as functions.
func reserving(sha string) *script {
	text := "local function look(KEYS, ARGV)\n" + source("now", "peek") + "end\nlocal takes = {}\n"
	for _, one := range []struct {
		kind lock.Kind
		*script
	}{{lock.Exclusive, lockAcquire}, {lock.Fair, fairAcquire}, {lock.Read, readAcquire}, {lock.Write, writeAcquire}, {lock.Permit, permitAcquire}} {
		text += "takes." + one.kind.String() + " = function(KEYS, ARGV)\n" + one.Source + "end\n"
	}
	s := transport.NewScript("reserve", text+source("reserve"), sha)
	s.Takes = true
	loaded = append(loaded, s)
	return s
}

// waiting is the script of those who wait for what lockAcquire takes, which stands in it as a function.
func waiting(sha string) *script {
	s := transport.NewScript("lock_wait", source("wake")+"local function take(KEYS, ARGV)\n"+lockAcquire.Source+"end\n"+source("lock_wait"), sha)
	s.Takes = true
	loaded = append(loaded, s)
	return s
}

func listing(sha string, files ...string) *script {
	return lists(load(sha, files...))
}

func lists(s *script) *script {
	s.Lists = true
	return s
}
