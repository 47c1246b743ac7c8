package redisson

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

func TestScriptDigests(t *testing.T) {
	for _, s := range []*script{
		lockAcquire, lockUpdate, lockRelease, lockForce, lockState,
		fairAcquire, fairRelease, fairForce, readAcquire, writeAcquire,
		rwUpdate, rwRelease, rwForce, permitAcquire, permitUpdate,
		permitRelease, semaphoreAcquire, semaphoreCancel, semaphoreRelease, semaphoreSet,
		semaphoreAdd, semaphoreDrain, permitsAcquire, permitsCancel, permitsRelease,
		permitsCount, permitsLease, permitsUpdate, permitsSet, latchSet, latchDown, latchDelete,
		rateAcquire, rateCancel, rateRelease, rateAvailable, rateSet, rateGet, number,
		deleteKeys, newestAnnounce, newestLook, peek,
	} {
		sum := sha1.Sum([]byte(s.source))
		if want := hex.EncodeToString(sum[:]); s.sha != want {
			t.Errorf("digest of the script that begins with %.40q is %s, want %s", s.source, s.sha, want)
		}
	}
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
