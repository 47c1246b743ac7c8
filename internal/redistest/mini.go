package redistest

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// tick is the step in which miniredis' clock follows the real one. Keys there expire up to one step late.
const tick = 5 * time.Millisecond

// startMini runs miniredis with a driven clock: by itself its keys never expire.
func startMini(tb testing.TB) *Server {
	m := miniredis.RunT(tb)
	go func() {
		last := time.Now()
		for tb.Context().Err() == nil {
			time.Sleep(tick)
			now := time.Now()
			m.FastForward(now.Sub(last))
			last = now
		}
	}()
	return &Server{Addr: m.Addr()}
}
