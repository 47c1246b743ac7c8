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
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		last := time.Now()
		for {
			select {
			case <-stop:
				return
			case now := <-ticker.C:
				m.FastForward(now.Sub(last))
				last = now
			}
		}
	}()
	tb.Cleanup(func() {
		close(stop)
		<-stopped
	})
	return &Server{Addr: m.Addr()}
}
