package interop

import (
	"slices"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
)

// mappedScenarios are those with a name mapper on both sides.
var mappedScenarios = []scenario{
	{name: "56_name_mapper", play: func(t *testing.T, on setting) { mappedNames(t, on, "app:") }, long: true},
	{name: "56_name_mapper_with_a_hash_tag", play: func(t *testing.T, on setting) { mappedNames(t, on, "{app}:") }, long: true},
}

// mappedNames: all keys and channels are made from the name that a mapper has put the prefix before.
func mappedNames(t *testing.T, on setting, prefix string) {
	w := newWorld(t, on)
	unmapped := *w
	w.java = w.newMappedJava(prefix)
	w.client = w.newClient(redisson.NameMapper(func(name string) string { return prefix + name }))

	java, golang := w.pair("plain")
	w.handsOver(prefix+"plain", java, golang)
	w.handsOver(prefix+"plain", golang, java)
	w.take(golang, "a", 0)
	w.only(prefix+"plain", "1")
	for _, m := range []mutex{java, newGo(t, unmapped.client.Lock(prefix+"plain")), newJavaMutex(t, unmapped.java, step{"getLock", prefix + "plain"})} {
		w.refused(m, "b")
	}
	w.release(golang, "a")

	java, golang = w.fairPair("fair")
	fairOrder(w, prefix+"fair", java, golang)
	fairOrder(w, prefix+"fair", golang, java)
	fairMessage(w, prefix+"fair", java, golang)
	fairMessage(w, prefix+"fair", golang, java)

	javaSides, goSides := w.rwPair("rw")
	twoReaders(w, prefix+"rw", javaSides, goSides)
	twoReaders(w, prefix+"rw", goSides, javaSides)
	lastReader(w, prefix+"rw", javaSides, goSides)
	lastReader(w, prefix+"rw", goSides, javaSides)
	mappedNumbers(w, prefix)
}

// mappedNumbers: what one side has set, the other one sees, and there is no other key.
func mappedNumbers(w *world, prefix string) {
	w.t.Helper()
	ctx := w.t.Context()
	w.take(newGo(w.t, w.client.FencedLock("fenced")), "a", time.Minute)
	if token := w.object("getFencedLock", "fenced").get("", "getToken"); token != 1.0 {
		w.t.Errorf("getToken = %v, want 1", token)
	}
	w.do(func() error { return w.client.Semaphore("semaphore").Release(ctx, 3) })
	w.object("getSemaphore", "semaphore").get("", "acquire", 2)
	w.object("getPermitExpirableSemaphore", "permits").get("", "trySetPermits", 3)
	must[string](w.t)(w.client.PermitExpirableSemaphore("permits").Acquire(ctx, time.Minute))
	if n := w.object("getPermitExpirableSemaphore", "permits").get("", "acquiredPermits"); n != 1.0 {
		w.t.Errorf("acquiredPermits = %v, want 1", n)
	}
	w.object("getCountDownLatch", "latch").get("", "trySetCount", 2)
	w.do(func() error { return w.client.CountDownLatch("latch").CountDown(ctx) })
	w.object("getRateLimiter", "rate").get("", "trySetRate", "OVERALL", 5, "PT1M")
	w.do(func() error { return w.client.RateLimiter("rate").Acquire(ctx, 2) })

	keys := slices.DeleteFunc(w.rdb.Keys(ctx, "*").Val(), w.receipt)
	slices.Sort(keys)
	want := []string{
		prefix + "fenced", "redisson_lock_token:" + braced(prefix+"fenced"),
		prefix + "semaphore",
		prefix + "permits", braced(prefix+"permits") + ":timeout",
		prefix + "latch",
		prefix + "rate", braced(prefix+"rate") + ":value", braced(prefix+"rate") + ":permits",
	}
	slices.Sort(want)
	if !slices.Equal(keys, want) {
		w.t.Errorf("keys %q, want %q", keys, want)
	}
}
