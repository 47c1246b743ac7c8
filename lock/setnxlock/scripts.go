package setnxlock

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
)

// All scripts answer a list that begins with one of these.
const (
	yes       = 1
	no        = 0
	otherType = -1
)

var (
	//go:embed lua/value.lua
	valueLua string
	//go:embed lua/take.lua
	takeLua string
	//go:embed lua/extend.lua
	extendLua string
	//go:embed lua/free.lua
	freeLua string
	//go:embed lua/peek.lua
	peekLua string
)

var takeScript, extendScript, freeScript, peekScript = newScript(takeLua), newScript(extendLua), newScript(freeLua), newScript(peekLua)

// script is Lua, and the digest by which Redis knows it.
type script struct{ source, digest string }

func newScript(lua string) *script {
	source := valueLua + lua
	digest := sha1.Sum([]byte(source))
	return &script{source, hex.EncodeToString(digest[:])}
}
