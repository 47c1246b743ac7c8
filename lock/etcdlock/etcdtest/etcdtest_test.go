package etcdtest_test

import (
	"context"
	"os"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/latchkey-go/latchkey/lock/etcdlock/etcdtest"
)

func TestMain(m *testing.M) {
	etcdtest.Main()
	os.Exit(m.Run())
}

func dial(t *testing.T, endpoints ...string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// put writes a key until that succeeds.
func put(ctx context.Context, t *testing.T, client *clientv3.Client) {
	t.Helper()
	for ctx.Err() == nil {
		attempt, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), 500*time.Millisecond)
		_, err := client.Put(attempt, "k", "v")
		cancel()
		if err == nil {
			return
		}
	}
	t.Fatal(ctx.Err())
}

func TestClusterSurvivesWhatIsDoneToAMember(t *testing.T) {
	start := time.Now()
	c, err := etcdtest.Start(etcdtest.Options{Members: 3, Election: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	t.Logf("three members after %v", time.Since(start))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	all := dial(t, c.Endpoints()...)
	put(ctx, t, all)

	m := c.Members[1]
	m.Cut()
	cut := dial(t, m.Endpoint)
	attempt, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	if _, err := cut.Put(attempt, "k", "v"); err == nil {
		t.Error("a member that is cut off takes a write")
	}
	put(ctx, t, dial(t, c.Members[0].Endpoint, c.Members[2].Endpoint))
	m.Heal()
	put(ctx, t, cut)

	if err := m.Pause(); err != nil {
		t.Fatal(err)
	}
	put(ctx, t, all)
	if err := m.Resume(); err != nil {
		t.Fatal(err)
	}
	m.Kill()
	put(ctx, t, all)
	if err := m.Run(); err != nil {
		t.Fatal(err)
	}
	put(ctx, t, cut)
}
