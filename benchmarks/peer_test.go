package main

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// A peer that does not exclude does not measure a lock.
func TestPeersExclude(t *testing.T) {
	s := redistest.Start(t)
	for _, c := range contestants {
		if !c.isGo() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			p, err := c.open(s.Addr)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			h, err := p.Lock(t.Context(), "k:"+c.name)
			if err != nil {
				t.Fatal(err)
			}
			short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := p.Lock(short, "k:"+c.name); err == nil {
				t.Error("the lock was had twice")
			}
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if err := pair(t.Context(), p, "k:"+c.name); err != nil {
				t.Errorf("after the release: %v", err)
			}
		})
	}
}

// The bare pair is a floor only if it is what Latchkey sends.
func TestTheBarePairIsLatchkeys(t *testing.T) {
	s := redistest.Start(t)
	p, err := listenAndCount(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	b, err := openBare(p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	l, err := openLatchkey(p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var sent [2]map[string]int64
	for i, peer := range []peer{b, l} {
		if err := pair(t.Context(), peer, "warm"); err != nil {
			t.Fatal(err)
		}
		p.Reset()
		p.Record()
		if err := pair(t.Context(), peer, "order:7"); err != nil {
			t.Fatal(err)
		}
		sent[i] = p.Counts()
		for _, command := range p.Recorded() {
			if !slices.Contains(command, "order:7") {
				t.Errorf("%v does not name the lock", command)
			}
		}
	}
	if want := (map[string]int64{"evalsha": 2}); !maps.Equal(sent[0], want) || !maps.Equal(sent[1], want) {
		t.Errorf("the bare pair sends %v, Latchkey %v; want %v", sent[0], sent[1], want)
	}
}

// The floors are no locks to work with, but what they measure has to be a lock.
func TestFloorsExclude(t *testing.T) {
	s := redistest.Start(t)
	b, err := openBoard("")
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	var overlaps atomic.Int64
	first := map[string]bool{} // ids
	for range 2 {              // as in two processes
		line, err := openBareLine(s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer line.Close()
		first[line.(*bareLine).nextHolder()] = true
		for i := range 4 {
			callers.Go(func() {
				for range 50 {
					h, err := line.Lock(t.Context(), "k")
					if err != nil {
						t.Error(err)
						return
					}
					_, _, overlap := b.enter(int64(i), 1)
					sleep(t.Context(), 100*time.Microsecond)
					b.leave()
					if overlap {
						overlaps.Add(1)
					}
					if err := h.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	callers.Wait()
	if len(first) != 2 {
		t.Errorf("two clients have one id: %v", first)
	}
	if n := overlaps.Load(); n > 0 {
		t.Errorf("%d of 400 acquisitions were beside another one", n)
	}
}

func TestLoadFindsTwoHolders(t *testing.T) {
	r, err := load(t.Context(), []peer{broken{}}, job{Key: "k", OneKey: true, Callers: 8, Millis: 30})
	if err != nil || r.Overlap == 0 {
		t.Errorf("load = %+v, %v; want overlaps: this lock excludes nobody", r, err)
	}
}

// broken is a lock that excludes nobody.
type broken struct{}

func (broken) Lock(context.Context, string) (held, error) { return broken{}, nil }
func (broken) Release(context.Context) error              { return nil }
func (broken) Close() error                               { return nil }

func TestLoadFindsWhoIsNeverServed(t *testing.T) {
	r, err := load(t.Context(), []peer{make(lostWakeUp, 1)}, job{Key: "k", OneKey: true, Callers: 8, Millis: 30})
	if err != nil || r.Done != 1 || r.Starved != 7 || r.Overlap != 0 || r.Longest < (20*time.Millisecond).Nanoseconds() {
		t.Errorf("load = %+v, %v; want one acquisition, 7 starved callers, and a wait to the end", r, err)
	}
}

// lostWakeUp is a lock that nobody gets after its first holder.
type lostWakeUp chan struct{}

func (l lostWakeUp) Lock(ctx context.Context, _ string) (held, error) {
	select {
	case l <- struct{}{}:
		return broken{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (lostWakeUp) Close() error { return nil }
