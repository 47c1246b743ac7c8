package play

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"
)

// Props are what a play needs besides its processes.
type Props struct {
	// Program is the path of the program that the processes of the play run: one that calls ActIfActor.
	Program string
	// Servers are those of the lock.
	Servers []Server
	// Store is the address of the Redis with the number that the lock protects.
	Store string
}

// Server is a Redis that a play may restart.
type Server struct {
	Addr string
	// Restart kills it and starts it again at the same address. Data that are not on its disk are gone.
	Restart func() error
}

// stage is where one play is performed. Once something has failed its methods do nothing, and the play is void; so a play
// reads as a story.
type stage struct {
	ctx    context.Context
	out    io.Writer
	props  Props
	actors []*actor
	err    error
	added  int64 // how often a process got the answer that the store has taken its number
}

// tell writes a line of the story.
func (s *stage) tell(format string, args ...any) {
	if s.err == nil {
		fmt.Fprintf(s.out, "  "+format+"\n", args...)
	}
}

// fail makes the play void. The first reason counts.
func (s *stage) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// ok reports whether the play goes on.
func (s *stage) ok() bool {
	if err := s.ctx.Err(); err != nil {
		s.fail(err)
	}
	return s.err == nil
}

// restartServer kills a server of the lock and starts it again.
func (s *stage) restartServer() {
	if !s.ok() {
		return
	}
	s.tell("a Redis server is killed and starts again")
	if err := s.props.Servers[0].Restart(); err != nil {
		s.fail(err)
	}
}

// holdInTime starts a process that takes the lock, and holds it at a point of an operation while its lease lasts. On a busy
// machine the lease may be over before: then the next process gets a longer one.
func (s *stage) holdInTime(name string, at point) *actor {
	for lease := 2 * short; ; lease *= 2 {
		a := s.actor(name, lease)
		a.awaitLock()
		if at.op == opWrite {
			a.read()
		}
		if a.comesTo(at) || !s.ok() {
			return a
		}
		a.kill()
		if lease > long {
			s.fail(fmt.Errorf("%s never came to the point where it %s", name, at.told))
		}
	}
}

// balance is what the store has.
func (s *stage) balance() (n int64) {
	s.ask(s.props.Store, func(rdb *redis.Client) (err error) {
		n, err = openStore{rdb}.Read(s.ctx)
		return err
	})
	s.tell("the store has %d", n)
	return n
}

// lockTTL is how long the first server keeps the lock; -1 is for ever.
func (s *stage) lockTTL() (ttl time.Duration) {
	s.ask(s.props.Servers[0].Addr, func(rdb *redis.Client) (err error) {
		ttl, err = rdb.PTTL(s.ctx, Key).Result()
		return err
	})
	return ttl
}

func (s *stage) ask(addr string, question func(*redis.Client) error) {
	if !s.ok() {
		return
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	if err := question(rdb); err != nil {
		s.fail(err)
	}
}

// close ends all processes.
func (s *stage) close() error {
	var errs []error
	for _, a := range s.actors {
		errs = append(errs, a.end())
	}
	return errors.Join(errs...)
}
