package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

//go:generate go tool latchkey-gen

// A BoxOffice sells seats. A directive has the text of a guard's tag: the key with the names of the arguments, and how
// to wait. GuardBoxOffice is generated from it.
type BoxOffice interface {
	// Sell sells a seat to the first buyer.
	//
	//latchkey:guard seat:#{film}:#{seat}; wait=10s
	Sell(ctx context.Context, film, seat, to string) (Ticket, error)
	// Swap lets two customers change places. It takes both seats, or neither.
	//
	//latchkey:guard #{[key("seat", film, a), key("seat", film, b)]}; wait=10s
	Swap(ctx context.Context, film, a, b string) error
	// Sold counts. It needs no lock, and is passed on.
	Sold(film string) int
}

// A Ticket is for one seat.
type Ticket struct{ Film, Seat, Owner string }

// printTicket is a function: guardPrintTicket is generated from its directive. All calls share the lock of the only printer.
//
//latchkey:guard printer; one-key; wait=10s
func printTicket(_ context.Context, out io.Writer, t Ticket) error {
	_, err := fmt.Fprintf(out, "%s: seat %s for %s\n", t.Film, t.Seat, t.Owner)
	return err
}

// errTaken says that a seat is sold.
var errTaken = errors.New("somebody else has this seat")

// cinema is the work itself. It knows nothing of locks: its mutex guards the map, and not what is done between two looks.
type cinema struct {
	mu   sync.Mutex
	sold map[string]string // the owner of each seat
}

func (c *cinema) owner(film, seat string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sold[film+"/"+seat]
}

func (c *cinema) sell(film, seat, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sold[film+"/"+seat] = to
}

func (c *cinema) Sell(_ context.Context, film, seat, to string) (Ticket, error) {
	if c.owner(film, seat) != "" {
		return Ticket{}, errTaken
	}
	time.Sleep(time.Millisecond) // the payment
	c.sell(film, seat, to)
	return Ticket{film, seat, to}, nil
}

func (c *cinema) Swap(_ context.Context, film, a, b string) error {
	first, second := c.owner(film, a), c.owner(film, b)
	if first == "" || second == "" {
		return nil // there is nobody to swap with
	}
	c.sell(film, a, second)
	c.sell(film, b, first)
	return nil
}

func (c *cinema) Sold(film string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for seat, owner := range c.sold {
		if strings.HasPrefix(seat, film+"/") && owner != "" {
			n++
		}
	}
	return n
}
