package etcdlock_test

import (
	"flag"
	"os"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/latchkey-go/latchkey/lock/etcdlock"
	"github.com/latchkey-go/latchkey/lock/etcdlock/etcdtest"
)

// TestMain is also what the other processes of these tests run: members of a cluster, and workers.
func TestMain(m *testing.M) {
	etcdtest.Main()
	work()
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil { // most of the time is spent waiting
		panic(err)
	}
	code := m.Run()
	if shared.cluster != nil {
		shared.cluster.Stop()
	}
	os.Exit(code)
}

// turns and crowds bound what runs at the same time: a machine of two processors is too slow for more.
var turns, crowds = make(chan struct{}, 3), make(chan struct{}, 1)

// parallel is t.Parallel, but not for too many tests at once.
func parallel(t *testing.T) {
	t.Helper()
	t.Parallel()
	enter(t, turns)
}

// enter takes a place until the test ends.
func enter(tb testing.TB, places chan struct{}) {
	places <- struct{}{}
	tb.Cleanup(func() { <-places })
}

// election is short, so that leases may be: 1s is the shortest.
const election = 300 * time.Millisecond

// start starts a cluster for one test.
func start(tb testing.TB, o etcdtest.Options) *etcdtest.Cluster {
	tb.Helper()
	if o.Members > 1 {
		enter(tb, crowds)
	}
	if o.Election == 0 {
		o.Election = election
	}
	c, err := etcdtest.Start(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Stop)
	return c
}

var shared struct {
	once    sync.Once
	cluster *etcdtest.Cluster
	err     error
}

// single returns a member that many tests share. It ends with this process.
func single(tb testing.TB) *etcdtest.Cluster {
	tb.Helper()
	shared.once.Do(func() { shared.cluster, shared.err = etcdtest.Start(etcdtest.Options{Election: election}) })
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.cluster
}

// dial returns a client, closed when the test ends.
func dial(tb testing.TB, endpoints ...string) *clientv3.Client {
	tb.Helper()
	return dialWith(tb, endpoints)
}

func dialWith(tb testing.TB, endpoints []string, opts ...grpc.DialOption) *clientv3.Client {
	tb.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(), DialTimeout: 5 * time.Second, DialOptions: opts})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// locker returns a Locker with the options on client.
func locker(tb testing.TB, client *clientv3.Client, opts ...etcdlock.Option) *etcdlock.Locker {
	tb.Helper()
	l, err := etcdlock.New(client, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}
