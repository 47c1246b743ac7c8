package etcdlock_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/etcdlock"
	"github.com/latchkey-go/latchkey/lock/etcdlock/etcdtest"
)

func TestNewRefusesMistakes(t *testing.T) {
	client := dial(t, single(t).Endpoints()...)
	if _, err := etcdlock.New(nil); err == nil {
		t.Error("New(nil) is no error")
	}
	for name, o := range map[string]etcdlock.Option{
		"slash":    etcdlock.ID("host/"),
		"tilde":    etcdlock.ID("~host"),
		"poll":     etcdlock.Poll(time.Millisecond),
		"watchdog": etcdlock.Watchdog(time.Millisecond),
		"timeout":  etcdlock.Timeout(time.Hour),
	} {
		if _, err := etcdlock.New(client, o); err == nil {
			t.Errorf("%s: New() is no error", name)
		}
	}
}

// A key without a lease never ends, so no lock has made it.
func TestPlaceOfSomethingElseIsRefused(t *testing.T) {
	parallel(t)
	client := dial(t, single(t).Endpoints()...)
	if _, err := client.Put(t.Context(), "orders/42/status", "paid"); err != nil {
		t.Fatal(err)
	}
	l := locker(t, client)
	for _, wait := range []time.Duration{0, -1} {
		_, err := l.Acquire(t.Context(), lock.Request{Key: "orders/42", Wait: wait})
		if !errors.Is(err, lock.ErrRefused) || !strings.Contains(err.Error(), "Prefix") {
			t.Errorf("Acquire() = %v, want ErrRefused and what to do", err)
		}
	}
	if err := l.Peek(t.Context(), lock.Request{Key: "orders/42"}); !errors.Is(err, lock.ErrRefused) {
		t.Errorf("Peek() = %v, want ErrRefused", err)
	}
	waiting(t, client, "orders/42", 1)
	release(t, acquire(t, l, lock.Request{Key: "orders"})) // what is further below is another lock's business
}

func TestPermissionsAndCredentials(t *testing.T) {
	parallel(t)
	c := start(t, etcdtest.Options{})
	root := dial(t, c.Endpoints()...)
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(root.RoleAdd(ctx, "root"))
	must(root.UserAdd(ctx, "root", "secret"))
	must(root.UserGrantRole(ctx, "root", "root"))
	must(root.RoleAdd(ctx, "locks"))
	must(root.RoleGrantPermission(ctx, "locks", "locks/", clientv3.GetPrefixRangeEnd("locks/"), clientv3.PermissionType(clientv3.PermReadWrite)))
	must(root.UserAdd(ctx, "worker", "secret"))
	must(root.UserGrantRole(ctx, "worker", "locks"))
	must(root.AuthEnable(ctx))

	for _, wait := range []time.Duration{0, -1} {
		fails(t, locker(t, root), lock.Request{Key: "k", Wait: wait}, lock.ErrRefused) // without credentials
	}
	worker, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), Username: "worker", Password: "secret", Logger: zap.NewNop()})
	must(worker, err)
	defer worker.Close()
	good, bad := locker(t, worker, etcdlock.Prefix("locks/")), locker(t, worker, etcdlock.Prefix("other/"))
	must(nil, good.Check(ctx))
	if err := bad.Check(ctx); !errors.Is(err, lock.ErrRefused) {
		t.Errorf("Check() = %v, want ErrRefused", err)
	}
	for _, wait := range []time.Duration{0, -1} {
		fails(t, bad, lock.Request{Key: "k", Wait: wait}, lock.ErrRefused)
		h := acquire(t, good, lock.Request{Key: "k", Wait: wait})
		fails(t, good, lock.Request{Key: "k"}, lock.ErrBusy)
		release(t, h)
	}
	boss, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), Username: "root", Password: "secret", Logger: zap.NewNop()})
	must(boss, err)
	defer boss.Close()
	h := acquire(t, good, lock.Request{Key: "revoked"})
	must(boss.UserRevokeRole(ctx, "worker", "locks"))
	fails(t, good, lock.Request{Key: "other"}, lock.ErrRefused)
	must(boss.UserGrantRole(ctx, "worker", "locks"))
	release(t, h)
}

// A database that is full takes no writes, but deletes. That passes when somebody makes room.
func TestFullDatabaseIsAnOutage(t *testing.T) {
	parallel(t)
	c := start(t, etcdtest.Options{Quota: 1 << 20})
	client := dial(t, c.Endpoints()...)
	l := locker(t, client)
	h := acquire(t, l, lock.Request{Key: "held"})
	for {
		if _, err := client.Put(t.Context(), "fill", strings.Repeat("x", 100<<10)); err != nil {
			break
		}
	}
	for _, wait := range []time.Duration{0, -1} {
		start := time.Now()
		if _, err := l.Acquire(t.Context(), lock.Request{Key: "k", Wait: wait}); outage(err) == nil {
			t.Errorf("Acquire() = %v, want an outage", err)
		}
		if took := time.Since(start); wait == 0 && took > time.Second { // those who wait ask again until the Timeout is over
			t.Errorf("that took %v", took)
		}
	}
	if err := h.(interface {
		Extend(context.Context, time.Duration) error
	}).Extend(t.Context(), time.Millisecond); err != nil {
		t.Errorf("Extend() = %v: renewals are no writes", err)
	}
	release(t, h)
	waiting(t, client, "held", 0)
}

func TestKeyThatEtcdDoesNotTakeIsRefused(t *testing.T) {
	parallel(t)
	l := locker(t, dial(t, single(t).Endpoints()...))
	for _, wait := range []time.Duration{0, -1} {
		fails(t, l, lock.Request{Key: strings.Repeat("k", 100<<10+1), Wait: wait}, lock.ErrRefused)
		release(t, acquire(t, l, lock.Request{Key: strings.Repeat("k", 100<<10), Wait: wait}))
	}
}

// oldServer answers as an etcd of another version.
type oldServer struct {
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedMaintenanceServer
	version string
}

func (oldServer) Range(context.Context, *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	return &etcdserverpb.RangeResponse{Header: &etcdserverpb.ResponseHeader{}}, nil
}

func (s oldServer) Status(context.Context, *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	return &etcdserverpb.StatusResponse{Header: &etcdserverpb.ResponseHeader{}, Version: s.version}, nil
}

func TestCheckRefusesServersThatAreTooOld(t *testing.T) {
	parallel(t)
	for _, tt := range []struct {
		version string
		good    bool
	}{{"3.2.32", false}, {"3.3.27", false}, {"2.3.8", false}, {"", false}, {"3", false}, {"etcd", false},
		{"3.4.0", true}, {"3.7.3", true}, {"3.10.0-alpha.1", true}, {"4.0.0", true}} {
		socket, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		old := oldServer{version: tt.version}
		etcdserverpb.RegisterKVServer(server, old)
		etcdserverpb.RegisterMaintenanceServer(server, old)
		go func() { _ = server.Serve(socket) }()
		err = locker(t, dial(t, socket.Addr().String())).Check(t.Context())
		if good := !errors.Is(err, lock.ErrRefused); good != tt.good || good && err != nil {
			t.Errorf("version %q: Check() = %v", tt.version, err)
		}
		server.Stop()
	}
	if err := locker(t, dial(t, single(t).Endpoints()...)).Check(t.Context()); err != nil {
		t.Errorf("Check() = %v", err)
	}
	if err := locker(t, dial(t, "127.0.0.1:1"), etcdlock.Timeout(time.Second)).Check(t.Context()); outage(err) == nil {
		t.Errorf("nobody there: Check() = %v, want an outage", err)
	}
}
