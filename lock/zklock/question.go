package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// question is one request to ZooKeeper.
type question bool

const (
	read  question = false
	write question = true // through the leader, in one order with all other writes
)

// query asks one question and returns its answer, and the session in which it was answered. It takes as long as the library does. An
// error that is not one of a server leaves open whether it was done.
func query[T any](s *Session, q question, op func(*zk.Conn) (T, error)) (value T, id int64, err error) {
	before, wire, err := s.begin()
	if err != nil {
		return value, 0, err
	}
	sent := time.Now()
	value, err = op(s.conn)
	answered := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	switch {
	case before != s.id || before == 0:
		return value, 0, errors.Join(errMoved, err)
	case heard(err) && wire == s.wire:
		s.proof.note(sent, answered, bool(q))
		fallthrough
	case heard(err):
		s.asked = time.Time{}
	}
	return value, before, err
}

// ask is query, but returns when ctx ends. The question goes on then.
func ask[T any](ctx context.Context, s *Session, q question, op func(*zk.Conn) (T, error)) (value T, id int64, err error) {
	if err := s.connected(ctx); err != nil {
		return value, 0, err
	}
	type answer struct {
		value T
		id    int64
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		var a answer
		a.value, a.id, a.err = query(s, q, op)
		answers <- a
	}()
	select {
	case a := <-answers:
		return a.value, a.id, a.err
	case <-ctx.Done():
		return value, 0, fmt.Errorf("%w: %w", errSilent, context.Cause(ctx))
	}
}

// prove writes, to have the session confirmed. The write only checks that the root of the tree is there, so it leaves
// nothing.
func prove(c *zk.Conn) (struct{}, error) {
	_, err := c.Multi(&zk.CheckVersionRequest{Path: "/", Version: -1})
	return struct{}{}, err
}

// beats is how many questions the session asks in its timeout.
const beats = 12

// beat asks a question now and then, which has the session confirmed while it is used, and finds out when nobody answers.
func (s *Session) beat() {
	for {
		s.mu.Lock()
		pause, used := s.proof.timeout/beats, len(s.nodes) > 0
		s.mu.Unlock()
		if !s.sleep(pause) {
			return
		}
		s.mu.Lock()
		if s.asked.IsZero() {
			s.asked = time.Now()
		}
		s.mu.Unlock()
		if used {
			_, _, _ = query(s, write, prove)
		} else {
			_, _, _ = query(s, read, func(c *zk.Conn) (bool, error) { ok, _, err := c.Exists("/"); return ok, err })
		}
	}
}

// silent returns for how long no server has answered.
func (s *Session) silent() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked.IsZero() {
		return 0
	}
	return time.Since(s.asked)
}

// confirmed returns until when the session of that number can't have expired. If that is less than a third of its timeout away, it asks.
func (s *Session) confirmed(ctx context.Context, id int64) (time.Time, error) {
	for asked := false; ; asked = true {
		now, until, timeout := s.state()
		switch {
		case now != id:
			return until, errExpired
		case time.Until(until) > timeout/3, asked && time.Until(until) > 0:
			return until, nil
		case asked:
			return until, errProof
		}
		if _, _, err := ask(ctx, s, write, prove); err != nil && !heard(err) {
			return until, err
		}
	}
}
