package zklock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/zklock"
)

func TestMistakesOfConfiguration(t *testing.T) {
	for want, mistaken := range map[string]func() error{
		"no servers": func() error { _, err := zklock.Connect(nil); return err },
		"chroot":     func() error { _, err := zklock.Connect([]string{"h:1/app"}); return err },
		"of its own": func() error { _, err := zklock.Connect([]string{"h:1,h:2"}); return err },
		"under 100ms": func() error {
			_, err := zklock.Connect([]string{"h:1"}, zklock.SessionTimeout(time.Millisecond))
			return err
		},
		"dialer is nil":  func() error { _, err := zklock.Connect([]string{"h:1"}, zklock.Dialer(nil)); return err },
		"no session":     func() error { _, err := zklock.New(nil); return err },
		"must begin":     func() error { return mistake(t, zklock.Root("locks")) },
		"ZooKeeper's":    func() error { return mistake(t, zklock.Root("/zookeeper/x")) },
		"ACL is empty":   func() error { return mistake(t, zklock.ACL()) },
		"timeout of 1µs": func() error { return mistake(t, zklock.Timeout(time.Microsecond)) },
	} {
		if err := mistaken(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// nobody is where no server listens.
func nobody(t *testing.T) *zklock.Session {
	t.Helper()
	s, err := zklock.Connect([]string{"127.0.0.1:1"}, zklock.SessionTimeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func mistake(t *testing.T, o zklock.Option) error {
	_, err := zklock.New(nobody(t), o)
	return err
}

func TestWithoutAServer(t *testing.T) {
	l, err := zklock.New(nobody(t), zklock.Timeout(200*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	for _, wait := range []time.Duration{0, 100 * time.Millisecond, -1} {
		start := time.Now()
		_, err := l.Acquire(t.Context(), lock.Request{Key: "k", Wait: wait})
		if err == nil || !strings.Contains(err.Error(), "no answer") {
			t.Errorf("Acquire without a server = %v", err)
		}
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("Acquire without a server takes %v", d)
		}
	}
}
