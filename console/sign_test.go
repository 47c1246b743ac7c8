package console

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

func TestSign(t *testing.T) {
	now := time.Now()
	ago := func(s int) time.Time { return now.Add(-time.Duration(s) * time.Second) }
	w := redisson.Identity{Watchdog: 30 * time.Second}
	heard := func(s int) redisson.Identity { return redisson.Identity{Watchdog: w.Watchdog, Heard: ago(s)} }
	for _, tt := range []struct {
		h      redisson.Holder
		want   string
		silent bool
	}{
		{redisson.Holder{}, "", false},
		{redisson.Holder{Who: w}, "", false},
		{redisson.Holder{Who: w, Renewed: ago(4)}, "renewed 4s ago", false},
		{redisson.Holder{Who: w, Renewed: ago(-1)}, "renewed 0s ago", false},
		{redisson.Holder{Who: w, Renewed: ago(12)}, "renewed 12s ago", false},
		{redisson.Holder{Who: w, Renewed: ago(15)}, "not renewed for 15s", true},
		{redisson.Holder{Who: w, Renewed: ago(25), Lease: 5 * time.Second}, "not renewed for 25s: dead or cut off, free in 5s", true},
		{redisson.Holder{Who: heard(3), Renewed: ago(25), Lease: 5 * time.Second}, "not renewed for 25s: dead or cut off, free in 5s", true},
		{redisson.Holder{Who: heard(3)}, "its process was heard 3s ago", false},
		{redisson.Holder{Who: heard(28)}, "its process was not heard for 28s: dead or cut off", true},
	} {
		if got, silent := Sign(&tt.h, now); got != tt.want || silent != tt.silent {
			t.Errorf("Sign(%+v) = %q, %v, want %q, %v", tt.h, got, silent, tt.want, tt.silent)
		}
	}
}

// waitingLock is a lock whose holders' calls wait for those keys.
func waitingLock(key string, sort redisson.ObjectType, waits ...[]string) redisson.Object {
	o := redisson.Object{Key: key, Type: sort, HolderCount: int64(len(waits))}
	for _, keys := range waits {
		o.Holders = append(o.Holders, redisson.Holder{ID: key, About: &redisson.About{Waits: keys}})
	}
	return o
}

