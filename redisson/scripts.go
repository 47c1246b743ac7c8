package redisson

import _ "embed" // the scripts

// script is a Lua script with its SHA-1 digest. The digests are constants, held by a test: EVALSHA wants SHA-1, which a
// program in FIPS mode may not compute.
type script struct {
	source, sha string
	takes       bool // what a lock is; replicas may have to confirm it
}

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
	return script{source: acquireSource, sha: "1ca0370db860bb062ea33f41714fe4221c0899ae", takes: true}
}

func releaseScript() script {
	return script{source: releaseSource, sha: "58eab5149143d26455def33965e91268e65d528d"}
}

func renewScript() script {
	return script{source: renewSource, sha: "e9b6ff5c1b58c5dbee3225d640b24cd8d650ab72"}
}

func forceScript() script {
	return script{source: forceSource, sha: "625ed3a50e11b31761e5b1c7232a2dad6801626d"}
}

func fairAcquireScript() script {
	return script{source: fairPrelude + fairAcquireSource, sha: "59df4bb40202a2d8088e5d8b3cc7b2de83bdbdec", takes: true}
}

func fairReleaseScript() script {
	return script{source: fairPrelude + fairReleaseSource, sha: "af953ace2479522da8d594c8ce8ed31f57bb187b"}
}

func fairForceScript() script {
	return script{source: fairPrelude + fairForceSource, sha: "a68de08794fb8221ecb42dee971ca309168f2178"}
}

func readAcquireScript() script {
	return script{source: readAcquireSource, sha: "9f183137dea9d43b0875e5fe2fa46b2d644f45fb", takes: true}
}

func writeAcquireScript() script {
	return script{source: writeAcquireSource, sha: "1d466471b2d76816333dd19e834d799e9f848204", takes: true}
}

func rwReleaseScript() script {
	return script{source: rwReleaseSource, sha: "cc4463c3198bec1a792aadaeaf16af8c7c867820"}
}

func rwRenewScript() script {
	return script{source: rwRenewSource, sha: "a52763fddee21b01aa1fbbd0982d9cb6ed7f6d2a"}
}

func rwForceScript() script {
	return script{source: rwForceSource, sha: "e30a0c2b0e1d8ad35f06c1ab37d9051c29082793"}
}

func permitAcquireScript() script {
	return script{source: permitPrelude + permitAcquireSource, sha: "ff0d852e0f8605d53ad4ef71fab5bbd6923cce4c", takes: true}
}

func permitReleaseScript() script {
	return script{source: permitPrelude + permitReleaseSource, sha: "cdba2266facf9960765984728c78d9a2fbb123a4"}
}

func permitRenewScript() script {
	return script{source: permitPrelude + permitRenewSource, sha: "f0cd34bcbe780168fc500489059e379b6bfd67a2"}
}
