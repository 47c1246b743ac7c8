package console

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// All who look share one reading, and there is none when nobody looks.
func TestFeedIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var readings atomic.Int64
		f := &feed[int]{read: func(context.Context, int, func(int)) (int, time.Duration) {
			return int(readings.Add(1)), time.Second
		}}
		time.Sleep(time.Minute)
		if n := readings.Load(); n != 0 {
			t.Errorf("%d readings before anybody looks", n)
		}
		var leaves []func()
		for range 10 {
			leaves = append(leaves, f.enter())
		}
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		if n := readings.Load(); n != 11 {
			t.Errorf("%d readings for ten viewers in 10s, want 11", n)
		}
		for _, leave := range leaves {
			leave()
			leave() // counts once
		}
		time.Sleep(linger)
		synctest.Wait()
		before := readings.Load()
		time.Sleep(time.Hour)
		if n := readings.Load() - before; n != 0 {
			t.Errorf("%d readings while nobody looks", n)
		}
		leave := f.enter()
		synctest.Wait()
		if n := readings.Load() - before; n != 1 {
			t.Errorf("%d readings for one who comes later, want 1", n)
		}
		leave()
		time.Sleep(linger)
		synctest.Wait()
	})
}

// Pages that are loaded again and again don't have anything read more often than a live view does.
func TestFeedIsNotHurried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var readings atomic.Int64
		f := &feed[int]{read: func(context.Context, int, func(int)) (int, time.Duration) {
			return int(readings.Add(1)), 2 * time.Second
		}}
		for range 1000 {
			f.fresh(t.Context(), patience, func(int) bool { return true })
			time.Sleep(10 * time.Millisecond)
		}
		if n := readings.Load(); n > 6 {
			t.Errorf("%d readings in 10s, want one in 2s", n)
		}
		time.Sleep(linger)
		synctest.Wait()
	})
}

// A reading that takes longer than anybody looks is stopped, and one who comes at that moment gets a new one.
func TestFeedStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int64
		f := &feed[int]{read: func(ctx context.Context, _ int, publish func(int)) (int, time.Duration) {
			publish(1)
			<-ctx.Done()
			ended.Add(1)
			return 2, time.Second
		}}
		leave := f.enter()
		synctest.Wait()
		if state, version, _ := f.look(); state != 1 || version != 1 {
			t.Errorf("state %d, version %d: want what was published in between", state, version)
		}
		leave()
		time.Sleep(linger - time.Nanosecond)
		leave = f.enter() // just in time
		time.Sleep(time.Minute)
		if ended.Load() != 0 {
			t.Error("a reading was stopped while somebody looked")
		}
		leave()
		time.Sleep(linger)
		synctest.Wait()
		if n := ended.Load(); n != 1 {
			t.Errorf("%d readings have ended, want 1", n)
		}
	})
}

// Redis goes away and comes back: the page says so, keeps what it knew, and recovers by itself.
func TestRedisDown(t *testing.T) {
	f := newFake(heldLock("order:42", clientA+":1"))
	s := serve(t, f, ShowKeys(Whole))
	next, _ := live(t, s, "events?of=list")
	if part := next(); !strings.Contains(part, "order:42") {
		t.Fatalf("first: %s", part)
	}
	f.fail(errDown)
	for part := next(); !strings.Contains(part, "does not answer") && !strings.Contains(part, "Not all of Redis"); part = next() {
	}
	a := get(t, s.URL+"/")
	a.wants(t, "while Redis is down", http.StatusOK, "connection refused", "order:42", "out of date")
	get(t, s.URL+"/lock?key=order:42").wants(t, "lock", http.StatusOK, "Redis does not answer", "connection refused")
	f.fail(nil)
	for part := next(); strings.Contains(part, "answer"); part = next() {
	}
	if a := get(t, s.URL+"/"); strings.Contains(a.body, "connection refused") {
		t.Errorf("after it came back:\n%s", a.body)
	}
	fresh := newFake()
	fresh.fail(errDown)
	get(t, serve(t, fresh).URL+"/").wants(t, "never there", http.StatusOK, "Redis does not answer since", "connection refused")
}

