package redisson

import (
	"context"
	"os"
	"sort"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestPairTrial(t *testing.T) {
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
	rdbCT := c.rdb
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	acq := redis.NewScript(lockAcquire.source)
	rel := redis.NewScript(lockRelease.source)
	raw := redis.NewScript(`if redis.call("get",KEYS[1])==ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`)
	l := c.Lock("k")
	bare := func(r redis.Scripter) func() {
		return func() {
			if err := acq.Run(ctx, r, []string{"bare"}, "id:1", "30000", "publish").Err(); err != nil {
				t.Fatal(err)
			}
			if err := rel.Run(ctx, r, []string{"bare"}, "id:1", "redisson_lock__channel:{bare}", "", "0", "publish").Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	cells := []struct {
		name string
		f    func()
	}{
		{"raw", func() {
			rdb.SetNX(ctx, "raw", "x", 30*time.Second)
			raw.Run(ctx, rdb, []string{"raw"}, "x")
		}},
		{"bare", bare(rdb)},
		{"bareCT", bare(rdbCT.(redis.Scripter))},
		{"ours", func() {
			held, err := l.Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Unlock(held); err != nil {
				t.Fatal(err)
			}
		}},
	}
	res := map[string][]float64{}
	for round := 0; round < 15; round++ {
		for _, ce := range cells {
			ce.f()
			start := time.Now()
			n := 0
			for ; time.Since(start) < 150*time.Millisecond; n++ {
				ce.f()
			}
			res[ce.name] = append(res[ce.name], float64(time.Since(start).Microseconds())/float64(n))
		}
	}
	for _, ce := range cells {
		var ratio []float64
		for i := range res[ce.name] {
			ratio = append(ratio, res[ce.name][i]/res["bare"][i])
		}
		sort.Float64s(res[ce.name])
		sort.Float64s(ratio)
		t.Logf("%-8s median %.1f µs min %.1f  ratio to bare %.3f allocs %.0f", ce.name, res[ce.name][7], res[ce.name][0], ratio[7], testing.AllocsPerRun(200, ce.f))
	}
}
