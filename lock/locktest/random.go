package locktest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/latchkey-go/latchkey/lock"
)

// random is what only shows when calls of all sorts come together.
var random = []promise{
	// Each run of the suite follows other schedules, with seeds of their own.
	{"random calls get what they should", func(s *scene) {
		seed := s.suite.seed()
		failures := make([]error, schedules)
		var all sync.WaitGroup
		for i := range failures {
			all.Go(func() { failures[i] = s.schedule(seed + uint64(i)).run(stepsPerSchedule) })
		}
		all.Wait()
		for i, err := range failures {
			if err != nil {
				s.Errorf("seed %d: %v", seed+uint64(i), err)
			}
		}
	}},
}

const (
	schedules        = 6 // at the same time: most of theirs is spent waiting
	stepsPerSchedule = 40
)

// Seed repeats the random schedule that a failure names, for as far as the Locker takes the same time as before.
func Seed(seed uint64) Option {
	return optionFunc(func(s *suite) { s.seed = func() uint64 { return seed } })
}

// schedule is the one that seed stands for. It takes locks of the scene's kind, or of its whole family. Only Read and Write
// are waited for together: a release need not wake those who wait for a lock of another kind.
func (s *scene) schedule(seed uint64) *schedule {
	r := rand.New(rand.NewPCG(seed, 0))
	c := &schedule{
		scene: s, rand: r, prefix: fmt.Sprintf("%s:%d:", s.key, seed),
		kinds: []lock.Kind{s.kind}, limit: 1 + r.IntN(3), waits: r.IntN(2) == 0,
	}
	family := func(k lock.Kind) bool { return k.Family() == s.kind.Family() }
	if !c.waits || s.kind.Family() == lock.Write {
		c.kinds = slices.DeleteFunc(slices.Clone(s.suite.kinds), func(k lock.Kind) bool { return !family(k) })
	}
	c.strange = slices.DeleteFunc(slices.Clone(s.suite.kinds), family)
	return c
}
