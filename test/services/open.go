package main

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"os"
	"path/filepath"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	"go.etcd.io/etcd/client/v3"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	_ "modernc.org/sqlite"

	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/etcdlock"
	"github.com/latchkey-go/latchkey/lock/etcdlock/etcdtest"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/lock/mongolock"
	"github.com/latchkey-go/latchkey/lock/setnxlock"
	"github.com/latchkey-go/latchkey/lock/sqllock"
	"github.com/latchkey-go/latchkey/lock/zklock"
	"github.com/latchkey-go/latchkey/redisson"
)

// opening starts a server and returns how to make a client of it.
type opening func(context.Context) (client func() (lock.Locker, error), stop func(), err error)

var openings = []struct {
	name  string
	start opening
}{
	{"memlock", memory},
	{"redisson", on(services.Redis, func(_ context.Context, addr string) (lock.Locker, error) { return redisson.Open("redis://" + addr) })},
	{"setnxlock", on(services.Redis, func(_ context.Context, addr string) (lock.Locker, error) {
		return setnxlock.New(redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true}))
	})},
	{"etcdlock", etcd},
	{"zklock", on(services.ZooKeeper, zookeeper)},
	{"sqllock, PostgreSQL", on(services.Postgres, func(ctx context.Context, addr string) (lock.Locker, error) {
		return table(ctx, sqllock.PostgreSQL, "pgx", "postgres://postgres@"+addr+"/postgres?sslmode=disable")
	})},
	{"sqllock, MariaDB", on(services.MariaDB, func(ctx context.Context, addr string) (lock.Locker, error) {
		return table(ctx, sqllock.MySQL, "mysql", "root@tcp("+addr+")/test?interpolateParams=true")
	})},
	{"sqllock, SQLite", sqlite},
	{"mongolock", mongodb},
}

// open opens all services that there are.
func open(ctx context.Context) (all []*service) {
	for _, o := range openings {
		s := &service{name: o.name}
		client, stop, err := o.start(ctx)
		if err == nil {
			s.stop = stop
			s.first, err = client()
		}
		if err == nil {
			s.second, err = client()
		}
		switch {
		case err == nil:
			all = append(all, s)
		case errors.Is(err, services.ErrMissing):
			log.Printf("%s is left out: %v", o.name, err)
		default:
			log.Fatalf("%s: %v", o.name, err) // the servers end with this process
		}
	}
	return all
}

func memory(context.Context) (func() (lock.Locker, error), func(), error) {
	locker := memlock.New() // one for both: there is nothing that two could share
	return func() (lock.Locker, error) { return locker, nil }, func() {}, nil
}

// on is for a service that package services starts. Its clients need to know no more than its address.
func on(start services.Starter, client func(ctx context.Context, addr string) (lock.Locker, error)) opening {
	return func(ctx context.Context) (func() (lock.Locker, error), func(), error) {
		s, err := start(services.Options{})
		if err != nil {
			return nil, nil, err
		}
		return func() (lock.Locker, error) { return client(ctx, s.Addr) }, s.Stop, nil
	}
}

func etcd(context.Context) (func() (lock.Locker, error), func(), error) {
	cluster, err := etcdtest.Start(etcdtest.Options{})
	if err != nil {
		return nil, nil, err
	}
	return func() (lock.Locker, error) {
		client, err := clientv3.New(clientv3.Config{Endpoints: cluster.Endpoints()})
		if err != nil {
			return nil, err
		}
		return etcdlock.New(client)
	}, cluster.Stop, nil
}

func zookeeper(_ context.Context, addr string) (lock.Locker, error) {
	session, err := zklock.Connect([]string{addr})
	if err != nil {
		return nil, err
	}
	return zklock.New(session)
}

func sqlite(ctx context.Context) (func() (lock.Locker, error), func(), error) {
	dir, err := os.MkdirTemp("", "latchkey-cost-")
	if err != nil {
		return nil, nil, err
	}
	dsn := "file:" + filepath.Join(dir, "locks.db") + "?_pragma=busy_timeout(2000)&_pragma=journal_mode(WAL)&_txlock=immediate"
	return func() (lock.Locker, error) { return table(ctx, sqllock.SQLite, "sqlite", dsn) }, func() { _ = os.RemoveAll(dir) }, nil
}

// table opens a database and makes the table of the locks.
func table(ctx context.Context, on sqllock.Database, driver, dsn string) (lock.Locker, error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	locker, err := sqllock.New(db, on)
	if err != nil {
		return nil, err
	}
	return locker, locker.CreateTable(ctx)
}

// mongodb is the server that LATCHKEY_MONGODB names, or one that is started.
func mongodb(ctx context.Context) (func() (lock.Locker, error), func(), error) {
	if uri := os.Getenv("LATCHKEY_MONGODB"); uri != "" {
		return func() (lock.Locker, error) { return collection(uri) }, func() {}, nil
	}
	return on(services.MongoDB, func(_ context.Context, addr string) (lock.Locker, error) {
		return collection("mongodb://" + addr + "/?directConnection=true")
	})(ctx)
}

func collection(uri string) (lock.Locker, error) {
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		return nil, err
	}
	return mongolock.New(client.Database("cost").Collection(mongolock.Collection))
}
