package worker

import (
	"context"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/faults/history"
	"github.com/redis/go-redis/v9"
)

// round is a game of all callers with names of its own.
type round struct {
	w       *worker
	order   Order
	healed  chan struct{} // closed when all is well again
	callers sync.WaitGroup
	sorts   []sort
}

func newRound(w *worker, o Order) *round {
	r := &round{w: w, order: o, healed: make(chan struct{})}
	for _, name := range o.Mix {
		r.sorts = append(r.sorts, w.known[name])
	}
	return r
}

func (r *round) start() {
	for i := range r.order.Callers {
		c := r.caller(i)
		r.callers.Go(c.play)
	}
}

func (r *round) caller(i int) *caller {
	seed := r.w.Seed + uint64(r.order.Round)*1000 + uint64(i)
	return &caller{round: r, id: i, rng: rand.New(rand.NewPCG(seed, seed>>32+1)), counted: map[string]bool{}}
}

// burst has many callers wait whose contexts end soon.
func (r *round) burst(n int) {
	for i := range n {
		c := r.caller(1000 + i)
		r.callers.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+c.rng.IntN(60))*time.Millisecond)
			defer cancel()
			c.begin()
			if t := c.pick(); t.play == nil {
				c.section(c.take(ctx, t, attempt{wait: -1, deadline: history.Until(ctx)}))
			}
		})
	}
}

// exhaust keeps all connections of the pools busy for d.
func (r *round) exhaust(d time.Duration) {
	for _, rdb := range r.w.rdbs {
		single, ok := rdb.(*redis.Client)
		for i := 0; ok && i < single.Options().PoolSize; i++ {
			r.callers.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), d)
				defer cancel()
				_ = single.BLPop(ctx, d, "nothing").Err() // nobody pushes there
			})
		}
	}
}

// garbage keeps the garbage collector and the scheduler busy for a while.
func (r *round) garbage(n int) {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	for range n {
		r.callers.Go(func() {
			var keep [][]byte
			for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
				keep = append(keep, make([]byte, 16<<10))
				if len(keep) > 64 {
					keep = nil
				}
			}
		})
	}
}

// limit is how many permits there are, as this worker says.
func (r *round) limit() int {
	if r.order.Differ {
		return r.order.Limit + r.w.Place%2
	}
	return r.order.Limit
}

// name is one of the names that a kind has in this round.
func (r *round) name(kind string, i int) string {
	return "r" + strconv.Itoa(r.order.Round) + ":" + kind + ":" + strconv.Itoa(i)
}
