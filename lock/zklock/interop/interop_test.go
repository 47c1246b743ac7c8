package interop

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/latchkey-go/latchkey/lock"
)

// exclusions are kinds of the two sides that exclude each other.
var exclusions = []struct {
	ours   lock.Kind
	theirs string
}{
	{lock.Exclusive, "mutex"},
	{lock.Fair, "mutex"},
	{lock.Fenced, "mutex"},
	{lock.Write, "write"},
	{lock.Write, "read"},
	{lock.Read, "write"},
}

func TestCuratorHoldsAndWeWait(t *testing.T) {
	w := newWorld(t, "order:42")
	for _, e := range exclusions {
		w.java.call(t, "true", "a", "acquire", e.theirs, w.path, 10000)
		w.busy(e.ours)
		h := w.waiting(e.ours)
		w.java.call(t, "ok", "a", "release", e.theirs, w.path)
		w.release(<-h)
	}
}

func TestWeHoldAndCuratorWaits(t *testing.T) {
	w := newWorld(t, "größe 43")
	for _, e := range exclusions {
		h := w.take(e.ours)
		w.java.call(t, "false", "a", "acquire", e.theirs, w.path, 0)
		before := w.inLine()
		waits := w.java.send("a", "acquire", e.theirs, w.path, 20000)
		w.longer(before)
		w.release(h)
		if a := <-waits; a.value != "true" {
			t.Fatalf("Curator waits for %s beside %v and gets %+v", e.theirs, e.ours, a)
		}
		w.busy(e.ours)
		w.java.call(t, "ok", "a", "release", e.theirs, w.path)
	}
}

func TestReadersShare(t *testing.T) {
	w := newWorld(t, "readers")
	h := w.take(lock.Read)
	w.java.call(t, "true", "a", "acquire", "read", w.path, 0)
	w.release(w.take(lock.Read))
	w.release(h)
	w.busy(lock.Write)
	w.java.call(t, "ok", "a", "release", "read", w.path)
	w.release(w.take(lock.Write))
}

func TestOneLineForBothSides(t *testing.T) {
	w := newWorld(t, "line")
	h := w.take(lock.Exclusive)
	first := w.waiting(lock.Exclusive)
	before := w.inLine()
	second := w.java.send("a", "acquire", "mutex", w.path, 20000)
	w.longer(before)
	third := w.waiting(lock.Exclusive)
	w.release(h)
	h = <-first
	select {
	case a := <-second:
		t.Fatalf("Curator overtakes: %+v", a)
	case <-third:
		t.Fatal("the last in line overtakes")
	case <-time.After(100 * time.Millisecond):
	}
	w.release(h)
	if a := <-second; a.value != "true" {
		t.Fatalf("Curator, second in line, gets %+v", a)
	}
	w.java.call(t, "ok", "a", "release", "mutex", w.path)
	w.release(<-third)
}

func TestTokensRiseOnBothSides(t *testing.T) {
	w := newWorld(t, "tokens")
	var tokens []int64
	for range 3 {
		h := w.take(lock.Fenced)
		tokens = append(tokens, h.(interface{ Token() int64 }).Token())
		w.release(h)
		w.java.call(t, "true", "a", "acquire", "mutex", w.path, 10000)
		a := <-w.java.send("a", "token", "mutex", w.path)
		theirs, err := strconv.ParseInt(a.value, 10, 64)
		if err != nil {
			t.Fatalf("the token of Curator's holder: %+v", a)
		}
		tokens = append(tokens, theirs)
		w.java.call(t, "ok", "a", "release", "mutex", w.path)
	}
	if !slices.IsSorted(tokens) || len(slices.Compact(slices.Clone(tokens))) != len(tokens) {
		t.Errorf("tokens = %v", tokens)
	}
}

func TestOurWriterBecomesAReader(t *testing.T) {
	w := newWorld(t, "downgrade")
	writer := w.take(lock.Write)
	reader, err := w.locker.Acquire(writer.Context(), w.request(lock.Read, 0))
	if err != nil {
		t.Fatal(err)
	}
	before := w.inLine()
	theirs := w.java.send("w", "acquire", "write", w.path, 20000)
	w.longer(before)
	w.release(writer)
	// The reader has kept its place before the writer in line, and who comes after that one waits.
	w.java.call(t, "false", "r", "acquire", "read", w.path, 300)
	w.release(reader)
	if a := <-theirs; a.value != "true" {
		t.Fatalf("Curator's writer gets %+v", a)
	}
	w.java.call(t, "ok", "w", "release", "write", w.path)

	writer = w.take(lock.Write)
	if reader, err = w.locker.Acquire(writer.Context(), w.request(lock.Read, 0)); err != nil {
		t.Fatal(err)
	}
	before = w.inLine()
	theirs = w.java.send("r", "acquire", "read", w.path, 20000)
	w.longer(before)
	w.release(writer)
	if a := <-theirs; a.value != "true" {
		t.Fatalf("Curator's reader gets %+v beside a downgraded writer", a)
	}
	w.java.call(t, "false", "w", "acquire", "write", w.path, 0)
	w.java.call(t, "ok", "r", "release", "read", w.path)
	w.release(reader)
}

