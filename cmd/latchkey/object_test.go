package main

import (
	"slices"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/console"
	"github.com/latchkey-go/latchkey/redisson"
)

// A lock is called in a list what it was called when it was taken: by the words of run --kind.
func TestKindsAreThoseOfTheFlag(t *testing.T) {
	queue := []redisson.Waiter{{ID: goClient + ":2", Until: time.Now()}}
	for want, o := range map[string]redisson.Object{
		"plain":  {Type: redisson.TypeLock},
		"fair":   {Type: redisson.TypeLock, Queue: queue},
		"fenced": {Type: redisson.TypeLock, Token: 3},
		"read":   {Type: redisson.TypeReadWrite, Mode: "read"},
		"write":  {Type: redisson.TypeReadWrite, Mode: "write"},
		"permit": {Type: redisson.TypeExpirableSemaphore},
	} {
		if got := document(o).Kind; got != want || got != console.KindOf(o) || !slices.Contains(kindNames(), got) {
			t.Errorf("%+v is of the kind %q, want %q, which --kind has", o, got, want)
		}
	}
	for want, o := range map[string]redisson.Object{
		"semaphore":    {Type: redisson.TypeSemaphore},
		"latch":        {Type: redisson.TypeCountDownLatch},
		"rate limiter": {Type: redisson.TypeRateLimiter},
	} {
		if got := console.KindOf(o); got != want {
			t.Errorf("%+v is of the kind %q, want %q", o, got, want)
		}
	}
}