// live opens a stream, and returns what waits for its next part.
func live(t *testing.T, s *httptest.Server, page string) (next func() string, end func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/"+page, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = res.Body.Close() })
	if ct := res.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Fatalf("%s is %s", page, ct)
	}
	lines := bufio.NewReader(res.Body)
	next = func() string {
		var part strings.Builder
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("%s: %v", page, err)
			}
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok && part.Len() > 0 {
				return part.String()
			}
			if ok {
				part.WriteString(data)
			}
		}
	}
	return next, func() error { _, err := io.Copy(io.Discard, lines); return err }
}

// A server that shuts down does not wait for the pages that are open.
func TestShutdownEndsStreams(t *testing.T) {
	s := serve(t, newFake(heldLock("a", clientA+":1")))
	next, end := live(t, s, "events?of=list")
	next()
	guards, endGuards := live(t, s, "events?of=guards")
	guards()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := s.Config.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown = %v", err)
	}
	for _, end := range []func() error{end, endGuards} {
		if err := end(); err != nil {
			t.Errorf("the stream ended with %v", err)
		}
	}
}

// A lock's page shows what happens to it while it is open.
func TestLockIsLive(t *testing.T) {
	f := newFake()
	s := serve(t, f, AllowFree(allow))
	next, _ := live(t, s, "events?of=lock&key=a")
	if part := next(); !strings.Contains(part, "Nobody holds it") {
		t.Fatalf("free: %s", part)
	}
	f.put(heldLock("a", clientA+":1"))
	part := next()
	for ; !strings.Contains(part, "holds it"); part = next() {
	}
	if !strings.Contains(part, `href="free?ref=`) {
		t.Errorf("no link to free it: %s", part)
	}
}

// More streams than there is room for are refused, and those that end make room.
func TestStreamsAreBounded(t *testing.T) {
	var s streams
	for range mostStreams {
		if !s.enter() {
			t.Fatal("no room")
		}
	}
	if s.enter() {
		t.Error("room for one too many")
	}
	s.leave()
	if !s.enter() {
		t.Error("no room after one left")
	}
}

// Many readers and writers at once, for the race detector.
func TestManyViewers(t *testing.T) {
	f := newFake(heldLock("a", clientA+":1"))
	s := serve(t, f, AllowFree(allow))
	var viewers sync.WaitGroup
	for range 16 {
		viewers.Go(func() {
			for _, page := range []string{"/", "/lock?key=a", "/free?key=a", "/guards"} {
				res, err := http.Get(s.URL + page)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = io.Copy(io.Discard, res.Body)
				if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK {
					t.Errorf("%s: %s, %v", page, res.Status, err)
				}
			}
		})
	}
	viewers.Wait()
	if searches, inspects, _ := f.counts(); searches > 1 || inspects > 1+16 {
		t.Errorf("%d searches and %d looks for 16 viewers; want one search, and a look for all and one for each confirmation", searches, inspects)
	}
}

// While Redis does not answer, the list shows what was read as it was read, however often the page is made.
func TestOutageStopsTheClocks(t *testing.T) {
	h, err := newHandler(newFake(), nil, []Option{quiet})
	if err != nil {
		t.Fatal(err)
	}
	read := time.Now().Add(-10 * time.Second)
	s := &listState{rows: []row{{Object: heldLock("a", clientA+":1"), read: read, seen: read.Add(-time.Minute)}}, total: 1, took: 1, whole: read}
	for _, tt := range []struct {
		failed            error
		seen, left, total string
	}{{nil, "1m 10s", "13s", "1m 10s"}, {errDown, "1m 00s", "23s", "1m 00s"}} {
		s.failed = tt.failed
		b := h.listBody(listQuery{limit: firstPage}, s, nil)
		if r := b.Rows[0]; r.Seen.Text != tt.seen || r.Left.Text != tt.left || b.Summary.Oldest.Text != tt.total {
			t.Errorf("with %v: seen for %s, lease %s, oldest %s, want %+v", tt.failed, r.Seen.Text, r.Left.Text, b.Summary.Oldest.Text, tt)
		}
	}
}