func TestCuratorsWriterBecomesAReader(t *testing.T) {
	w := newWorld(t, "theirs")
	w.java.call(t, "true", "a", "acquire", "write", w.path, 0)
	w.java.call(t, "true", "a", "acquire", "read", w.path, 0)
	w.busy(lock.Read)
	ours := w.waiting(lock.Read)
	w.java.call(t, "ok", "a", "release", "write", w.path)
	w.release(<-ours)
	w.busy(lock.Write)
	w.java.call(t, "ok", "a", "release", "read", w.path)
	w.release(w.take(lock.Write))
}

func TestCuratorCrashes(t *testing.T) {
	w := newWorld(t, "crash")
	w.java.call(t, "true", "a", "acquire", "mutex", w.path, 0)
	ours := w.waiting(lock.Exclusive)
	killed := time.Now()
	w.java.kill()
	w.release(<-ours)
	if d := time.Since(killed); d < session/4 || d > 4*session {
		t.Errorf("the lock of a Curator that crashed is free after %v; its session's timeout is %v", d, session)
	}
}

func TestWeCrash(t *testing.T) {
	w := newWorld(t, "our-crash")
	kill := w.child()
	w.java.call(t, "false", "a", "acquire", "mutex", w.path, 0)
	theirs := w.java.send("a", "acquire", "mutex", w.path, 20000)
	killed := time.Now()
	kill()
	if a := <-theirs; a.value != "true" {
		t.Fatalf("after the crash of a holder, Curator gets %+v", a)
	}
	if d := time.Since(killed); d > 4*session {
		t.Errorf("Curator has the lock %v after the crash of its holder; its session's timeout is %v", d, session)
	}
	w.java.call(t, "ok", "a", "release", "mutex", w.path)
}

// Each side adds to the number in a file that both have, under the lock: two at a time would lose some.
func TestBothSidesCount(t *testing.T) {
	for _, e := range []struct {
		ours   lock.Kind
		theirs []string
	}{
		{lock.Exclusive, []string{"mutex", "mutex", "mutex"}},
		{lock.Write, []string{"write", "read", "write"}},
	} {
		w := newWorld(t, "count-"+e.ours.String())
		file := filepath.Join(t.TempDir(), "count")
		if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
			t.Fatal(err)
		}
		const rounds = 30
		want := 3 * rounds
		var sides sync.WaitGroup
		for i, theirs := range e.theirs {
			if theirs != "read" {
				want += rounds
			}
			answer := w.java.send(strconv.Itoa(i), "count", theirs, w.path, file, rounds)
			sides.Go(func() {
				if a := <-answer; a.err != nil {
					t.Error(a.err)
				}
			})
			sides.Go(func() { w.count(e.ours, file, rounds) })
		}
		sides.Wait()
		if text, err := os.ReadFile(file); err != nil || string(text) != strconv.Itoa(want) {
			t.Errorf("%v beside %v counted to %s, %v, want %d", e.ours, e.theirs, text, err, want)
		}
		if n := w.inLine(); n != 0 {
			t.Errorf("%d nodes are left in line", n)
		}
	}
}

func (w *world) count(k lock.Kind, file string, rounds int) {
	for range rounds {
		h, err := w.locker.Acquire(w.Context(), w.request(k, -1))
		if err != nil {
			w.Error(err)
			return
		}
		text, err := os.ReadFile(file)
		n, err2 := strconv.Atoi(string(text))
		if err != nil || err2 != nil {
			w.Error(err, err2)
		}
		<-time.After(time.Millisecond)
		if err := os.WriteFile(file, []byte(strconv.Itoa(n+1)), 0o600); err != nil {
			w.Error(err)
		}
		if err := h.Release(w.Context()); err != nil {
			w.Error(err)
		}
	}
}

// inLine returns how many nodes are in line for the key.
func (w *world) inLine() int {
	w.Helper()
	c, _, err := zk.Connect([]string{w.addr}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		w.Fatal(err)
	}
	defer c.Close()
	names, _, err := c.Children(w.path)
	if err != nil && err != zk.ErrNoNode {
		w.Fatal(err)
	}
	return len(slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "_c_") }))
}

// longer waits until the line is longer than before.
func (w *world) longer(before int) {
	w.Helper()
	for end := time.Now().Add(20 * time.Second); w.inLine() <= before; {
		if time.Now().After(end) {
			w.Fatalf("after 20s there are still %d nodes in line", before)
		}
	}
}
