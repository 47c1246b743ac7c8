// Generated sells the seats of a cinema. Its locks are declared in comments above the methods of an interface, and
// latchkey-gen writes the code that takes them.
//
//	go -C examples generate ./generated                              # writes boxoffice_latchkey.go
//	go -C examples run ./generated                                   # with locks of this process
//	go -C examples run ./generated --redis redis://localhost:6379     # with locks that other machines see
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/examples/internal/example"
	"github.com/latchkey-go/latchkey/lock"
)

func main() { example.Main(run) }

const (
	seats     = 100
	customers = 3
)

// run has some customers who all want all seats, and move around.
func run(ctx context.Context, locker lock.Locker, out io.Writer) error {
	cinema := &cinema{sold: make(map[string]string)}
	office, err := GuardBoxOffice(locker, cinema)
	if err != nil {
		return err
	}
	printTicket, err := guardPrintTicket(locker)
	if err != nil {
		return err
	}
	var sold, taken atomic.Int64
	failures := make([]error, seats*customers)
	var all sync.WaitGroup
	for i := range failures {
		all.Go(func() {
			seat := fmt.Sprint(i % seats)
			t, err := office.Sell(ctx, "Metropolis", seat, fmt.Sprint("customer ", i/seats))
			switch {
			case errors.Is(err, errTaken):
				taken.Add(1)
				return
			case err == nil:
				if sold.Add(1) <= 3 { // to see some
					err = printTicket(ctx, out, t)
				}
			}
			failures[i] = errors.Join(err, office.Swap(ctx, "Metropolis", seat, fmt.Sprint((i+1)%seats)))
		})
	}
	all.Wait()
	fmt.Fprintf(out, "%d tickets for %d seats; %d customers came too late; %d seats are free\n",
		sold.Load(), seats, taken.Load(), seats-office.Sold("Metropolis"))
	return errors.Join(failures...)
}
