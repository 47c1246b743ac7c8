package redisson

import "embed"

// script is a Lua script with its SHA-1 digest. The digests are constants, held by a test: EVALSHA wants SHA-1, which a
// program in FIPS mode may not compute.
type script struct {
	source, sha string
	name        string // of its last file, which no other script has
	digest      any    // sha as an argument
	takes       bool   // what a lock is; replicas may have to confirm it
	lists       bool   // answers a list behind its integers
}

//go:embed lua/*.lua
var sources embed.FS

// All scripts. Some begin with parts that they share.
var (
	lockAcquire = taking("ec754b96a97524510acc5f5c113660f27ef2a115", "token", "lock_acquire")
	lockPass    = load("a6c74d7b0542171fe292499cf70facbcfcdb0128", "token", "lock_pass")
	lockUpdate  = load("fe4c73e591deea8bb63f8f37aa4f0e631da9fb5e", "token", "lock_update")
	lockRelease = load("80c4d12edc5bcf97fd22a953c566358bca1925e6", "lock_release")
	lockForce   = listing("a7fa89823eda027a2b2d96f4dbd1ea0aaca158ac", "holders", "lock_force")
	lockState   = load("2630b3981cc3356751947e18c397a4f06fedc953", "lock_state")

	fairAcquire = taking("7154d8add75abe7be6d8ab8d42a41b1786eab891", "fair_prelude", "fair_acquire")
	fairRelease = load("38f014a21d7e2016b0ef6ba00efd3ddca5f9765d", "fair_prelude", "fair_release")
	fairForce   = listing("d6ed4b9ad326aaa670a05516181812a993e4faf7", "holders", "fair_prelude", "fair_force")

	readAcquire  = taking("892eb7d4b95ef1ef480ccb3751f3817ee97a1a31", "read_acquire")
	writeAcquire = taking("aa39f88482a3c560f41d5c437dd5bc178611b4f1", "write_acquire")
	rwUpdate     = load("2d40cbde8148a93c42fc86fc26c018da7bf91c22", "rw_update")
	rwRelease    = load("5504b0c632d3436bfa076a9339f6def6167c740b", "rw_release")
	rwForce      = listing("b33206172c779faab0df5f938f8f8f055e7385d9", "holders", "rw_force")

	permitAcquire = taking("afe042230ef6083030b4fa913f539f82f25f9b85", "permit_prelude", "permit_acquire")
	permitUpdate  = load("7843f284b12438ffab180409a2114b673792f900", "permit_prelude", "permit_update")
	permitRelease = load("5d1611908ba99d83482fc01a14e4c51a3bda3c30", "permit_prelude", "permit_release")

	semaphoreAcquire = load("91366dec1f5cc46ed43e213ca91f4a829175ab55", "receipt", "semaphore_acquire")
	semaphoreCancel  = load("82ef87356aa0d2ba1d7c7d9600aea7264565212f", "semaphore_cancel")
	semaphoreRelease = load("41f8a303d76f72dbed9e37967aeb93c923bcfa63", "receipt", "semaphore_release")
	semaphoreSet     = load("06dc1dd6dbf12ec2a9001dcd167b240435a0138f", "receipt", "semaphore_set")
	semaphoreAdd     = load("ecf35f1311a9be67cf49e075a60ef3cb1edb5f85", "receipt", "semaphore_add")
	semaphoreDrain   = load("87e037bd126f9430db1ed1f1ca49c0454a188df0", "receipt", "semaphore_drain")

	permitsAcquire = load("c395d4c05b851d18f95beaeaa94e462c9cb63661", "receipt", "permits", "permits_acquire")
	permitsCancel  = load("49aa40758320caa42c47edc70e0a89b6685cc615", "permits", "permits_give", "permits_cancel")
	permitsRelease = load("8a9bb49d72170c97d96c5a07d56e86a10fcb0bd9", "receipt", "permits", "permits_give", "permits_release")
	permitsCount   = load("dcb507c63fe9739ed6db570bd67f49b4bfe7c20f", "permits", "permits_count")
	permitsLease   = load("307a0ab0d38f88eb8b3f212d5dc9ca9ca63e0eb5", "permits", "permits_lease")
	permitsUpdate  = load("f0d22c3a5a400d4f3e8bc519ae0b46650a50229d", "receipt", "permits", "permits_update")
	permitsSet     = load("4c7c92f3955efa6dbeb9572f91beee31c15800e3", "receipt", "permits", "permits_set")

	latchSet    = load("8366c477f58ba09cb98cccb2efaa836f4d36b573", "receipt", "countdownlatch_set")
	latchDown   = load("6a356633615d9daaa768d14f851d2c42a8e860ac", "receipt", "countdownlatch_down")
	latchDelete = load("512fc614d4dbabcde4b686944e9cf142dec0b5d9", "receipt", "countdownlatch_delete")

	rateAcquire   = load("4e4b547434cb32c726ab2bd57dadda18c146075c", "receipt", "rate_permits", "rate", "rate_acquire")
	rateCancel    = load("0f95cc637743c494d9b8eebfe9846c43345dd719", "rate_permits", "rate", "rate_cancel")
	rateRelease   = load("f5a7733ca9f8c8d543ab1334e23eb1a3de2edb54", "receipt", "rate_permits", "rate", "rate_release")
	rateAvailable = load("16aa92e87e96dfcfcd5055bf3289a91651a725e0", "rate_permits", "rate", "rate_available")
	rateSet       = load("0eee2f32f6a328d1c93b68e778f88ea2a1fc0532", "receipt", "rate_permits", "rate_set")
	rateGet       = load("0283d93049d38afc71baf92dcd195322c60d9dcf", "rate_get")

	newestAnnounce = load("daa6f8b3125174cde9f653be04d2dfc2f6157050", "receipt", "newest_announce")
	newestLook     = load("4b89d836fa4bac4b9a0afb238dbeacbbde106891", "newest_look")

	anyForce   = listing("17d62604c5ac2fe1c3468548440eaa062e4bbbb6", "holders", "object", "fair_prelude", "any_force")
	clientShow = load("2f0423ef6c1b8bfffefedc97131e01c332b45bf3", "client_show")
	clientWho  = listing("e3a47ec28d2f159ebacbd6a3fbf33ba97aa29aab", "client_who")
	tell       = load("a852117c7d6694b4cb6ebf5b1e1ae7436d7b1025", "tell")

	inspect      = listing("52d2af59494a2e598007f7c304def4b939725f25", "object", "inspect")
	scan         = listing("f62480268397ecc1a154264f1d1fb0ac9c356c27", "object", "scan")
	listChannels = listing("ddae0f09c42f2054cabe29a307ed2592932b3701", "channels")

	peek       = load("2aad38dc172774b7d8962fa9ee7d4f9ce4944849", "peek")
	number     = load("b6fb9adf2cdba5a8e1a5cbf903d601e974b0c9ab", "number")
	deleteKeys = load("1e1b6edbba4766e6e02ac02ac108afa20ea465ad", "receipt", "delete")
)

// load joins the files of a script.
func load(sha string, files ...string) *script {
	s := &script{sha: sha, digest: sha, name: files[len(files)-1]}
	for _, name := range files {
		text, err := sources.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic("redisson: " + err.Error()) // a name above is wrong, as any test shows
		}
		s.source += string(text)
	}
	return s
}

func taking(sha string, files ...string) *script {
	s := load(sha, files...)
	s.takes = true
	return s
}

func listing(sha string, files ...string) *script {
	s := load(sha, files...)
	s.lists = true
	return s
}
