package zklock_test

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/latchkey-go/latchkey/lock"
)

// The counter of a key's node comes near its end, and begins again. Nobody gets the lock out of turn, and tokens go on rising.
func TestCounterBeginsAgain(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("javac"); err != nil {
		t.Skipf("sets the counter with a Java program, which needs a JDK: %v", err)
	}
	s := services.Start(t, "zookeeper", services.ZooKeeper, services.Options{Args: []string{"maxSessionTimeout=60000"}})
	c := observer(t, s.Addr)
	for _, path := range []string{root(t), root(t) + "/k"} { // that stay when they are empty
		if _, err := c.Create(path, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	const last = 1<<31 - 1 - 1<<20
	out, err := exec.Command("java", "-cp", "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar", "testdata/Counter.java",
		s.Dir, root(t)+"/k", strconv.Itoa(last)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	l := newLocker(t, connect(t, s.Addr))
	sequence := func() int {
		names, _, err := observer(t, s.Addr).Children(root(t) + "/k")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if i := strings.LastIndex(name, "lock-"); i >= 0 {
				n, _ := strconv.Atoi(name[i+5:])
				return n
			}
		}
		return -1
	}
	h := afterOutage(t, l, lock.Request{Key: "k", Kind: lock.Fenced})
	if n := sequence(); n != last {
		t.Fatalf("the first node has the number %d, want %d", n, last)
	}
	if _, err := newLocker(t, connect(t, s.Addr)).Acquire(t.Context(), lock.Request{Key: "k"}); err == nil {
		t.Error("Acquire beyond the end of the counter succeeds")
	}
	waiter := acquire(t, l, lock.Request{Key: "k", Kind: lock.Fenced, Wait: time.Minute})
	<-time.After(100 * time.Millisecond)
	release(t, h)
	next := waiter.held()
	if n := sequence(); n < 0 || n > 1000 {
		t.Errorf("the next node has the number %d: the counter has not begun again", n)
	}
	if token(next) <= token(h) {
		t.Errorf("token %d follows %d", token(next), token(h))
	}
	release(t, next)
}
