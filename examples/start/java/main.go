// Command java settles an order under the lock of a service in Java. docs/start/java.md runs both.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/redisson"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("which order?")
	}
	client := guard.Must(redisson.Open("redis://localhost:6379"))
	g := guard.Must(guard.New(client,
		guard.Name("order.settle"),
		guard.Key("order:#{raw(req)}"), // as Java joins it
		guard.Wait(2*time.Second),
	))
	settle := guard.Must(guard.Action(g, func(ctx context.Context, id string) error {
		fmt.Println("Go settles order", id)
		select {
		case <-time.After(10 * time.Second): // the work
			return nil
		case <-ctx.Done(): // the lock is lost, or the program is to end
			return context.Cause(ctx)
		}
	}))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := settle(ctx, os.Args[1]); err != nil {
		log.Print("Go: ", err)
	}
	_ = client.Close()
}
