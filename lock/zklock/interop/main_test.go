package interop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/zklock"
)

// session is the timeout of all sessions, on both sides.
const session = 2 * time.Second

var shared = sync.OnceValues(func() (*services.Server, error) { return services.ZooKeeper(services.Options{}) })

// childAddr has this program take a lock at that server and hold it until it is killed.
const childAddr = "LATCHKEY_ZKLOCK_CHILD"

func TestMain(m *testing.M) {
	if addr := os.Getenv(childAddr); addr != "" {
		hold(addr, os.Args[1])
	}
	code := m.Run()
	if wanted() {
		if s, err := shared(); err == nil {
			s.Stop()
		}
	}
	os.Exit(code)
}

func wanted() bool { return services.Required("zookeeper") || os.Getenv("LATCHKEY_INTEROP") == "1" }

// world is a key that both sides use, and who does.
type world struct {
	*testing.T
	addr   string
	key    string
	path   string // of the key's node
	locker *zklock.Locker
	java   *peer
}

const root = "/interop/locks"

// newWorld is a server with a Locker and a Java process of their own. Without the programs that it needs, the test is skipped.
func newWorld(t *testing.T, key string) *world {
	t.Helper()
	if !wanted() {
		t.Skip("builds and runs a Java program; set LATCHKEY_INTEROP=1 or LATCHKEY_REQUIRE=zookeeper")
	}
	for _, name := range []string{"javac", "mvn"} {
		if _, err := exec.LookPath(name); err != nil && !services.Required("zookeeper") {
			t.Skipf("needs a JDK 17 and Maven: %v", err)
		}
	}
	server, err := shared()
	switch {
	case errors.Is(err, services.ErrMissing) && !services.Required("zookeeper"):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	w := &world{T: t, addr: server.Addr, key: key, path: root + "/" + key}
	s, err := zklock.Connect([]string{server.Addr}, zklock.SessionTimeout(session))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if w.locker, err = zklock.New(s, zklock.Root(root)); err != nil {
		t.Fatal(err)
	}
	w.java = startPeer(t, server.Addr, session)
	return w
}

func (w *world) request(k lock.Kind, wait time.Duration) lock.Request {
	return lock.Request{Key: w.key, Kind: k, Wait: wait}
}

// take returns a hold that can be had within 20 s.
func (w *world) take(k lock.Kind) lock.Hold {
	w.Helper()
	h, err := w.locker.Acquire(w.Context(), w.request(k, 20*time.Second))
	if err != nil {
		w.Fatalf("Acquire of %v = %v", k, err)
	}
	return h
}

func (w *world) release(h lock.Hold) {
	w.Helper()
	if err := h.Release(context.WithoutCancel(w.Context())); err != nil {
		w.Fatalf("Release() = %v", err)
	}
}

// busy checks that the lock can't be had now.
func (w *world) busy(k lock.Kind) {
	w.Helper()
	if h, err := w.locker.Acquire(w.Context(), w.request(k, 0)); !errors.Is(err, lock.ErrBusy) {
		w.Fatalf("Acquire of %v = %v, %v, want %v", k, h, err, lock.ErrBusy)
	}
}

// waiting returns the holds of an Acquire that is in line.
func (w *world) waiting(k lock.Kind) <-chan lock.Hold {
	w.Helper()
	before := w.inLine()
	ch := make(chan lock.Hold, 1)
	go func() {
		h, err := w.locker.Acquire(w.Context(), w.request(k, time.Minute))
		if err != nil {
			w.Errorf("Acquire of %v = %v", k, err)
		}
		ch <- h
	}()
	w.longer(before)
	return ch
}

// hold is what a child process does.
func hold(addr, key string) {
	s, err := zklock.Connect([]string{addr}, zklock.SessionTimeout(session))
	if err == nil {
		var l *zklock.Locker
		if l, err = zklock.New(s, zklock.Root(root)); err == nil {
			_, err = l.Acquire(context.Background(), lock.Request{Key: key, Wait: 10 * time.Second})
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	select {}
}

// child starts a process that holds the key, and returns what kills it.
func (w *world) child() (kill func()) {
	w.Helper()
	cmd := exec.Command(os.Args[0], w.key)
	cmd.Env = append(os.Environ(), childAddr+"="+w.addr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	w.Cleanup(kill)
	said := make([]byte, 200)
	n, _ := out.Read(said)
	if !strings.HasPrefix(string(said[:n]), "held") {
		w.Fatalf("the child said %s", said[:n])
	}
	return kill
}
