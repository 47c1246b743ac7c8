// Package etcdtest starts etcd for tests, examples and benchmarks: the embedded server, each member in a process of its own, which can
// be paused, killed, started again and cut off from the others. There is nothing to install.
//
// A member is the running program itself, started again. So a program that calls [Start] calls [Main] first:
//
//	func main() {
//		etcdtest.Main()
//		cluster, err := etcdtest.Start(etcdtest.Options{})
//		…
//		defer cluster.Stop()
//		client, err := clientv3.New(clientv3.Config{Endpoints: cluster.Endpoints()})
//
// A test does so in TestMain. Start fails without it, as a member would be the whole program once more.
package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/services"
)

// Options says what is started. Its zero value is one member for tests.
type Options struct {
	// Members is how many there are: 1 if it is 0.
	Members int
	// Durable has each member write to the disk what it commits, before it answers, as etcd does by default.
	Durable bool
	// Election is how long a member waits for its leader before it stands for election: etcd's default of a second if it is 0. The
	// shortest lease is one and a half times as long, in whole seconds.
	Election time.Duration
	// Quota is the size of the database, in bytes, at which etcd takes no more writes; etcd's default if it is 0.
	Quota int64
	// TokenTTL is how long a token of a user lasts that nobody uses, in whole seconds; etcd's default if it is 0.
	TokenTTL time.Duration
}

// Cluster is a running etcd.
type Cluster struct {
	Members []*Member
	dir     string

	mu    sync.Mutex
	hosts map[string]*Member // by the names that the members have for each other
}

// member returns the one with that name, or nil.
func (c *Cluster) member(host string) *Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hosts[host]
}

// startTimeout bounds how long a member may take until it is ready.
const startTimeout = 60 * time.Second

// Start starts a cluster. It ends with Stop, and at the latest with this process.
func Start(o Options) (*Cluster, error) {
	if !mainCalled.Load() {
		return nil, errors.New("etcdtest: Start without Main: each member is this program, started again, so main calls etcdtest.Main first, " +
			"and a test does: func TestMain(m *testing.M) { etcdtest.Main(); os.Exit(m.Run()) }")
	}
	dir, err := os.MkdirTemp("", "latchkey-etcd-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir}
	for range 3 { // somebody else may take a port that was free
		if err = c.prepare(o); err != nil {
			break
		}
		if err = c.runAll(); err == nil {
			return c, nil
		}
		c.end()
	}
	c.Stop()
	return nil, err
}

// prepare makes members that do not run yet.
func (c *Cluster) prepare(o Options) error {
	n := max(1, o.Members)
	c.Members = nil
	var cluster []string
	for i := range n {
		m, err := newMember(c, i, o)
		if err != nil {
			return err
		}
		c.Members = append(c.Members, m)
		cluster = append(cluster, m.setup.Name+"="+m.setup.PeerURL)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hosts = make(map[string]*Member)
	for _, m := range c.Members {
		m.setup.Cluster = strings.Join(cluster, ",")
		c.hosts[m.link.host] = m
		if err := os.RemoveAll(m.setup.Dir); err != nil {
			return err
		}
	}
	return nil
}

func newMember(c *Cluster, i int, o Options) (*Member, error) {
	link, err := newLink(c, i)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("m%d", i)
	client, peer := "127.0.0.1:"+services.FreePort(), "127.0.0.1:"+services.FreePort()
	return &Member{Endpoint: client, peer: peer, link: link, setup: setup{
		Name: name, Dir: filepath.Join(c.dir, name), ClientURL: "http://" + client, ListenURL: "http://" + peer,
		PeerURL: "http://" + link.host + ":2380", Durable: o.Durable, Election: o.Election, Quota: o.Quota, TokenTTL: o.TokenTTL,
	}}, nil
}

// runAll starts all members at once: the first ones are not ready before there is a majority.
func (c *Cluster) runAll() error {
	errs := make([]error, len(c.Members))
	var all sync.WaitGroup
	for i, m := range c.Members {
		all.Go(func() { errs[i] = m.Run() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Endpoints returns the addresses of all members, for clientv3.Config.
func (c *Cluster) Endpoints() (all []string) {
	for _, m := range c.Members {
		all = append(all, m.Endpoint)
	}
	return all
}

// Stop ends all members and removes their data.
func (c *Cluster) Stop() {
	c.end()
	_ = os.RemoveAll(c.dir)
}

func (c *Cluster) end() {
	for _, m := range c.Members {
		m.Kill()
		m.link.close()
	}
}

// ready waits for the end of said, or its first line.
func ready(ctx context.Context, lines <-chan string, m *Member) error {
	select {
	case line, ok := <-lines:
		if ok && line == readyLine {
			return nil
		}
		return fmt.Errorf("etcdtest: member %s did not start: %s%s", m.setup.Name, line, m.said)
	case <-ctx.Done():
		return fmt.Errorf("etcdtest: member %s is not ready after %v: %s", m.setup.Name, startTimeout, m.said)
	}
}
