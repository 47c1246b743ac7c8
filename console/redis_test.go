package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// onRedis is a console on a real Redis, and a client of it.
func onRedis(t *testing.T, opts ...Option) (*redistest.Server, *redisson.Client, *httptest.Server) {
	t.Helper()
	r := redistest.Start(t)
	c := newClient(t, r)
	h, err := New(newClient(t, r), nil, append([]Option{quiet, ShowKeys(Whole), AllowFree(allow)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return r, c, s
}

func newClient(t *testing.T, r *redistest.Server) *redisson.Client {
	t.Helper()
	c, err := redisson.New(r.Client(t))
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
	_, c, s := onRedis(t)
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
	list.wants(t, "list", http.StatusOK, "4 locks", "order:42", "till:3", "report", "customer:8", "fenced lock", "read lock", c.ID())
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
	_, c, s := onRedis(t)
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
	c, p := newClient(t, r), r.Front(t)
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
	_, c, s := onRedis(t)
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

// commands counts what clients send to a server, by name, until stop is called.
func commands(t *testing.T, r *redistest.Server) (stop func() map[string]int) {
	t.Helper()
	conn, err := net.Dial("tcp", r.Addr)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil || !lines.Scan() || lines.Text() != "+OK" {
		t.Fatalf("MONITOR: %v, %q", err, lines.Text())
	}
	counts := map[string]int{}
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines.Scan() {
			if name := monitored(lines.Text()); name != "" {
				counts[name]++
			}
		}
	})
	end := sync.OnceFunc(func() { _ = conn.Close(); reading.Wait() })
	t.Cleanup(end)
	return func() map[string]int { end(); return counts }
}

var monitorLine = regexp.MustCompile(`^\+[\d.]+ \[\d+ ([^\]]*)\] "(\w+)"`)

// monitored is the command of a line of MONITOR, unless a script sent it.
func monitored(line string) string {
	m := monitorLine.FindStringSubmatch(line)
	if m == nil || m[1] == "lua" {
		return ""
	}
	return strings.ToLower(m[2])
}

// What open pages cost Redis: beside the list's search, less than five commands a second; and nothing once they are closed.
func TestCost(t *testing.T) {
	const seconds = 5
	for _, tt := range []struct {
		name  string
		pages []string
		most  int // commands in all
	}{
		{"list", []string{"events?of=list"}, seconds * 5},
		{"five who look at the list", []string{"events?of=list", "events?of=list", "events?of=list&q=a", "events?of=list&sort=left", "events?of=list"}, seconds * 5},
		{"lock", []string{"events?of=lock&key=order:42"}, seconds * 5},
		{"five who look at a lock", []string{"events?of=lock&key=order:42", "events?of=lock&key=order:42", "events?of=lock&key=order:42", "events?of=lock&key=order:42", "events?of=lock&key=order:42"}, seconds * 5},
		{"guards", []string{"events?of=guards"}, 0},
		{"nobody", nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, _, s := onRedis(t)
			rdb := r.Client(t)
			for _, key := range []string{"order:42", "order:43"} { // whose holder asks nothing
				if err := errors.Join(rdb.HSet(t.Context(), key, clientA+":1", 1).Err(), rdb.Expire(t.Context(), key, time.Hour).Err()); err != nil {
					t.Fatal(err)
				}
			}
			var ends []context.CancelFunc
			for _, page := range tt.pages {
				ends = append(ends, watch(t, s, page))
			}
			stop := commands(t, r)
			<-time.After(seconds * time.Second)
			counts := stop()
			total := 0
			for _, n := range counts {
				total += n
			}
			if total > tt.most {
				t.Errorf("%d commands in %d s, want %d at most: %v", total, seconds, tt.most, counts)
			}
			if tt.most > 0 && total == 0 {
				t.Error("nothing was asked at all")
			}
			t.Logf("%.1f commands a second: %v", float64(total)/seconds, counts)
			for _, end := range ends {
				end()
			}
			<-time.After(linger + time.Second) // by then nothing more is asked
			stop = commands(t, r)
			<-time.After(2 * listRest)
			if counts := stop(); len(counts) > 0 {
				t.Errorf("asked while nobody looks: %v", counts)
			}
		})
	}
}

// watch holds a page's stream open, and reads what comes.
func watch(t *testing.T, s *httptest.Server, page string) context.CancelFunc {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/"+page, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	lines := bufio.NewReader(res.Body)
	for begun := false; !begun; { // what is needed once, such as a script that is loaded, is over by then
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		begun = strings.HasPrefix(line, "data:")
	}
	reading.Go(func() {
		for {
			if _, err := lines.ReadString('\n'); err != nil {
				_ = res.Body.Close()
				return
			}
		}
	})
	end := sync.OnceFunc(func() { cancel(); reading.Wait() })
	t.Cleanup(end)
	return end
}
