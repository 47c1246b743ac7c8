package redisson

import (
	"math/rand/v2"
	"time"
)

// backoff is a growing pause. Each is a random one between the present step and twice as long.
type backoff struct{ first, longest time.Duration }

// next returns a pause and doubles the step, up to the longest.
func (b *backoff) next() time.Duration {
	d := b.first + rand.N(b.first)
	b.first = min(2*b.first, b.longest)
	return min(d, b.longest)
}
