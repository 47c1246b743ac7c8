package zklock_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/zklock"
)

// shared is a server that has served a little already, so that its first answers don't take longer than a short lease.
var shared = sync.OnceValues(func() (*services.Server, error) {
	s, err := services.ZooKeeper(services.Options{Args: []string{"maxSessionTimeout=60000"}})
	if err != nil {
		return nil, err
	}
	session, err := zklock.Connect([]string{s.Addr}, zklock.SessionTimeout(60*time.Second))
	if err != nil {
		return s, err
	}
	defer session.Close()
	l, err := zklock.New(session, zklock.Root("/warm"), zklock.Timeout(30*time.Second))
	for i := 0; err == nil && i < 300; i++ {
		var h lock.Hold
		if h, err = l.Acquire(context.Background(), lock.Request{Key: fmt.Sprint(i % 10), Wait: time.Minute}); err == nil {
			err = h.Release(context.Background())
		}
	}
	return s, err
})

func TestMain(m *testing.M) {
	if order := os.Getenv(childOrder); order != "" {
		runChild(order)
	}
	_ = flag.Set("test.parallel", "16") // most tests wait for most of their time
	s, err := shared()
	if errors.Is(err, services.ErrMissing) {
		_ = flag.Set("test.skip", "^Example") // which can't skip themselves
	}
	code := m.Run()
	if s != nil {
		s.Stop()
	}
	os.Exit(code)
}

// server returns the ZooKeeper that all tests share which do it no harm.
func server(tb testing.TB) *services.Server {
	tb.Helper()
	s, err := shared()
	switch {
	case errors.Is(err, services.ErrMissing) && !services.Required("zookeeper"):
		tb.Skipf("needs zookeeper: %v (or set LATCHKEY_REQUIRE=zookeeper to make this a failure)", err)
	case err != nil:
		tb.Fatal(err)
	}
	return s
}

// connect opens a session that ends with the test.
func connect(tb testing.TB, addr string, opts ...zklock.SessionOption) *zklock.Session {
	tb.Helper()
	s, err := zklock.Connect([]string{addr}, append([]zklock.SessionOption{zklock.SessionTimeout(4 * time.Second)}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

var roots sync.Map

// newLocker returns a Locker with a root of its own test.
func newLocker(tb testing.TB, s *zklock.Session, opts ...zklock.Option) *zklock.Locker {
	tb.Helper()
	l, err := zklock.New(s, append([]zklock.Option{zklock.Root(root(tb))}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// root is different for each test.
func root(tb testing.TB) string {
	n, _ := roots.LoadOrStore(tb.Name(), fmt.Sprintf("/test-%d-%d", os.Getpid(), time.Now().UnixNano()))
	return n.(string)
}
