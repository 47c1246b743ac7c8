package redisson

import "embed"

// script is a Lua script with its SHA-1 digest. The digests are constants, held by a test: EVALSHA wants SHA-1, which a
// program in FIPS mode may not compute.
type script struct {
	source, sha string
	takes       bool // what a lock is; replicas may have to confirm it
}

//go:embed lua/*.lua
var sources embed.FS

// All scripts. Some begin with parts that they share.
var (
	lockAcquire = taking("a676761118f81c2ce2406649cd3025542c8ea027", "lock_acquire")
	lockUpdate  = load("0bcb921617847fc1b25aaf68c941f5604d3f8690", "lock_update")
	lockRelease = load("79e6171b6fec9dbc941973f86e9e396970b1192b", "lock_release")
	lockForce   = load("625ed3a50e11b31761e5b1c7232a2dad6801626d", "lock_force")
	lockState   = load("2630b3981cc3356751947e18c397a4f06fedc953", "lock_state")

	fairAcquire = taking("7154d8add75abe7be6d8ab8d42a41b1786eab891", "fair_prelude", "fair_acquire")
	fairRelease = load("7574951b5ca903ddb1d4fa92882fb8e8c4621023", "fair_prelude", "fair_release")
	fairForce   = load("991757f11aff6b3642b9a172633c28c6f0783193", "fair_prelude", "fair_force")

	readAcquire  = taking("892eb7d4b95ef1ef480ccb3751f3817ee97a1a31", "read_acquire")
	writeAcquire = taking("aa39f88482a3c560f41d5c437dd5bc178611b4f1", "write_acquire")
	rwUpdate     = load("1c8e5f90db399f55bb53219fc45751c44b0e0c35", "rw_update")
	rwRelease    = load("830d17e7811b41efa1f696a5a41671f91a530f69", "rw_release")
	rwForce      = load("e30a0c2b0e1d8ad35f06c1ab37d9051c29082793", "rw_force")

	permitAcquire = taking("f19d54590f3790419dc6c65c0aac6fce76bb0a53", "permit_prelude", "permit_acquire")
	permitUpdate  = load("7843f284b12438ffab180409a2114b673792f900", "permit_prelude", "permit_update")
	permitRelease = load("5d1611908ba99d83482fc01a14e4c51a3bda3c30", "permit_prelude", "permit_release")

	semaphoreAcquire = load("91366dec1f5cc46ed43e213ca91f4a829175ab55", "receipt", "semaphore_acquire")
	semaphoreCancel  = load("82ef87356aa0d2ba1d7c7d9600aea7264565212f", "semaphore_cancel")
	semaphoreRelease = load("156c64499167261e88360f079a48da52f7bc1c42", "receipt", "semaphore_release")
	semaphoreSet     = load("06dc1dd6dbf12ec2a9001dcd167b240435a0138f", "receipt", "semaphore_set")
	semaphoreAdd     = load("ecf35f1311a9be67cf49e075a60ef3cb1edb5f85", "receipt", "semaphore_add")
	semaphoreDrain   = load("87e037bd126f9430db1ed1f1ca49c0454a188df0", "receipt", "semaphore_drain")

	permitsAcquire = load("c395d4c05b851d18f95beaeaa94e462c9cb63661", "receipt", "permits", "permits_acquire")
	permitsRelease = load("fee475f712a3d718e8384f635103ee2716902b08", "permits", "permits_release")
	permitsCount   = load("dcb507c63fe9739ed6db570bd67f49b4bfe7c20f", "permits", "permits_count")
	permitsLease   = load("733bf6512c3312dbd11249616d1428ae1384e2d0", "permits", "permits_lease")
	permitsSet     = load("15e599df35b0542794b7218ae6a98930036809dd", "permits", "permits_set")

	latchSet    = load("8366c477f58ba09cb98cccb2efaa836f4d36b573", "receipt", "countdownlatch_set")
	latchDown   = load("1931fe7a4f1ba51124ff74cc87abc85d541d50ea", "receipt", "countdownlatch_down")
	latchDelete = load("512fc614d4dbabcde4b686944e9cf142dec0b5d9", "receipt", "countdownlatch_delete")

	rateAcquire   = load("14241f623e4337c00ff836a46400b91f3b5d0e12", "rate", "rate_acquire")
	rateCancel    = load("c66de61a5ccaec05ce0d5d2263d6ab93e46c1ef9", "rate", "rate_cancel")
	rateAvailable = load("bdd780819230a8072182020183987c62e37e380b", "rate", "rate_available")
	rateSet       = load("b09fb1fe9a2e57e7f4c06760263861f2959e8f5c", "receipt", "rate_set")

	number     = load("b6fb9adf2cdba5a8e1a5cbf903d601e974b0c9ab", "number")
	deleteKeys = load("948d93981e10a46e76323f975ad9b8593782e74b", "delete")
)

// load joins the files of a script.
func load(sha string, files ...string) *script {
	s := &script{sha: sha}
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
