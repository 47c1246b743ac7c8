package guard

import (
	"testing"
	"time"
)

func TestTimesQuantile(t *testing.T) {
	var none Times
	if none.Count() != 0 || none.Quantile(.5) != 0 {
		t.Errorf("without calls: %d, %v", none.Count(), none.Quantile(.5))
	}
	var r recentTimes
	for range 98 {
		r.add(10*time.Millisecond, 0)
	}
	r.add(time.Second, 0)
	r.add(10*time.Second, 0)
	sum := r.sum(0)
	for _, tt := range []struct {
		q    float64
		want time.Duration
	}{{.5, 10 * time.Millisecond}, {.98, 10 * time.Millisecond}, {.99, time.Second}, {.999, 10 * time.Second}, {1, 10 * time.Second}, {0, 10 * time.Millisecond}} {
		if got := sum.Quantile(tt.q); got < tt.want || got > tt.want*5/4 {
			t.Errorf("Quantile(%v) = %v, want %v or up to a quarter more", tt.q, got, tt.want)
		}
	}
	if sum.Count() != 100 {
		t.Errorf("Count = %d, want 100", sum.Count())
	}
}

// What is older than two generations is forgotten, also by a guard that was never called since.
func TestTimesAreRecent(t *testing.T) {
	var r recentTimes
	r.add(time.Second, 0)
	for _, tt := range []struct {
		at   time.Duration
		want int64
	}{{0, 1}, {generation - 1, 1}, {generation, 1}, {2*generation - 1, 1}, {2 * generation, 0}} {
		if sum := r.sum(tt.at); sum.Count() != tt.want {
			t.Errorf("after %v: %d calls, want %d", tt.at, sum.Count(), tt.want)
		}
	}
	r.add(time.Second, 100*generation)
	if sum := r.sum(200 * generation); sum.Count() != 0 {
		t.Errorf("long after: %d calls, want none", sum.Count())
	}
}
