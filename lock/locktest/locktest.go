// Package locktest checks that a [lock.Locker] keeps the promises of package lock, in one process or over a network. The
// author of a Locker calls Run from a test:
//
//	func TestConformance(t *testing.T) {
//		locktest.Run(t, func(t *testing.T) lock.Locker {
//			client, err := mylocks.Dial(serverAddress)
//			if err != nil {
//				t.Fatal(err)
//			}
//			t.Cleanup(func() { client.Close() })
//			return client
//		}, locktest.Kinds(lock.Exclusive, lock.Read, lock.Write))
//	}
//
// Each subtest is named for the promise that it checks; where it is not plain what the promise is good for, the source says
// so. Run uses real time and needs five seconds or so for a kind, less with go test -parallel 16, as most of that is spent
// waiting. It waits for events and not for the time they usually take, so a slow machine makes it slower but does not make it
// fail. Outages are beyond it: what a Locker does when its service is
// slow, gone or restarted, and that it renews what it holds, remains for its own tests.
//
// One promise is checked at random: schedules of nested, mixed and delayed calls, each compared with a model of who may hold
// what. They differ from run to run, and a failure names the seed and the way to it; see Seed.
package locktest

import (
	"crypto/rand"
	mathrand "math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// Option changes what Run checks.
type Option interface{ apply(*suite) }

type optionFunc func(*suite)

func (f optionFunc) apply(s *suite) { f(s) }

// Kinds names all that the Locker supports, in place of lock.Exclusive alone. Run checks each of them, and that the other
// kinds are refused with lock.ErrUnsupported. Read and Write come together.
func Kinds(kinds ...lock.Kind) Option {
	return optionFunc(func(s *suite) { s.kinds = kinds })
}

// Run checks the Lockers that newLocker returns. It is called once for each subtest, whose Cleanup may close the Locker.
// The keys are different each time, so the Lockers may share a server, also with other users. The subtests run in parallel,
// but t itself must not: one of them counts the goroutines of the process.
func Run(t *testing.T, newLocker func(t *testing.T) lock.Locker, opts ...Option) {
	t.Helper()
	s := suite{newLocker: newLocker, kinds: []lock.Kind{lock.Exclusive}, patience: 10 * time.Second, seed: mathrand.Uint64}
	for _, o := range opts {
		o.apply(&s)
	}
	switch {
	case len(s.kinds) == 0:
		t.Fatal("locktest: no kinds to check")
	case s.has(lock.Read) != s.has(lock.Write):
		t.Fatal("locktest: Read and Write go together")
	}
	for _, kind := range s.kinds {
		t.Run(kind.String(), func(t *testing.T) {
			s.run(t, kind, slices.Concat(general, special[kind]))
		})
	}
	t.Run("requests", func(t *testing.T) { s.run(t, s.kinds[0], requests) })
}

// suite is one Run.
type suite struct {
	newLocker func(*testing.T) lock.Locker
	kinds     []lock.Kind
	patience  time.Duration // with what should come at once, before it counts as never
	seed      func() uint64 // of the first random schedule of a promise
}

// promise is one guarantee of a Locker. Its comment says what it is good for, where that is not plain. The check is
// done with a scene of its own, while other checks go on.
type promise struct {
	name  string
	check func(*scene)
}

// having is the check of an optional method, which the Lockers have that are a T.
func having[T any](check func(*scene)) func(*scene) {
	return func(s *scene) {
		if _, ok := s.locker.(T); ok {
			check(s)
		}
	}
}

// holding is the check of an optional method of holds, which those have that are a T.
func holding[T any](check func(*scene)) func(*scene) {
	return func(s *scene) {
		h := s.outer(s.Context())
		_, ok := h.(T)
		s.release(h)
		if ok {
			check(s)
		}
	}
}

// general are the promises that each kind makes.
var general = slices.Concat(exclusion, ownership, nesting, waiting, held, ending, extending, replacing, peeking, gathering, keys, random, leaks)

// special are the promises that only one kind makes.
var special = map[lock.Kind][]promise{
	lock.Fair:   fair,
	lock.Read:   reading,
	lock.Write:  writing,
	lock.Fenced: fenced,
	lock.Permit: slices.Concat(permits, levels, rates),
}

func (s *suite) has(k lock.Kind) bool { return slices.Contains(s.kinds, k) }

func (s *suite) run(t *testing.T, kind lock.Kind, promises []promise) {
	for _, p := range promises {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			key := "locktest:" + rand.Text()
			label(key)
			p.check(&scene{T: t, suite: s, locker: s.newLocker(t), kind: kind, key: key})
		})
	}
}
