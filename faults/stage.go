package main

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey/faults/check"
	"github.com/latchkey-go/latchkey/faults/history"
	"github.com/latchkey-go/latchkey/faults/server"
	"github.com/latchkey-go/latchkey/faults/wire"
	"github.com/latchkey-go/latchkey/faults/worker"
)

// kind is a kind of fault.
type kind struct {
	name string
	// mix are the kinds of locks that are played; nil leaves it to chance.
	mix []string
	// keys is how many names each kind of lock has; 0 is two.
	keys int
	// without is a sort of lock that is not played.
	without string
	// command is one without which servers can't have it; it may be empty.
	command string
	// lost says that the servers lose data by it.
	lost bool
	// kills says that workers are killed by it.
	kills bool
	// lacks says why a run proves nothing about this kind, if it does not; it may be nil.
	lacks func(r *check.Result) string
	// strike makes the fault, and undoes it before it returns.
	strike func(ctx context.Context, s *stage) error
}

// stage is a round while its fault is made.
type stage struct {
	*world
	kind  kind
	order worker.Order
	procs []string // whom the fault strikes, if not all
}

// run makes the fault when somebody is inside.
func (s *stage) run(ctx context.Context) error {
	s.awaitInside(ctx, s.ways...)
	s.faults++
	e := history.Event{Op: history.Fault, What: s.kind.name, ID: s.faults, At: history.Now()}
	before := e.At
	err := s.kind.strike(ctx, s)
	e.Procs = s.procs
	for _, v := range s.servers {
		e.Servers = append(e.Servers, v.Name)
	}
	s.log.Note(e)
	if s.kind.lost {
		s.log.Note(history.Event{Op: history.DataLost, Servers: e.Servers, Since: before})
	}
	e.Op, e.At = history.Healed, 0
	s.log.Note(e)
	return err
}

// insideTimeout bounds the wait for a section, which a fault before has put off.
const insideTimeout = 10 * time.Second

// awaitInside waits until a section is open at one of the workers, which it returns, and nil if none is for a long time.
func (s *stage) awaitInside(ctx context.Context, from ...*way) *way {
	return s.await(ctx, from, func(v *way) bool { return s.inside(v) > 0 })
}

// awaitWaiting waits until one of the workers has a call that waits, and no open section.
func (s *stage) awaitWaiting(ctx context.Context, from ...*way) *way {
	return s.await(ctx, from, func(v *way) bool { return s.waiting(v) > 0 && s.inside(v) == 0 })
}

func (s *stage) await(ctx context.Context, from []*way, ok func(*way) bool) *way {
	first := s.rng.IntN(len(from))
	for deadline := time.Now().Add(insideTimeout); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(20 * time.Microsecond) {
		for i := range from {
			if v := from[(first+i)%len(from)]; ok(v) {
				return v
			}
		}
	}
	return nil
}

// some returns one, half or all of the workers, and notes that they are struck. Among them is one whose sections the board shows, which it
// does not for Redisson's.
func (s *stage) some() []*way {
	n := []int{1, len(s.ways) / 2, len(s.ways)}[s.rng.IntN(3)]
	chosen := s.shuffled()[:n]
	if !slices.ContainsFunc(chosen, func(v *way) bool { return v.command == nil }) {
		chosen = append(chosen, s.ways[s.plan.java])
	}
	return s.only(chosen...)
}

func (s *stage) shuffled() []*way {
	all := append([]*way{}, s.ways...)
	s.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// only notes who is struck; without any, all are.
func (s *stage) only(ways ...*way) []*way {
	s.procs = nil
	for _, v := range ways {
		s.procs = append(s.procs, v.Name)
	}
	return ways
}

// between returns a time from a to b, in milliseconds.
func (s *stage) between(a, b int) time.Duration {
	return time.Duration(a+s.rng.IntN(b-a)) * time.Millisecond
}

// toxics lays a toxic on the links of some workers for a while.
func (s *stage) toxics(ctx context.Context, d time.Duration, ts ...toxic) (err error) {
	ways := s.some()
	if s.awaitInside(ctx, ways...) == nil {
		return errNobody
	}
	for _, v := range ways {
		for _, l := range v.links {
			for _, t := range ts {
				err = errors.Join(err, l.add(t))
			}
		}
	}
	sleep(ctx, d)
	for _, v := range ways {
		for _, l := range v.links {
			l.clear(ctx)
		}
	}
	return err
}

// halt stops servers for a while. They are back when they answer on all links: by then, hundreds of connections that were opened meanwhile wait
// to be accepted, and where there was no room for more, the kernel tries again only after a second.
func (s *stage) halt(ctx context.Context, servers []*server.Server, d time.Duration) (err error) {
	for _, v := range servers {
		err = errors.Join(err, v.Signal(syscall.SIGSTOP))
	}
	sleep(ctx, d)
	for _, v := range servers {
		err = errors.Join(err, v.Signal(syscall.SIGCONT))
	}
	for _, v := range servers {
		for _, w := range s.ways {
			err = errors.Join(err, w.links[slices.Index(s.servers, v)].answers(ctx))
		}
	}
	return err
}

// wired strikes requests for a while, on all servers.
func (s *stage) wired(ctx context.Context, d time.Duration, x wire.Strike) error {
	for _, w := range s.wires {
		w.Begin(x)
	}
	sleep(ctx, d)
	struck := 0
	for _, w := range s.wires {
		struck += w.End()
	}
	if struck == 0 {
		return errors.New("no request was struck")
	}
	return nil
}

// late waits until all requests that are late have come.
func (s *stage) late(ctx context.Context) {
	for _, w := range s.wires {
		for w.Pending() > 0 && ctx.Err() == nil {
			sleep(ctx, 10*time.Millisecond)
		}
	}
}

// one is the server that a fault strikes.
func (s *stage) one() *server.Server { return s.servers[s.rng.IntN(len(s.servers))] }

// admin asks a server of the world for something.
func admin(ctx context.Context, v *server.Server, args ...any) error {
	return v.Admin.Do(ctx, args...).Err()
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
