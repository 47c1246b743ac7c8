package queue

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A queue is a list in which places are at the end at first, and leave wherever they are.
func TestQueue(t *testing.T) {
	var q Queue[int]
	var places [8]Place[int]
	var want []int
	for range 2000 {
		switch i := rand.IntN(len(places)); {
		case !places[i].In():
			q.Join(&places[i], i+1)
			want = append(want, i+1)
		case !places[i].Leave() || places[i].Leave():
			t.Fatal("a place was left once, and not in this way")
		default:
			want = slices.DeleteFunc(want, func(x int) bool { return x == i+1 })
		}
		if got := slices.Collect(q.All()); !slices.Equal(got, want) || q.First() != append(want, 0)[0] {
			t.Fatalf("queue = %v, first %v, want %v", got, q.First(), want)
		}
	}
}
