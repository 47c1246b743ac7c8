package redisson

import _ "embed" // the scripts

// script is a Lua script with its SHA-1 digest. The digests are constants, held by a test: EVALSHA wants SHA-1, which a
// program in FIPS mode may not compute.
type script struct{ source, sha string }

// The scripts are variables only because the compiler fills them in.
var (
	//go:embed acquire.lua
	acquireSource string
	//go:embed release.lua
	releaseSource string
	//go:embed renew.lua
	renewSource string
	//go:embed force.lua
	forceSource string
	//go:embed fair_acquire.lua
	fairAcquireSource string
	//go:embed fair_release.lua
	fairReleaseSource string
	//go:embed fair_force.lua
	fairForceSource string
	//go:embed read_acquire.lua
	readAcquireSource string
	//go:embed write_acquire.lua
	writeAcquireSource string
	//go:embed rw_release.lua
	rwReleaseSource string
	//go:embed rw_renew.lua
	rwRenewSource string
	//go:embed rw_force.lua
	rwForceSource string
	//go:embed permit_acquire.lua
	permitAcquireSource string
	//go:embed permit_release.lua
	permitReleaseSource string
	//go:embed permit_renew.lua
	permitRenewSource string
	//go:embed fair_prelude.lua
	fairPrelude string
	//go:embed permit_prelude.lua
	permitPrelude string
)

func acquireScript() script {
	return script{acquireSource, "1ca0370db860bb062ea33f41714fe4221c0899ae"}
}

func releaseScript() script {
	return script{releaseSource, "d29ce6ad923bedf6eb0fc849562c534ffaa6e21e"}
}

func renewScript() script {
	return script{renewSource, "e9b6ff5c1b58c5dbee3225d640b24cd8d650ab72"}
}

func forceScript() script {
	return script{forceSource, "bc537d5e69266029e61d5981c5f4bda6005788dc"}
}

func fairAcquireScript() script {
	return script{fairPrelude + fairAcquireSource, "59df4bb40202a2d8088e5d8b3cc7b2de83bdbdec"}
}

func fairReleaseScript() script {
	return script{fairPrelude + fairReleaseSource, "b25379029525e430266c6d71f402a0e17ddc49e5"}
}

func fairForceScript() script {
	return script{fairPrelude + fairForceSource, "a84f192c45d99cf41237c67fadd5d85e129be93e"}
}

func readAcquireScript() script {
	return script{readAcquireSource, "9f183137dea9d43b0875e5fe2fa46b2d644f45fb"}
}

func writeAcquireScript() script {
	return script{writeAcquireSource, "1d466471b2d76816333dd19e834d799e9f848204"}
}

func rwReleaseScript() script {
	return script{rwReleaseSource, "7ed7bb686cf40ad9464cb870e14d541a0602347e"}
}

func rwRenewScript() script {
	return script{rwRenewSource, "a52763fddee21b01aa1fbbd0982d9cb6ed7f6d2a"}
}

func rwForceScript() script {
	return script{rwForceSource, "088445c936146a8e8d2a2cefe24105cc0ec209df"}
}

func permitAcquireScript() script {
	return script{permitPrelude + permitAcquireSource, "86adae9d9dce9a9c3633855032af1311455b9ce2"}
}

func permitReleaseScript() script {
	return script{permitPrelude + permitReleaseSource, "96910fb538c497a329ce289ff999b5618a89b69a"}
}

func permitRenewScript() script {
	return script{permitPrelude + permitRenewSource, "f31f0b0a16a93b5d5dd81a75595e6c50bea0998c"}
}
