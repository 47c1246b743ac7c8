package asynqguard_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/jobs/asynqguard"
	"github.com/latchkey-go/latchkey/redisson"
)

// Settle is the payload of a task.
type Settle struct{ OrderID string }

// Three tasks for two orders, and as many workers: those of one order take turns.
func Example() {
	memory := miniredis.NewMiniRedis() // in place of a Redis
	guard.Must(0, memory.Start())
	defer memory.Close()
	redis := asynq.RedisClientOpt{Addr: memory.Addr()}
	locks := guard.Must(redisson.Open("redis://" + memory.Addr()))
	defer locks.Close()

	settle := guard.Must(guard.New(locks,
		guard.Name("order.settle"),
		guard.Key("order:#{req.OrderID}"),
		guard.MaxHold(time.Minute),
	))
	var done sync.WaitGroup
	mux := asynq.NewServeMux()
	mux.Handle("order:settle", guard.Must(asynqguard.New[Settle](settle))(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		defer done.Done()
		time.Sleep(100 * time.Millisecond) // the work
		return nil
	})))
	server := asynq.NewServer(redis, asynq.Config{
		Concurrency:              3,
		IsFailure:                asynqguard.IsFailure,  // a task that waits for its lock has not failed,
		RetryDelayFunc:           asynqguard.RetryDelay, // and comes again when its guard says,
		DelayedTaskCheckInterval: time.Second,           // which asynq looks at every 5 s otherwise
		LogLevel:                 asynq.FatalLevel,
	})
	guard.Must(0, server.Start(mux))
	defer server.Shutdown()

	client := asynq.NewClient(redis)
	defer client.Close()
	for _, payload := range []string{`{"OrderID":"42"}`, `{"OrderID":"42"}`, `{"OrderID":"43"}`} {
		done.Add(1)
		guard.Must(client.Enqueue(asynq.NewTask("order:settle", []byte(payload))))
	}
	done.Wait()
	fmt.Println("settled")
	// Output: settled
}