func TestDeadlock(t *testing.T) {
	none, lck, rw, sem := []string(nil), redisson.TypeLock, redisson.TypeReadWrite, redisson.TypeExpirableSemaphore
	to := func(keys ...string) []string { return keys }
	for name, tt := range map[string]struct {
		objects []redisson.Object
		want    string
	}{
		"nobody waits":                      {[]redisson.Object{waitingLock("a", lck, none)}, ""},
		"one waits":                         {[]redisson.Object{waitingLock("a", lck, to("b")), waitingLock("b", lck, none)}, ""},
		"two, both ways":                    {[]redisson.Object{waitingLock("a", lck, to("b")), waitingLock("b", lck, to("a"))}, "a b a"},
		"three":                             {[]redisson.Object{waitingLock("a", lck, to("x", "b")), waitingLock("b", lck, to("c")), waitingLock("c", lck, to("a"))}, "a b c a"},
		"itself":                            {[]redisson.Object{waitingLock("a", lck, to("a"))}, "a a"},
		"a circle of others":                {[]redisson.Object{waitingLock("a", lck, to("b")), waitingLock("b", lck, to("c")), waitingLock("c", lck, to("b"))}, ""},
		"one of two readers":                {[]redisson.Object{waitingLock("a", rw, none, to("b")), waitingLock("b", lck, to("a"))}, "a b a"},
		"one of two permits":                {[]redisson.Object{waitingLock("a", sem, none, to("b")), waitingLock("b", lck, to("a"))}, ""},
		"both permits":                      {[]redisson.Object{waitingLock("a", sem, to("b"), to("b")), waitingLock("b", lck, to("a"))}, "a b a"},
		"a lock through one of two permits": {[]redisson.Object{waitingLock("b", lck, to("a")), waitingLock("a", sem, to("b"), none)}, ""},
	} {
		f := newFake(tt.objects...)
		if got := strings.Join(Deadlock(t.Context(), f.InspectKey, tt.objects[0]), " "); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	var chain []redisson.Object
	for i := range 26 {
		chain = append(chain, waitingLock(string(rune('a'+i)), lck, to(string(rune('a'+(i+1)%26)))))
	}
	f := newFake(chain...)
	if got := Deadlock(t.Context(), f.InspectKey, chain[0]); got != nil || f.inspects > mostDeep {
		t.Errorf("a long chain is %v, after %d questions", got, f.inspects)
	}
	f.fail(errors.New("down"))
	if got := Deadlock(t.Context(), f.InspectKey, waitingLock("a", lck, to("b"))); got != nil {
		t.Errorf("without answers: %v", got)
	}
}

// The page of a lock says what its holder's program tells, and that two locks wait for each other.
func TestLockPageAnswersTheNight(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	client := func() *redisson.Client {
		c, err := redisson.New(r.Client(t), redisson.Name("orders-7f9c"), redisson.Describe())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	a, b := client(), client()
	hold := func(c *redisson.Client, ctx context.Context, key string) lock.Hold {
		h, err := c.Acquire(ctx, lock.Request{Key: key, Holder: `guard "order.pay"`, Wait: -1})
		if err != nil {
			return nil
		}
		return h
	}
	x, y := hold(a, t.Context(), "x:<1>"), hold(b, t.Context(), "y")
	for from, to := range map[lock.Hold]string{x: "y", y: "x:<1>"} {
		under, stop := context.WithCancel(from.Context())
		defer stop()
		go hold(map[bool]*redisson.Client{true: a, false: b}[from == x], under, to)
	}
	s := consoleOf(t, r.Client(t))
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		page := get(t, s.URL+"/lock?key=x%3A%3C1%3E")
		if strings.Contains(page.body, "wait for each other") || time.Now().After(end) {
			page.wants(t, "lock", http.StatusOK, "orders-7f9c", "guard &#34;order.pay&#34;", "renewed ", "waits for", "wait for each other", "x:&lt;1&gt;")
			break
		}
	}
}

// What was freed by hand is listed, also what others have freed, and the holder is told why.
func TestFreesPage(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	rdb := r.Client(t)
	s := consoleOf(t, r.Client(t))
	get(t, s.URL+"/frees").wants(t, "frees", http.StatusOK, "Nothing was freed by hand")
	l := newClient(t, rdb).Lock("order:42")
	var cause string
	for try := range 5 { // Redis may answer too late on a busy machine: that it was freed, and to the holder by whom
		held := take(t, l)
		for len(rdb.PubSubChannels(t.Context(), "latchkey_client:*").Val()) == 0 { // until the holder listens
			time.Sleep(10 * time.Millisecond)
		}
		form := confirmation(t, s, "order:42")
		form.Set("reason", "it hangs,\r\n<b>ticket</b> 7")
		page := submit(t, s, s.URL, form)
		if (page.status == http.StatusServiceUnavailable || !form.Has("ref")) && try < 4 {
			_ = l.Unlock(held)
			continue
		}
		page.wants(t, "free", http.StatusSeeOther)
		select {
		case <-held.Done():
		case <-time.After(30 * time.Second):
			t.Fatal("the holder was not told")
		}
		if cause = context.Cause(held).Error(); strings.Contains(cause, "(") {
			break
		}
		_ = l.Unlock(held)
	}
	if !strings.Contains(cause, "freed by hand (") || !strings.HasSuffix(cause, "(Ada: it hangs, <b>ticket</b> 7)") {
		t.Errorf("the cause is %q", cause)
	}
	get(t, s.URL+"/frees").wants(t, "frees", http.StatusOK, "order:42", "it hangs, &lt;b&gt;ticket&lt;/b&gt; 7")
	for end := time.Now().Add(30 * time.Second); !regexp.MustCompile(`href="frees">[1-5]</a>`).MatchString(get(t, s.URL+"/").body); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the list does not count it")
		}
	}
}

// Of a holder that says nothing, as one in Java, the page tells what it has seen itself.
func TestLockPageTellsWhatItHasSeen(t *testing.T) {
	lease := func(d time.Duration) redisson.Object {
		return redisson.Object{Key: "k", Type: redisson.TypeLock, TTL: d, HolderCount: 1, Holders: []redisson.Holder{{ID: "java", Lease: d}}}
	}
	f := newFake(lease(25 * time.Second))
	h, err := newHandler(f, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := h.readLock(t.Context(), "k", nil)
	look := func(after, left time.Duration, want string) {
		t.Helper()
		f.put(lease(left))
		s.read = s.read.Add(-after)
		for id := range s.seen {
			s.seen[id] = s.seen[id].Add(-after)
		}
		for i := range s.object.Holders {
			if at := &s.object.Holders[i].Renewed; !at.IsZero() {
				*at = at.Add(-after)
			}
		}
		s = h.readLock(t.Context(), "k", s)
		if got := h.lockBody("k", s, false).Holders[0].Sign; got != want {
			t.Errorf("with %v left, %v later: %q, want %q", left, after, got, want)
		}
	}
	look(time.Second, 24*time.Second, "")
	look(12*time.Second, 12*time.Second, "not seen to be renewed for 13s")
	look(time.Second, 30*time.Second, "renewed 0s ago")
	look(9*time.Second, 21*time.Second, "renewed 9s ago")
	look(8*time.Second, 13*time.Second, "not renewed for 17s")
	look(8*time.Second, 5*time.Second, "not renewed for 25s: dead or cut off, free in 5s")
	look(time.Second, 30*time.Second, "renewed 0s ago")
	look(time.Second, -1, "renewed 1s ago")
	look(time.Second, -1, "renewed 2s ago")
}
