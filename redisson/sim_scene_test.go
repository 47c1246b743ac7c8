package redisson_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// The amounts of what there is several of.
const (
	simPermits  = 2
	simRate     = 3
	simInterval = time.Second
	simCount    = 4 // of a latch
)

// scene is what the owners of a world do.
type scene struct {
	force     func(*redisson.Client) *redisson.Lock // the lock to free by force now and then; may be nil
	kinds     []lock.Kind                           // of locks; which one an owner takes is drawn from these
	prepare   func(*redisson.Client) error          // may be nil; is repeated until it succeeds
	round     func(*owner) bool                     // what an owner does once; reports whether it came to that
	taken     func(*world, string) int              // how many permits Redis has as taken
	calm      time.Duration                         // how long to wait for changes that are pending before the last round
	partly    bool                                  // the lock may be free while somebody waits, who holds a part of it or hears nothing
	anonymous bool                                  // Redis knows no holders, only how many there are
	majority  bool                                  // who holds it does so at most of simServers, not at all
	longer    time.Duration                         // how much longer than others its calls may take
	keeps     []string                              // the keys that may be left
	ghosts    bool                                  // a waiter that is over may get into a fair queue, to which nobody comes after that
	final     func(*world) string                   // what is wrong at the end; may be nil
}

// simScenes are the scenes by name.
var simScenes = map[string]scene{
	"plain":  lockScene(freePlain, lock.Exclusive),
	"spin":   lockScene(freeSpin, lock.Spin),
	"fair":   {force: freeFair, kinds: []lock.Kind{lock.Fair}, round: (*owner).stay, ghosts: true},
	"write":  lockScene(freeWrite, lock.Write),
	"read":   lockScene(freeRead, lock.Read, lock.Read, lock.Read, lock.Write),
	"rw":     lockScene(freeWrite, lock.Read, lock.Write),
	"fenced": {force: freePlain, kinds: []lock.Kind{lock.Fenced}, round: (*owner).stay, keeps: []string{"redisson_lock_token:{L}"}},
	"multi":  {force: freeMember, round: (*owner).stayAtMany, partly: true, longer: 2 * simTimeout, keeps: []string{"redisson_lock_token:{K1}"}, ghosts: true},
	"red":    {force: freeServer, longer: 400 * time.Millisecond, round: (*owner).stayAtMajority, partly: true, majority: true},
	"family": {force: freePlain, kinds: []lock.Kind{lock.Exclusive, lock.Fenced, lock.Spin, lock.Fair}, round: (*owner).stay, keeps: []string{"redisson_lock_token:{L}"}, partly: true, ghosts: true},
	"permit": {kinds: []lock.Kind{lock.Permit}, round: (*owner).stay, taken: expirablePermits},
	"levels": {kinds: []lock.Kind{lock.Permit}, round: (*owner).stayAtLevels, partly: true},
	"begin":  {round: (*owner).begin, partly: true},
	"expirable": {round: (*owner).takeExpirable, taken: expirablePermits, final: allFree, keeps: []string{"L", "{L}:timeout"}, prepare: func(c *redisson.Client) error {
		_, err := c.PermitExpirableSemaphore("L").TrySetPermits(context.Background(), simPermits)
		return err
	}},
	"semaphore": {anonymous: true, round: (*owner).takePermits, taken: plainPermits, final: allFree, keeps: []string{"L"}, prepare: func(c *redisson.Client) error {
		_, err := c.Semaphore("L").TrySetPermits(context.Background(), simPermits)
		return err
	}},
	"latch": {round: (*owner).countDown, calm: 15 * time.Second},
	"rate": {round: (*owner).takeRate, keeps: []string{"L", "{L}:value", "{L}:permits"}, prepare: func(c *redisson.Client) error {
		_, err := c.RateLimiter("L").TrySetRate(context.Background(), redisson.Rate{Permits: simRate, Interval: simInterval})
		return err
	}},
}

// simCast is the scenes that take turns.
var simCast = []string{"plain", "fair", "fenced", "write", "permit", "spin", "multi", "semaphore", "latch", "rate", "rw", "read", "expirable", "red", "family", "levels", "begin"}

// allFree finds permits that got lost, or came from nowhere.
func allFree(w *world) string {
	if taken := w.scene.taken(w, "L"); taken != 0 {
		return fmt.Sprintf("%d permits are taken, and nobody has them", taken)
	}
	return ""
}

func lockScene(force func(*redisson.Client) *redisson.Lock, kinds ...lock.Kind) scene {
	return scene{force: force, kinds: kinds, round: (*owner).stay}
}

func freePlain(c *redisson.Client) *redisson.Lock  { return c.Lock("L") }
func freeSpin(c *redisson.Client) *redisson.Lock   { return c.SpinLock("L") }
func freeFair(c *redisson.Client) *redisson.Lock   { return c.FairLock("L") }
func freeWrite(c *redisson.Client) *redisson.Lock  { return c.ReadWriteLock("L").WriteLock() }
func freeMember(c *redisson.Client) *redisson.Lock { return c.Lock("K1") }
func freeServer(c *redisson.Client) *redisson.Lock { return c.Lock("R1") }
func freeRead(c *redisson.Client) *redisson.Lock   { return c.ReadWriteLock("L").ReadLock() }

// stays reports whether a key may be left when nobody holds anything. Receipts may, as they end by themselves.
func (s scene) stays(w *world, key string) bool {
	if s.ghosts && slices.Contains([]string{"rough", "back", "behind"}, w.options.faults) && (strings.HasPrefix(key, "redisson_lock_queue:") || strings.HasPrefix(key, "redisson_lock_timeout:")) {
		return true
	}
	return slices.Contains(s.keeps, key) || (strings.HasPrefix(key, "latchkey_receipt:") || w.options.faults == "behind") && w.net.TTL(key) > 0
}

// expirablePermits counts the permits that are not free: others have an end that is past.
func expirablePermits(w *world, key string) int {
	ends, taken, now := "{"+key+"}:timeout", plainPermits(w, key), float64(w.sim.ServerTime().UnixMilli())
	ids, _ := w.sim.Server().ZMembers(ends)
	for _, id := range ids {
		if end, _ := w.sim.Server().ZScore(ends, id); end <= now {
			taken--
		}
	}
	return taken
}

// plainPermits counts the permits that are not there.
func plainPermits(w *world, key string) int {
	free := 0
	if text, err := w.sim.Server().Get(key); err == nil {
		free = atoi(text)
	}
	return simPermits - free
}
