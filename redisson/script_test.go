package redisson

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/transport"
	"github.com/redis/go-redis/v9"
)

func TestScriptDigests(t *testing.T) {
	for _, s := range loaded {
		sum := sha1.Sum([]byte(s.Source))
		if want := hex.EncodeToString(sum[:]); s.SHA != want {
			t.Errorf("digest of the script that begins with %.40q is %s, want %s", s.Source, s.SHA, want)
		}
	}
}

// A release that shares its way with a call whose script the server has forgotten runs once: a second run would find nothing, and the
// lock would seem to have been lost.
func TestKnownScriptsRunOnce(t *testing.T) {
	rdb := redistest.Any(t).Client(t)
	c, err := New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h, err := c.acquire(t.Context(), lock.Request{Key: "held"}, true, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ho := h.(*hold).holder
	other := holder{id: "other", keys: [1]string{"free"}, kind: lock.Exclusive}
	for _, err := range []error{rdb.ScriptFlush(t.Context()).Err(), rdb.ScriptLoad(t.Context(), lockRelease.Source).Err()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	calls := []transport.Call{plain{}.enter(&other, time.Minute), ho.family.exit(ho, "", 0), plain{}.exit(&other, "", 0)}
	for i, a := range c.road.AskTogether(t.Context(), time.Now().Add(time.Minute), calls) {
		if want := i < 2; a.Yes() != want { // the last release came before the acquire, which the server did not know at first
			t.Errorf("call %d was answered %v, %v, want %v", i, a.Values, a.Err, want)
		}
	}
	_ = h.Release(t.Context()) // tells the client, too
}

// In FIPS mode a program may not compute SHA-1, which EVALSHA wants: the digests are constants.
func TestFIPSMode(t *testing.T) {
	const inChild = "LATCHKEY_TEST_FIPS_ADDR"
	if addr := os.Getenv(inChild); addr != "" {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		defer rdb.Close()
		c, err := New(rdb)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		held, err := c.Lock("fips").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Lock("fips").Unlock(held); err != nil {
			t.Fatal(err)
		}
		fmt.Println("locked in FIPS mode")
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFIPSMode$", "-test.v")
	cmd.Env = append(os.Environ(), inChild+"="+redistest.Any(t).Addr, "GODEBUG=fips140=only")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "locked in FIPS mode") {
		t.Errorf("child: %v\n%s", err, out)
	}
}
