package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/zap"

	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/etcdlock"
	"github.com/latchkey-go/latchkey/lock/etcdlock/etcdtest"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/lock/mongolock"
	"github.com/latchkey-go/latchkey/lock/setnxlock"
	"github.com/latchkey-go/latchkey/lock/zklock"
	"github.com/latchkey-go/latchkey/redisson"
)

// service is a lock service that the flag -locker names.
type service struct {
	name     string
	example  string // of an -addr
	local    bool   // its locks are those of one process
	embedded bool   // it needs no -start
	start    func() (addr string, stop func(), err error)
	// open connects to the service. The function that it returns closes what it has opened.
	open func(ctx context.Context, addr string) (lock.Locker, func() error, error)
}

// all are the services in the order of the page docs/choosing.md.
var all = []service{
	{name: "memory", local: true, embedded: true, start: nowhere, open: openMemory},
	{name: "redis", example: "redis://localhost:6379", start: server(services.Redis, "redis://%s"), open: openRedisson},
	{name: "setnx", example: "redis://localhost:6379", start: server(services.Redis, "redis://%s"), open: openSetNX},
	{name: "etcd", example: "localhost:2379,localhost:2479", embedded: true, start: startEtcd, open: openEtcd},
	{name: "zookeeper", example: "localhost:2181,localhost:2182", start: server(services.ZooKeeper, "%s"), open: openZooKeeper},
	{name: "postgres", example: "postgres://user:secret@localhost:5432/app",
		start: server(services.Postgres, "postgres://postgres@%s/postgres?sslmode=disable"), open: openPostgres},
	{name: "mysql", example: "user:secret@tcp(localhost:3306)/app", start: server(services.MariaDB, "root@tcp(%s)/test"), open: openMySQL},
	{name: "sqlite", example: "/var/lib/app/locks.db", embedded: true, start: startSQLite, open: openSQLite},
	{name: "mongo", example: "mongodb://localhost:27017", start: server(services.MongoDB, "mongodb://%s/?directConnection=true"), open: openMongo},
}

func find(name string) (service, error) {
	i := slices.IndexFunc(all, func(s service) bool { return s.name == name })
	if i < 0 {
		return service{}, fmt.Errorf("there is no locker %q; there are %s", name, names())
	}
	return all[i], nil
}

func names() string {
	var list []string
	for _, s := range all {
		list = append(list, s.name)
	}
	return strings.Join(list, ", ")
}

// where returns the address that the flags ask for, and a function that ends what was started for it.
func (s service) where(set settings) (addr string, stop func(), err error) {
	switch {
	case set.addr != "" && set.start:
		return "", nil, fmt.Errorf("-addr is where a server is, and -start starts another one: give one of them")
	case set.addr != "":
		return set.addr, func() {}, nil
	case set.start, s.embedded:
		return s.start()
	}
	return "", nil, fmt.Errorf("-locker %s needs -addr, such as %s, or -start for a private server", s.name, s.example)
}

// server starts a private server. Its address is put into the text.
func server(start services.Starter, text string) func() (string, func(), error) {
	return func() (string, func(), error) {
		s, err := start(services.Options{})
		if err != nil {
			return "", nil, err
		}
		return fmt.Sprintf(text, s.Addr), s.Stop, nil
	}
}

func nowhere() (string, func(), error) { return "", func() {}, nil }

func openMemory(context.Context, string) (lock.Locker, func() error, error) {
	return memlock.New(), func() error { return nil }, nil
}

func openRedisson(_ context.Context, addr string) (lock.Locker, func() error, error) {
	client, err := redisson.Open(addr)
	if err != nil {
		return nil, nil, err
	}
	return client, client.Close, nil
}

func openSetNX(_ context.Context, addr string) (lock.Locker, func() error, error) {
	opts, err := redis.ParseURL(addr)
	if err != nil {
		return nil, nil, err
	}
	opts.ContextTimeoutEnabled = true
	rdb := redis.NewClient(opts)
	locker, err := setnxlock.New(rdb)
	return locker, rdb.Close, err
}

func startEtcd() (string, func(), error) {
	cluster, err := etcdtest.Start(etcdtest.Options{})
	if err != nil {
		return "", nil, err
	}
	return strings.Join(cluster.Endpoints(), ","), cluster.Stop, nil
}

func openEtcd(ctx context.Context, addr string) (lock.Locker, func() error, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(addr, ","), Logger: zap.NewNop(), Context: context.WithoutCancel(ctx)})
	if err != nil {
		return nil, nil, err
	}
	locker, err := etcdlock.New(client)
	return locker, client.Close, err
}

func openZooKeeper(_ context.Context, addr string) (lock.Locker, func() error, error) {
	session, err := zklock.Connect(strings.Split(addr, ","))
	if err != nil {
		return nil, nil, err
	}
	locker, err := zklock.New(session)
	return locker, func() error { session.Close(); return nil }, err
}

func openMongo(ctx context.Context, addr string) (lock.Locker, func() error, error) {
	client, err := mongo.Connect(options.Client().ApplyURI(addr))
	if err != nil {
		return nil, nil, err
	}
	closing := func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return client.Disconnect(ctx)
	}
	locker, err := mongolock.New(client.Database("latchkey").Collection(mongolock.Collection))
	return locker, closing, err
}
