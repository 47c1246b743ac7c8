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

	fairAcquire = taking("7154d8add75abe7be6d8ab8d42a41b1786eab891", "fair_prelude", "fair_acquire")
	fairRelease = load("38f014a21d7e2016b0ef6ba00efd3ddca5f9765d", "fair_prelude", "fair_release")
	fairForce   = listing("b29fc3279b41c65c5154ae3aea23161e840388d1", "force_prelude", "fair_prelude", "fair_force")

	readAcquire  = taking("420ff70fc9be1c3a957896422125938555045603", "read_acquire")
	writeAcquire = taking("aa39f88482a3c560f41d5c437dd5bc178611b4f1", "write_acquire")
	rwUpdate     = load("01cb89e6aa0e8cecce9e7cfe34782e7e17cf5d50", "rw_update")
	rwRelease    = load("5b76be3a01165a7e7a713344d3206653d09f9394", "rw_release")
	rwForce      = listing("786d4e27163492fa919a51070f492cc79409b727", "force_prelude", "rw_force")

	permitAcquire = taking("09aada61e683140f62c4032f54c9f91a078f9233", "permit_prelude", "permit_acquire")
	permitUpdate  = load("bd6670b1ed090f56f33909cac24cfe6e6d650934", "permit_prelude", "permit_update")
	permitRelease = load("df6b1cad0bce5595391b39f868170c272176dda4", "permit_prelude", "permit_release")

	semaphoreAcquire = load("8af3e7a05bbdfac1c503e5059b9cb27184d01eb9", "receipt", "semaphore_acquire")
	semaphoreCancel  = load("82ef87356aa0d2ba1d7c7d9600aea7264565212f", "semaphore_cancel")
	semaphoreRelease = load("f954067df23774aaa4820b3997e0d7d363c4cf2c", "receipt", "semaphore_release")
	semaphoreSet     = load("ce161d71f9502eb8797a9745f49c84cedd6d0395", "receipt", "semaphore_set")
	semaphoreAdd     = load("5dbe0853981b2c336ce279008819920638e95a0b", "receipt", "semaphore_add")
	semaphoreDrain   = load("1e554d1f0efe0842893efde2022656b7618d4b5a", "receipt", "semaphore_drain")

	permitsAcquire = load("251e23cd0bcaf0bf544db7b4231f606f8ff282df", "receipt", "permits", "permits_acquire")
	permitsCancel  = load("49aa40758320caa42c47edc70e0a89b6685cc615", "permits", "permits_give", "permits_cancel")
	permitsRelease = load("0610caf03c99b9e7e78699e5d3e11c6777ddc1b7", "receipt", "permits", "permits_give", "permits_release")
	permitsCount   = load("dcb507c63fe9739ed6db570bd67f49b4bfe7c20f", "permits", "permits_count")
	permitsLease   = load("307a0ab0d38f88eb8b3f212d5dc9ca9ca63e0eb5", "permits", "permits_lease")
	permitsUpdate  = load("f23a5104508e836bd22833a84dd6345ac49cb760", "receipt", "permits", "permits_update")
	permitsSet     = load("4217b844bdd41057e4c4375b70fee6b83454ef1f", "receipt", "permits", "permits_set")

	latchSet    = load("1e97187a75e5607f7f6e543428e4713e71b1fa3c", "receipt", "countdownlatch_set")
	latchDown   = load("317bb2ee3d16144ecf835167d92e2a2bf4202372", "receipt", "countdownlatch_down")
	latchDelete = load("055b3e35e5de76e40da19ba25d1c4abb7cbd3d68", "receipt", "countdownlatch_delete")

	rateAcquire   = load("441f15bda48da4c81e56263bf931dd251540e3d6", "receipt", "rate_permits", "rate", "rate_acquire")
	rateCancel    = load("0f95cc637743c494d9b8eebfe9846c43345dd719", "rate_permits", "rate", "rate_cancel")
	rateRelease   = load("75fa45f55db6f3b25c6ec34a8a3409f90bb6e81d", "receipt", "rate_permits", "rate", "rate_release")
	rateAvailable = load("16aa92e87e96dfcfcd5055bf3289a91651a725e0", "rate_permits", "rate", "rate_available")
	rateSet       = load("8029e16eeec6ff73083e9055ba9ae37caae0e2ef", "receipt", "rate_permits", "rate_set")
	rateGet       = load("0283d93049d38afc71baf92dcd195322c60d9dcf", "rate_get")

	newestAnnounce = load("be8e6e5789637debee76156619847410df52f95a", "receipt", "newest_announce")
	newestLook     = load("4b89d836fa4bac4b9a0afb238dbeacbbde106891", "newest_look")

	anyForce   = listing("7b0f5c30c80964fe8ba8fe0d40282ab293565066", "force_prelude", "object", "fair_prelude", "any_force")
	clientShow = load("2f0423ef6c1b8bfffefedc97131e01c332b45bf3", "client_show")
	clientWho  = listing("4dc72c8515192ed23b79aabef8d2bda65376b820", "client_who")
	tell       = load("a852117c7d6694b4cb6ebf5b1e1ae7436d7b1025", "tell")

	inspect      = listing("be212f5e493c07868e6ec0ac6d7343b8309bb329", "object", "inspect")
	scan         = listing("2a38b923936e2699d3b9efb5639e101a7c7270d4", "object", "scan")
	size         = load("805db38bde265cfd534cd5c6adb33f20e779a770", "size")
	listChannels = listing("df020f1654d625ec43f61aaefaec7c2f19ac31f9", "channels")

	peek       = load("2aad38dc172774b7d8962fa9ee7d4f9ce4944849", "peek")
	number     = load("514227757269efcf0f6f83bb61fc7f7388297f8a", "number")
	deleteKeys = load("758695b5a941c1f3243c102ee5986c6a0214b894", "receipt", "delete")
)

// many are scripts that do for many what a script does for one.
var many = map[*script]*script{
	lockUpdate:    manyOf("23c0b33e0b4c3567b7e2dcf7af4cad0e0b5900a1", lockUpdate),
	lockRelease:   manyOf("2ff213046c1cb2ba024fae25685802ed90f4519b", lockRelease),
	fairRelease:   manyOf("5964bb6eb1eb28653cdaf23342b5fa7963345436", fairRelease),
	rwRelease:     manyOf("057bd9ace54b9f1949126c33906ab61e2b504433", rwRelease),
	permitRelease: manyOf("2fb80cfd37b44c412bb3978be0369f8d2ceb0d23", permitRelease),
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
