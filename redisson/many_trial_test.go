package redisson

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestManyTrial(t *testing.T) {
	url := os.Getenv("PAIR_URL")
	if url == "" {
		t.Skip()
	}
	c, err := Open(url)
	if err != nil {
		t.Fatal(err)
	}
	o, _ := redis.ParseURL(url)
	rdb := redis.NewClient(o)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	raw := redis.NewScript(`if redis.call("get",KEYS[1])==ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`)
	for _, n := range []int{1, 8, 16, 32, 64, 512} {
		run := func(f func(g int)) float64 {
			var wg sync.WaitGroup
			var count atomic.Int64
			end := time.Now().Add(200 * time.Millisecond)
			start := time.Now()
			for g := range n {
				wg.Go(func() {
					for time.Now().Before(end) {
						f(g)
						count.Add(1)
					}
				})
			}
			wg.Wait()
			return float64(count.Load()) / time.Since(start).Seconds()
		}
		cells := []func(g int){
			func(g int) {
				rdb.SetNX(ctx, "raw"+strconv.Itoa(g), "x", 30*time.Second)
				raw.Run(ctx, rdb, []string{"raw" + strconv.Itoa(g)}, "x")
			},
			func(g int) {
				l := c.Lock("k" + strconv.Itoa(g))
				held, err := l.Lock(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Unlock(held); err != nil {
					t.Fatal(err)
				}
			}}
		var rates [2][]float64
		var cpus [2][]float64
		var ratio []float64
		for round := 0; round < 9; round++ {
			for i, f := range cells {
				var a, b syscall.Rusage
				syscall.Getrusage(0, &a)
				r := run(f)
				syscall.Getrusage(0, &b)
				rates[i] = append(rates[i], r)
				cpus[i] = append(cpus[i], float64(b.Utime.Nano()+b.Stime.Nano()-a.Utime.Nano()-a.Stime.Nano())/1000/r/0.2)
			}
			ratio = append(ratio, rates[1][round]/rates[0][round])
		}
		sort.Float64s(ratio)
		sort.Float64s(rates[0])
		sort.Float64s(rates[1])
		sort.Float64s(cpus[0])
		sort.Float64s(cpus[1])
		fmt.Printf("n=%d cpu µs/pair raw %.1f ours %.1f; raw %.0f ours %.0f ratio %.2f [%.2f %.2f]\n", n, cpus[0][4], cpus[1][4], rates[0][4], rates[1][4], ratio[4], ratio[0], ratio[8])
	}
}
