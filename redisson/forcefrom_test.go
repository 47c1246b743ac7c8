package redisson_test

import (
	"errors"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// A lock is freed from those who were seen, and from nobody else; by its key, which no name mapper changes.
func TestForceUnlockFrom(t *testing.T) {
	server := redistest.Any(t)
	c, err := redisson.New(server.Client(t), redisson.NameMapper(func(name string) string { return "app:" + name }))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ids := func(key string) (ids []string) {
		o, err := c.InspectKey(t.Context(), key)
		if err != nil || o.Key != key {
			t.Fatalf("InspectKey = %+v, %v", o, err)
		}
		for _, h := range o.Holders {
			ids = append(ids, h.ID)
		}
		return ids
	}
	held, err := c.Lock("order").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, readers := range []*redisson.Lock{c.ReadWriteLock("customer").ReadLock(), newClient(t, server).ReadWriteLock("app:customer").ReadLock()} { // of one client, they would share a holder
		if _, err := readers.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.ReadWriteLock("page").WriteLock().Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	readers := ids("app:customer")
	for _, tt := range []struct {
		key  string
		from []string
		ok   bool
		err  error // nil for any, if it is not ok
	}{
		{"app:order", []string{readers[0]}, false, lock.ErrBusy},
		{"app:order", nil, false, nil},
		{"order", ids("app:order"), false, nil},
		{"app:order", ids("app:order"), true, nil},
		{"app:customer", readers[:1], false, lock.ErrBusy},
		{"app:customer", append(ids("app:page"), readers...), true, nil}, // one who was seen has gone meanwhile
		{"app:customer", readers, false, nil},
		{"app:page", ids("app:page"), true, nil},
	} {
		ok, err := c.ForceUnlockFrom(t.Context(), tt.key, tt.from)
		if ok != tt.ok || tt.err != nil && !errors.Is(err, tt.err) || ok && err != nil {
			t.Errorf("ForceUnlockFrom(%s, %q) = %v, %v, want %v, %v", tt.key, tt.from, ok, err, tt.ok, tt.err)
		}
	}
	<-held.Done()
}
