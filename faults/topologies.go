package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey/faults/server"
	"github.com/latchkey-go/latchkey/faults/worker"
	"github.com/redis/go-redis/v9"
)

const (
	slots      = 16384
	masterName = "latchkey"
	// settleTimeout bounds how long a change may take to be known to all servers.
	settleTimeout = time.Minute
)

// until waits until ok reports true.
func until(ctx context.Context, what string, ok func() bool) error {
	for deadline := time.Now().Add(settleTimeout); !ok(); sleep(ctx, 10*time.Millisecond) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %s", settleTimeout, what)
		}
	}
	return nil
}

// replication reports whether that section of INFO has that text.
func replication(ctx context.Context, s *server.Server, text string) bool {
	got, err := s.Admin.Info(ctx, "replication").Result()
	return err == nil && strings.Contains(got, text)
}

// sentinels has the second server replicate the first, and three sentinels watch over them.
func sentinels(ctx context.Context, w *world) error {
	host, port := w.servers[0].HostPort()
	replica := w.servers[1]
	if err := admin(ctx, replica, "replicaof", host, port); err != nil {
		return err
	}
	if err := until(ctx, "the replica is in sync", func() bool { return replication(ctx, replica, "master_link_status:up") }); err != nil {
		return err
	}
	e := worker.Endpoint{Name: "s0", URL: masterName}
	for i := range 3 {
		s, err := server.Start(ctx, server.Config{Name: "sentinel" + strconv.Itoa(i), Dir: filepath.Join(w.dir, "sentinel"+strconv.Itoa(i)), Sentinel: []string{
			"sentinel monitor " + masterName + " " + host + " " + port + " 2",
			"sentinel down-after-milliseconds " + masterName + " 700",
			"sentinel failover-timeout " + masterName + " 3000",
			"sentinel parallel-syncs " + masterName + " 1",
		}})
		if err != nil {
			return err
		}
		w.sentinels = append(w.sentinels, s)
		e.Sentinels = append(e.Sentinels, s.Addr)
	}
	w.endpoint = &e
	return until(ctx, "the sentinels know each other and the replica", func() bool { return w.watched(ctx) })
}

// watched reports whether all sentinels know of two others, of a master that is well, and of a replica that is.
func (w *world) watched(ctx context.Context) bool {
	return !slices.ContainsFunc(w.sentinels, func(s *server.Server) bool {
		m, err := s.Admin.Do(ctx, "sentinel", "master", masterName).Result()
		text := fmt.Sprint(m)
		r, err2 := s.Admin.Do(ctx, "sentinel", "replicas", masterName).Result()
		return errors.Join(err, err2) != nil || !strings.Contains(text, "flags:master ") || !strings.Contains(text, "num-other-sentinels:2") ||
			!strings.Contains(text, "num-slaves:1") || !strings.Contains(fmt.Sprint(r), "flags:slave ") || !strings.Contains(fmt.Sprint(r), "master-link-status:ok")
	})
}

// master returns the server that the sentinels name.
func (w *world) master(ctx context.Context) (*server.Server, error) {
	for _, s := range w.sentinels {
		at, err := s.Admin.Do(ctx, "sentinel", "get-master-addr-by-name", masterName).StringSlice()
		if err != nil || len(at) != 2 {
			continue
		}
		if i := slices.IndexFunc(w.servers, func(s *server.Server) bool { return s.Addr == net.JoinHostPort(at[0], at[1]) }); i >= 0 {
			return w.servers[i], nil
		}
	}
	return nil, errors.New("the sentinels name no master")
}

// failover lets something happen to the master, and waits until another one has its place and all is well.
func failover(happen func(ctx context.Context, s *stage, master *server.Server) (undo func() error, err error)) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		before, err := s.master(ctx)
		if err != nil {
			return err
		}
		undo, err := happen(ctx, s, before)
		if err != nil {
			return err
		}
		err = until(ctx, "another server is the master", func() bool {
			now, err := s.master(ctx)
			return err == nil && now != before && replication(ctx, now, "role:master")
		})
		if err := errors.Join(err, undo()); err != nil {
			return err
		}
		sleep(ctx, time.Second) // the sentinels would demote it only after 8 seconds
		now, err := s.master(ctx)
		if err != nil {
			return err
		}
		host, port := now.HostPort()
		return errors.Join(admin(ctx, before, "replicaof", host, port), until(ctx, "the sentinels are content", func() bool { return s.watched(ctx) }))
	}
}

