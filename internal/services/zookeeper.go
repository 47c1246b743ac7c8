package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// zookeeperJar is where Debian puts ZooKeeper. Its manifest names the other jars that it needs.
const zookeeperJar = "/usr/share/java/zookeeper.jar"

// ZooKeeper starts a single ZooKeeper server. Options.Args are lines of its configuration, such as "tickTime=2000"; without that line
// a tick is 200 ms, so that sessions may have timeouts from 400 ms to 4 s.
func ZooKeeper(o Options) (*Server, error) {
	return startZooKeeper(o, func(*Server) error { return nil })
}

// ZooKeeperEnsemble starts n ZooKeeper servers that are one service, and waits until they have a leader. See [ZooKeeper].
func ZooKeeperEnsemble(n int, o Options) (all []*Server, err error) {
	defer func() {
		if err != nil {
			for _, s := range all {
				s.Stop()
			}
		}
	}()
	lines := []string{"initLimit=50", "syncLimit=10"}
	for i := range n {
		lines = append(lines, fmt.Sprintf("server.%d=127.0.0.1:%s:%s", i+1, FreePort(), FreePort()))
	}
	o.Args = append(lines, o.Args...)
	for i := range n {
		s, err := startZooKeeper(o, func(s *Server) error {
			return os.WriteFile(filepath.Join(s.Dir, "myid"), []byte(strconv.Itoa(i+1)), 0o600)
		})
		if err != nil {
			return all, err
		}
		all = append(all, s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return all, haveLeader(ctx, all)
}

// haveLeader waits until each server leads or follows.
func haveLeader(ctx context.Context, all []*Server) (err error) {
	for _, s := range all {
		err = errors.Join(err, Await(ctx, s.gone, func(ctx context.Context) error {
			mode, err := ZooKeeperMode(ctx, s.Addr)
			if err == nil && mode != "leader" && mode != "follower" {
				err = errors.New("services: ZooKeeper has no leader yet")
			}
			return err
		}))
	}
	return err
}

// ZooKeeperMode asks a server what it is: standalone, leader or follower, or nothing while it does not serve.
func ZooKeeperMode(ctx context.Context, addr string) (string, error) {
	text, err := ask(ctx, addr, "srvr", 0)
	_, mode, _ := strings.Cut(string(text), "\nMode: ")
	mode, _, _ = strings.Cut(mode, "\n")
	return mode, err
}

func startZooKeeper(o Options, prepare func(*Server) error) (*Server, error) {
	java, err := program("java", "default-jre-headless")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(zookeeperJar); err != nil {
		return nil, fmt.Errorf("%w: there is no %s; on Debian: apt-get install zookeeper", ErrMissing, zookeeperJar)
	}
	alone := true
	for _, line := range o.Args {
		alone = alone && !strings.HasPrefix(line, "server.")
	}
	sp := spec{path: java, options: Options{Env: o.Env}, end: syscall.SIGKILL, answers: zookeeperAnswers(alone)}
	sp.args = func(s *Server) []string {
		_ = configureZooKeeper(s, o) // without it, the server says what it misses
		return []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m",
			"-Dzookeeper.forceSync=no", "-Dznode.container.checkIntervalMs=1000",
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", zookeeperJar + ":/usr/share/java/slf4j-simple.jar",
			"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(s.Dir, "zoo.cfg")}
	}
	return launch("zookeeper", sp, prepare)
}

// configureZooKeeper writes the configuration of a server, whose address is known by now.
func configureZooKeeper(s *Server, o Options) error {
	host, port := s.HostPort()
	lines := append([]string{"tickTime=200", "dataDir=" + s.Dir, "clientPort=" + port, "clientPortAddress=" + host,
		"maxClientCnxns=0", "admin.enableServer=false", "4lw.commands.whitelist=srvr", "autopurge.purgeInterval=0"}, o.Args...)
	return os.WriteFile(filepath.Join(s.Dir, "zoo.cfg"), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

// zookeeperAnswers asks a server for its mode. One of several need not have one yet: the others may not have been started.
func zookeeperAnswers(alone bool) func(context.Context, *Server) error {
	return func(ctx context.Context, s *Server) error {
		mode, err := ZooKeeperMode(ctx, s.Addr)
		if err == nil && alone && mode == "" {
			err = errors.New("services: ZooKeeper does not serve yet")
		}
		return err
	}
}
