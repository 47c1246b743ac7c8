// Service declares the locks of a warehouse where its methods are declared, in the tags of a struct of functions.
//
//	go -C examples run ./service                                   # with locks of this process
//	go -C examples run ./service --redis redis://localhost:6379     # with locks that other machines see
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/examples/internal/example"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

func main() { example.Main(run) }

// Warehouse is what callers use. Its tags are the locks; what they leave open, the defaults given to newWarehouse say.
type Warehouse struct {
	// Move takes both shelves, or neither: two moves in opposite directions can't block each other. It keeps readers out.
	Move func(context.Context, MoveRequest) error `guard:"shelf:#{[req.From, req.To]}; kind=write"`
	// Count reads beside other readers of its shelf.
	Count func(ctx context.Context, shelf string) (int, error) `guard:"shelf:#{shelf}; kind=read; args=shelf"`
}

// MoveRequest moves N pieces.
type MoveRequest struct {
	From, To string
	N        int
}

// errShort says that a shelf has too few pieces.
var errShort = errors.New("too few pieces on the shelf")

// shelves is the work itself. It knows nothing of locks.
type shelves struct {
	mu     sync.Mutex
	pieces map[string]int
}

func (s *shelves) get(shelf string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pieces[shelf]
}

func (s *shelves) set(shelf string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pieces[shelf] = n
}

func (s *shelves) move(_ context.Context, r MoveRequest) error {
	from, to := s.get(r.From), s.get(r.To)
	if from < r.N {
		return fmt.Errorf("%w: %d of %d", errShort, from, r.N)
	}
	s.set(r.From, from-r.N)
	s.set(r.To, to+r.N)
	return nil
}

func (s *shelves) count(_ context.Context, shelf string) (int, error) { return s.get(shelf), nil }

func newWarehouse(locker lock.Locker, s *shelves) (*Warehouse, error) {
	w := &Warehouse{Move: s.move, Count: s.count}
	defaults, err := guard.New(locker, guard.Wait(time.Minute))
	if err != nil {
		return nil, err
	}
	return w, guard.Bind(defaults, w)
}

func run(ctx context.Context, locker lock.Locker, out io.Writer) error {
	w, err := newWarehouse(locker, &shelves{pieces: map[string]int{"left": 100, "right": 100}})
	if err != nil {
		return err
	}
	const moves = 200
	failures := make([]error, moves)
	var all sync.WaitGroup
	for i := range moves {
		all.Go(func() {
			r := MoveRequest{From: "left", To: "right", N: 1 + i%3}
			if i%2 == 1 {
				r.From, r.To = r.To, r.From
			}
			failures[i] = w.Move(ctx, r)
		})
	}
	all.Wait()
	left, err1 := w.Count(ctx, "left")
	right, err2 := w.Count(ctx, "right")
	fmt.Fprintf(out, "%d moves, and still %d pieces\n", moves, left+right)
	return errors.Join(append(failures, err1, err2)...)
}