// The kinds of fault of a master with a replica, under sentinels. Replication is asynchronous: a replica that leads may lack data.
var sentinelKinds = []kind{
	{name: "sentinel failover", lost: true, strike: failover(func(ctx context.Context, s *stage, _ *server.Server) (func() error, error) {
		return func() error { return nil }, admin(ctx, s.sentinels[0], "sentinel", "failover", masterName)
	})},
	{name: "master killed, replica promoted", lost: true, strike: failover(func(ctx context.Context, _ *stage, m *server.Server) (func() error, error) {
		m.Kill()
		return func() error { return m.Run(ctx) }, nil
	})},
	{name: "master stopped, replica promoted", lost: true, strike: failover(func(_ context.Context, _ *stage, m *server.Server) (func() error, error) {
		return func() error { return m.Signal(syscall.SIGCONT) }, m.Signal(syscall.SIGSTOP)
	})},
	{name: "too few replicas (NOREPLICAS)", strike: func(ctx context.Context, s *stage) error {
		m, err := s.master(ctx)
		if err != nil {
			return err
		}
		err = admin(ctx, m, "config", "set", "min-replicas-to-write", 2)
		sleep(ctx, s.between(300, 1500))
		return errors.Join(err, admin(ctx, m, "config", "set", "min-replicas-to-write", 0), until(ctx, "the sentinels are content", func() bool { return s.watched(ctx) }))
	}},
}

// cluster joins the first half of the servers as masters, and the others as their replicas.
func cluster(ctx context.Context, w *world) (err error) {
	n := len(w.servers) / 2
	for i, v := range w.servers[:n] {
		from, to := i*slots/n, (i+1)*slots/n-1
		err = errors.Join(err, admin(ctx, v, "cluster", "addslotsrange", from, to), admin(ctx, v, "cluster", "set-config-epoch", i+1))
	}
	for _, v := range w.servers[1:] {
		host, port := v.HostPort()
		err = errors.Join(err, admin(ctx, w.servers[0], "cluster", "meet", host, port, v.Bus))
	}
	if err != nil {
		return err
	}
	all := fmt.Sprintf("cluster_known_nodes:%d", len(w.servers))
	if err := until(ctx, "all nodes know each other", func() bool {
		return !slices.ContainsFunc(w.servers, func(v *server.Server) bool {
			known, err := v.Admin.ClusterInfo(ctx).Result()
			return err != nil || !strings.Contains(known, "cluster_state:ok") || !strings.Contains(known, all)
		})
	}); err != nil {
		return err
	}
	for i, v := range w.servers[n:] {
		id, err := w.servers[i].Admin.Do(ctx, "cluster", "myid").Text()
		if err := errors.Join(err, admin(ctx, v, "cluster", "replicate", id)); err != nil {
			return err
		}
	}
	w.endpoint = &worker.Endpoint{Name: "s0", URL: fmt.Sprintf("redis://%s:%s@%s?addr=%s&addr=%s", server.User, server.Password,
		w.servers[0].Addr, w.servers[1].Addr, w.servers[2].Addr)}
	return until(ctx, "each master has a replica", func() bool { return w.whole(ctx) })
}

// whole reports whether each node sees all slots served by a master with a replica, and all replicas are in sync.
func (w *world) whole(ctx context.Context) bool {
	return !slices.ContainsFunc(w.servers, func(v *server.Server) bool {
		parts, err := v.Admin.ClusterSlots(ctx).Result() //nolint:staticcheck // it is what go-redis itself asks
		known, err2 := v.Admin.ClusterInfo(ctx).Result()
		served := 0
		for _, p := range parts {
			if len(p.Nodes) == 2 {
				served += p.End - p.Start + 1
			}
		}
		return errors.Join(err, err2) != nil || served != slots || !strings.Contains(known, "cluster_state:ok") || replication(ctx, v, "master_link_status:down")
	})
}

// masters returns those that serve slots now.
func (w *world) masters(ctx context.Context) (all []*server.Server) {
	for _, v := range w.servers {
		if replication(ctx, v, "role:master") {
			all = append(all, v)
		}
	}
	return all
}

// The kinds of fault of a cluster. Those by which a replica becomes a master may lose data.
var clusterKinds = []kind{
	{name: "slots migrate", strike: migrate(moveByKey)},
	{name: "slots migrate at once", command: "cluster|migrateslots", strike: migrate(moveAtOnce)},
	{name: "cluster master stopped", lost: true, strike: anyMaster(func(ctx context.Context, s *stage, m *server.Server) error {
		err := m.Signal(syscall.SIGSTOP)
		sleep(ctx, s.between(300, 3500))
		return errors.Join(err, m.Signal(syscall.SIGCONT), until(ctx, "the cluster is whole", func() bool { return s.whole(ctx) }))
	})},
	{name: "cluster master lost", lost: true, strike: anyMaster(func(ctx context.Context, s *stage, m *server.Server) error {
		m.Kill()
		err := until(ctx, "a replica leads", func() bool { return len(s.masters(ctx)) == len(s.servers)/2 })
		return errors.Join(err, m.Run(ctx), until(ctx, "the cluster is whole", func() bool { return s.whole(ctx) }))
	})},
	{name: "cluster failover", lost: true, strike: func(ctx context.Context, s *stage) error {
		masters := s.masters(ctx)
		for _, v := range s.servers {
			if !slices.Contains(masters, v) {
				err := admin(ctx, v, "cluster", "failover")
				return errors.Join(err, until(ctx, "the replica leads", func() bool { return replication(ctx, v, "role:master") }),
					until(ctx, "the cluster is whole", func() bool { return s.whole(ctx) }))
			}
		}
		return errors.New("there is no replica")
	}},
	{name: "address changed", lost: true, strike: anyMaster(func(ctx context.Context, s *stage, m *server.Server) error {
		m.Kill()
		err := m.Move(ctx)
		s.wires[slices.Index(s.servers, m)].Move(m.Addr)
		return errors.Join(err, until(ctx, "the cluster is whole", func() bool { return s.whole(ctx) }))
	})},
}

