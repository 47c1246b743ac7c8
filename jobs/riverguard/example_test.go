package riverguard_test

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/jobs/riverguard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// SettleArgs are the arguments of a job.
type SettleArgs struct{ OrderID string }

// Kind implements river.JobArgs.
func (SettleArgs) Kind() string { return "settle" }

type settleWorker struct {
	river.WorkerDefaults[SettleArgs]
}

func (settleWorker) Work(ctx context.Context, job *river.Job[SettleArgs]) error {
	select {
	case <-time.After(time.Second): // the work
		return nil
	case <-ctx.Done(): // the lock is lost, or the program is to end
		return context.Cause(ctx)
	}
}

// newClient returns a client whose jobs of one order take turns.
func newClient(pool *pgxpool.Pool, locks lock.Locker) (*river.Client[pgx.Tx], error) {
	settle := guard.Must(guard.New(locks,
		guard.Name("order.settle"),
		guard.Key("order:#{req.OrderID}"),
		guard.MaxHold(time.Minute),
	))
	workers := river.NewWorkers()
	river.AddWorker(workers, settleWorker{})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:     map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
		Workers:    workers,
		Middleware: []rivertype.Middleware{guard.Must(riverguard.New[SettleArgs](settle))},
	})
	return client, err
}

// Jobs of one order take turns, on however many machines.
func Example() {
	ctx := context.Background()
	pool := guard.Must(pgxpool.New(ctx, "postgres://localhost/orders"))
	locks := guard.Must(redisson.Open("redis://localhost:6379"))
	client := guard.Must(newClient(pool, locks))
	guard.Must(0, client.Start(ctx))
}
