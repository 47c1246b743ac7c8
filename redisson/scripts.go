package redisson

import (
	"embed"

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
var (
	lockAcquire = taking("4d89af8281209c5f5f90c1b6e479c421011019e2", "token", "lock_acquire")
	lockUpdate  = load("506f67a9e254a85e9a58eb9a915593ecb129a45b", "token", "lock_update")
	lockRelease = load("e0daf8f10ea9f1230713f903fba9fb4779533e8f", "lock_release")
	lockForce   = listing("18f8b1e32a96975cc890159a1b70a25597d4d56d", "force_prelude", "lock_force")
	lockState   = load("2630b3981cc3356751947e18c397a4f06fedc953", "lock_state")

	fairAcquire = taking("b88fcac2223cc09bf3fc4138523317da61abb5d1", "now", "fair_prelude", "fair_acquire")
	fairRelease = load("6c1273b8aff0e8cd43f840b8248fc7b280b0d60a", "now", "fair_prelude", "fair_release")
	fairForce   = listing("ec3313d74bebb9783ea62fc5a07284aedc420629", "force_prelude", "now", "fair_prelude", "fair_force")

	readAcquire  = taking("420ff70fc9be1c3a957896422125938555045603", "read_acquire")
	writeAcquire = taking("aa39f88482a3c560f41d5c437dd5bc178611b4f1", "write_acquire")
	rwUpdate     = load("01cb89e6aa0e8cecce9e7cfe34782e7e17cf5d50", "rw_update")
	rwRelease    = load("5b76be3a01165a7e7a713344d3206653d09f9394", "rw_release")
	rwForce      = listing("786d4e27163492fa919a51070f492cc79409b727", "force_prelude", "rw_force")

	permitAcquire = taking("eb40a7009c5afc9532ae053e80bac0ebc67abf16", "now", "permit_prelude", "permit_acquire")
	permitUpdate  = load("ecbbe72d3b78bc7113c2767601ce7e40066711c8", "now", "permit_prelude", "permit_update")
	permitRelease = load("a1547d88a1a132d649f0e48434c42ed298ba5ace", "now", "permit_prelude", "permit_release")

	semaphoreAcquire = load("8af3e7a05bbdfac1c503e5059b9cb27184d01eb9", "receipt", "semaphore_acquire")
	semaphoreCancel  = load("82ef87356aa0d2ba1d7c7d9600aea7264565212f", "semaphore_cancel")
	semaphoreRelease = load("f954067df23774aaa4820b3997e0d7d363c4cf2c", "receipt", "semaphore_release")
	semaphoreSet     = load("ce161d71f9502eb8797a9745f49c84cedd6d0395", "receipt", "semaphore_set")
	semaphoreAdd     = load("5dbe0853981b2c336ce279008819920638e95a0b", "receipt", "semaphore_add")
	semaphoreDrain   = load("1e554d1f0efe0842893efde2022656b7618d4b5a", "receipt", "semaphore_drain")

	permitsAcquire = load("b579149cd407292ddbf29438c0e91137af35e6d0", "receipt", "now", "permits", "permits_acquire")
	permitsCancel  = load("682ae0244d81e7c59443da19e23526a59a8e8480", "now", "permits", "permits_give", "permits_cancel")
	permitsRelease = load("558ced4c4e91b6c4063a528f11e9d4ec8efe0bd1", "receipt", "now", "permits", "permits_give", "permits_release")
	permitsCount   = load("11eca424a011e5fb991d16db285b301f4bbf3675", "now", "permits", "permits_count")
	permitsLease   = load("215818460066eb24aa93ad10d4dc8dcd4297c952", "now", "permits", "permits_lease")
	permitsUpdate  = load("2981f06f668e4a42b9b88d42cc8e9eb532f2f4fa", "receipt", "now", "permits", "permits_update")
	permitsSet     = load("a7f632aba55d9cc5c87eaae253a334923a6e0cbf", "receipt", "now", "permits", "permits_set")

	latchSet    = load("1e97187a75e5607f7f6e543428e4713e71b1fa3c", "receipt", "countdownlatch_set")
	latchDown   = load("317bb2ee3d16144ecf835167d92e2a2bf4202372", "receipt", "countdownlatch_down")
	latchDelete = load("055b3e35e5de76e40da19ba25d1c4abb7cbd3d68", "receipt", "countdownlatch_delete")

	rateAcquire   = load("46d4c5ca68d34d3934d8efe0fa90b04146a96351", "receipt", "rate_permits", "now", "rate", "rate_acquire")
	rateCancel    = load("e9e9ab0ef38d6f159f12486c43b52327fd999609", "rate_permits", "now", "rate", "rate_cancel")
	rateRelease   = load("0a227d62398c7629577916ed4689e4cbb4cc08d6", "receipt", "rate_permits", "now", "rate", "rate_release")
	rateAvailable = load("4f51e47ee467cc23b889e974b2a2d950fe885fdf", "rate_permits", "now", "rate", "rate_available")
	rateSet       = load("8029e16eeec6ff73083e9055ba9ae37caae0e2ef", "receipt", "rate_permits", "rate_set")
	rateGet       = load("0283d93049d38afc71baf92dcd195322c60d9dcf", "rate_get")

	newestAnnounce = load("be8e6e5789637debee76156619847410df52f95a", "receipt", "newest_announce")
	newestLook     = load("4b89d836fa4bac4b9a0afb238dbeacbbde106891", "newest_look")

	anyForce   = listing("8a1dbf5abf885e9bce19edb2776d285e5d65d9b0", "force_prelude", "object", "now", "fair_prelude", "any_force")
	clientShow = load("2f0423ef6c1b8bfffefedc97131e01c332b45bf3", "client_show")
	clientWho  = listing("4dc72c8515192ed23b79aabef8d2bda65376b820", "client_who")
	tell       = load("a852117c7d6694b4cb6ebf5b1e1ae7436d7b1025", "tell")

	inspect      = listing("54e4902b9f45fa88a3fa96c95b46347ba55233f9", "object", "now", "inspect")
	scan         = listing("2a38b923936e2699d3b9efb5639e101a7c7270d4", "object", "scan")
	size         = load("805db38bde265cfd534cd5c6adb33f20e779a770", "size")
	listChannels = listing("df020f1654d625ec43f61aaefaec7c2f19ac31f9", "channels")

	peek       = load("2075e6d7d45e875d83b810409ccea72564b6486e", "now", "peek")
	number     = load("514227757269efcf0f6f83bb61fc7f7388297f8a", "number")
	deleteKeys = load("758695b5a941c1f3243c102ee5986c6a0214b894", "receipt", "delete")
)

// many are scripts that do for many what a script does for one.
var many = map[*script]*script{
	lockUpdate:    manyOf("23c0b33e0b4c3567b7e2dcf7af4cad0e0b5900a1", lockUpdate),
	lockRelease:   manyOf("2ff213046c1cb2ba024fae25685802ed90f4519b", lockRelease),
	fairRelease:   manyOf("8e0ef6a766f271fae93b87a48d18859aa4a53708", fairRelease),
	rwRelease:     manyOf("057bd9ace54b9f1949126c33906ab61e2b504433", rwRelease),
	permitRelease: manyOf("4ff20bd6b3da0c115573d557cfdbe27cb1814ad2", permitRelease),
}

func manyOf(sha string, one *script) *script {
	rest := load("", "many")
	return transport.NewScript("many_"+one.Name, "local function one(KEYS, ARGV)\n"+one.Source+rest.Source, sha)
}

// load joins the files of a script. The digests are constants, held by a test.
func load(sha string, files ...string) *script {
	source := ""
	for _, name := range files {
		text, err := sources.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic("redisson: " + err.Error()) // a name above is wrong, as any test shows
		}
		source += string(text)
	}
	return transport.NewScript(files[len(files)-1], source, sha)
}

func taking(sha string, files ...string) *script {
	s := load(sha, files...)
	s.Takes = true
	return s
}

func listing(sha string, files ...string) *script {
	s := load(sha, files...)
	s.Lists = true
	return s
}