// offers reports whether the servers know a command.
func (w *world) offers(ctx context.Context, command string) bool {
	known, err := w.servers[0].Admin.Do(ctx, "command", "info", command).Slice()
	return err == nil && len(known) == 1 && known[0] != nil
}

// anyMaster lets something happen to one of the masters.
func anyMaster(happen func(context.Context, *stage, *server.Server) error) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		all := s.masters(ctx)
		if len(all) == 0 {
			return errors.New("there is no master")
		}
		return happen(ctx, s, all[s.rng.IntN(len(all))])
	}
}

// keyOf is a name that a kind of lock has in this round.
func (s *stage) keyOf(kind string, i int) string {
	return fmt.Sprintf("r%d:%s:%d", s.order.Round, worker.Names(kind), i)
}

// migrate moves the slots of some keys that are in use to other masters, one after the other, in the given way.
func migrate(move func(ctx context.Context, s *stage, slot int64, from, to *server.Server) error) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		for i := range 12 {
			key := s.order.Mix[i%len(s.order.Mix)]
			slot, err := s.servers[0].Admin.ClusterKeySlot(ctx, s.keyOf(key, i%s.order.Keys)).Result()
			if err != nil {
				return err
			}
			from, to, err := s.movers(ctx, slot)
			if err != nil {
				return err
			}
			if err := move(ctx, s, slot, from, to); err != nil {
				return err
			}
		}
		return nil
	}
}

// movers are the master of a slot, and another one.
func (s *stage) movers(ctx context.Context, slot int64) (from, to *server.Server, err error) {
	masters := s.masters(ctx)
	parts, err := masters[0].Admin.ClusterSlots(ctx).Result() //nolint:staticcheck // it is what go-redis itself asks
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(parts, func(p redis.ClusterSlot) bool { return int64(p.Start) <= slot && slot <= int64(p.End) })
	j := slices.IndexFunc(masters, func(v *server.Server) bool { return i >= 0 && v.Addr == parts[i].Nodes[0].Addr })
	if j < 0 {
		return nil, nil, fmt.Errorf("nobody has slot %d", slot)
	}
	return masters[j], masters[(j+1)%len(masters)], nil
}

// moveAtOnce moves a slot as Valkey does from version 9 on: all keys change their master at the same time.
func moveAtOnce(ctx context.Context, s *stage, slot int64, from, to *server.Server) error {
	id, err := to.Admin.Do(ctx, "cluster", "myid").Text()
	if err := errors.Join(err, admin(ctx, from, "cluster", "migrateslots", "slotsrange", slot, slot, "node", id)); err != nil {
		return err
	}
	err = until(ctx, "the slot has moved", func() bool {
		moves, err := from.Admin.Do(ctx, "cluster", "getslotmigrations").Slice()
		return err == nil && len(moves) > 0 && strings.Contains(fmt.Sprint(moves[0]), "success")
	})
	sleep(ctx, s.between(5, 150))
	return errors.Join(err, until(ctx, "the cluster is whole", func() bool { return s.whole(ctx) }))
}

// moveByKey moves a slot key by key, with a pause while it is on the move.
func moveByKey(ctx context.Context, s *stage, slot int64, from, to *server.Server) error {
	fromID, err1 := from.Admin.Do(ctx, "cluster", "myid").Text()
	toID, err2 := to.Admin.Do(ctx, "cluster", "myid").Text()
	if err := errors.Join(err1, err2, admin(ctx, to, "cluster", "setslot", slot, "importing", fromID),
		admin(ctx, from, "cluster", "setslot", slot, "migrating", toID)); err != nil {
		return err
	}
	sleep(ctx, s.between(5, 150))
	host, port := to.HostPort()
	for {
		keys, err := from.Admin.ClusterGetKeysInSlot(ctx, int(slot), 100).Result()
		if err != nil || len(keys) == 0 {
			err = errors.Join(err, admin(ctx, to, "cluster", "setslot", slot, "node", toID), admin(ctx, from, "cluster", "setslot", slot, "node", toID))
			for _, m := range s.masters(ctx) {
				err = errors.Join(err, admin(ctx, m, "cluster", "setslot", slot, "node", toID))
			}
			return err
		}
		for _, k := range keys {
			if err := admin(ctx, from, "migrate", host, port, k, 0, 5000); err != nil {
				return err
			}
		}
	}
}
