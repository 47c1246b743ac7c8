// Command job reports once a day, on however many machines it is started. docs/start/job.md walks through it.
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
	client := guard.Must(redisson.Open("redis://localhost:6379"))
	report := guard.Must(guard.New(client,
		guard.Name("report"),
		guard.Key("job:report:#{req}"), // one lock for each day
		guard.Busy(guard.Skip),         // another machine has it: that is fine
		guard.HoldAtLeast(2*time.Hour), // a machine that starts late finds it done
	))
	run := guard.Must(guard.Try(report, func(ctx context.Context, day string) (string, error) {
		select {
		case <-time.After(time.Second): // the work
			return "reported " + day, nil
		case <-ctx.Done(): // the lock is lost, or the program is to end
			return "", context.Cause(ctx)
		}
	}))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch result := run(ctx, time.Now().Format(time.DateOnly)); {
	case result.Err != nil:
		log.Print(result.Err)
	case result.Ran:
		fmt.Println(result.Value)
	default:
		fmt.Println("another machine has done it, or is about to")
	}
	_ = client.Close()
}
