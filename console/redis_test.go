package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// onRedis is a console on a real Redis, and a client of it.
func onRedis(t *testing.T) (*redisson.Client, *httptest.Server) {
	t.Helper()
	r := redistest.Start(t)
	return newClient(t, r.Client(t)), consoleOf(t, r.Client(t))
}

func consoleOf(t *testing.T, rdb redis.UniversalClient) *httptest.Server {
	t.Helper()
	h, err := New(newClient(t, rdb), nil, quiet, ShowKeys(Whole), AllowFree(allow))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func newClient(t *testing.T, rdb redis.UniversalClient) *redisson.Client {
	t.Helper()
	c, err := redisson.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func take(t *testing.T, l *redisson.Lock) context.Context {
	t.Helper()
	held, err := l.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Unlock(held) })
	return held
}

// The story of the console on a real Redis: who holds what, freed by a form, and the holder is told.
func TestOnRedis(t *testing.T) {
	c, s := onRedis(t)
	plain := take(t, c.Lock("order:42"))
	take(t, c.FairLock("till:3"))
	fenced := c.FencedLock("report")
	report, err := fenced.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fenced.Unlock(report) }()
	rw := c.ReadWriteLock("customer:8")
	take(t, rw.ReadLock())
	list := get(t, s.URL+"/")
	list.wants(t, "list", http.StatusOK, "4 locks", "order:42", "till:3", "report", "customer:8", `kind">fenced<`, `kind">read<`, c.ID())
	get(t, s.URL+"/lock?key=order:42").wants(t, "lock", http.StatusOK, "holds it", c.ID())
	get(t, s.URL+"/lock?key=free").wants(t, "lock", http.StatusOK, "there is no such key")
	answer := submit(t, s, s.URL, confirmation(t, s, "order:42"))
	answer.wants(t, "free", http.StatusSeeOther)
	select {
	case <-plain.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the holder was not told")
	}
	if cause := context.Cause(plain); !errors.Is(cause, lock.ErrLost) {
		t.Errorf("the holder was told %v", cause)
	}
	get(t, s.URL+"/"+answer.header.Get("Location")).wants(t, "lock", http.StatusOK, "You freed this lock", "Nobody holds it")
}

// A lock that another holder has got since the form was shown stays theirs.
func TestFreedTooLateOnRedis(t *testing.T) {
	c, s := onRedis(t)
	l := c.Lock("order:42")
	held := take(t, l)
	form := confirmation(t, s, "order:42")
	if err := l.Unlock(held); err != nil {
		t.Fatal(err)
	}
	next := take(t, l)
	submit(t, s, s.URL, form).wants(t, "late", http.StatusConflict, "another holder now")
	if locked, err := l.IsLocked(t.Context()); err != nil || !locked || next.Err() != nil {
		t.Errorf("locked %v, %v, %v", locked, err, next.Err())
	}
}

// The answer is lost, and somebody has the lock when Redis is asked again: it stays theirs, and there is an account of what was freed.
func TestFreedWithoutAnAnswer(t *testing.T) {
	r := redistest.Start(t)
	c, p := newClient(t, r.Client(t)), r.Front(t)
	behind, err := redisson.New(r.Client(t, func(o *redis.Options) { o.Addr = p.Addr }))
	if err != nil {
		t.Fatal(err)
	}
	defer behind.Close()
	var told []Freed
	h, err := New(behind, nil, quiet, ShowKeys(Whole), AllowFree(allow), OnFree(func(_ context.Context, f Freed) { told = append(told, f) }))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	defer s.Close()
	if _, err := c.ForceUnlockFrom(t.Context(), "order:42", []string{clientA + ":1"}); err != nil { // loads the script
		t.Fatal(err)
	}
	l := c.Lock("order:42")
	held := take(t, l)
	form := confirmation(t, s, "order:42")
	answer := p.KeepBackReply("latchkey_receipt:{order:42}:"+behind.ID(), 0)
	status := make(chan answered)
	go func() { status <- submit(t, s, s.URL, form) }()
	answer.Await(t)
	next := take(t, l)
	p.Drop()
	(<-status).wants(t, "free", http.StatusSeeOther)
	<-held.Done()
	if locked, err := l.IsLocked(t.Context()); err != nil || !locked || next.Err() != nil {
		t.Errorf("of who came later: locked %v, %v, %v", locked, err, next.Err())
	}
	if len(told) != 1 || told[0].Err != nil || told[0].Object.Holders[0].Client != c.ID() {
		t.Errorf("told %+v, want one lock that was freed", told)
	}
}

// Keys of any bytes are found, shown and freed on a real Redis.
func TestHostileKeysOnRedis(t *testing.T) {
	c, s := onRedis(t)
	for _, key := range hostile {
		held := take(t, c.Lock(key))
		submit(t, s, s.URL, confirmation(t, s, key)).wants(t, fmt.Sprintf("free %.40q", key), http.StatusSeeOther)
		select {
		case <-held.Done():
		case <-time.After(5 * time.Second):
			t.Fatalf("the holder of %.40q was not told", key)
		}
	}
}

// The lines of docs/security.md for looking and for freeing suffice for the console.
func TestACLLinesOfTheConsole(t *testing.T) {
	text, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	r := redistest.Start(t)
	admin := r.Client(t)
	rules := []any{"acl", "setuser", "operator", "resetchannels"} // channels are free to all before Redis 7.0
	for _, user := range []string{"inspect", "force"} {
		_, more, _ := strings.Cut(string(text), "\nACL SETUSER "+user+" ~latchkey_frees ")
		more, _, _ = strings.Cut(more, "\n")
		rules = append(rules, "~latchkey_frees", more)
		_, line, ok := strings.Cut(string(text), "\nACL SETUSER "+user+" on >secret ")
		if !ok {
			t.Fatalf("no line for %s", user)
		}
		line, _, _ = strings.Cut(line, "\n")
		for word := range strings.FieldsSeq("on >secret " + line) {
			rules = append(rules, word)
		}
	}
	if err := admin.Do(t.Context(), rules...).Err(); err != nil {
		t.Fatal(err)
	}
	held := take(t, newClient(t, admin).Lock("order:42"))
	s := consoleOf(t, r.Client(t, func(o *redis.Options) { o.Username, o.Password = "operator", "secret" }))
	get(t, s.URL+"/").wants(t, "list", http.StatusOK, "1 lock", "order:42")
	submit(t, s, s.URL, confirmation(t, s, "order:42")).wants(t, "free", http.StatusSeeOther)
	select {
	case <-held.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the holder was not told")
	}
	log, err := admin.ACLLog(t.Context(), 100).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, denied := range log {
		if denied.Object != "client" && !strings.HasPrefix(denied.Object, "client|") { // which go-redis sends without need
			t.Errorf("denied: %s %s", denied.Reason, denied.Object)
		}
	}
}
