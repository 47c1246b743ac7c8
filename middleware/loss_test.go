package middleware_test

import (
	"net/http"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/internal/adaptertest"
)

func TestLosses(t *testing.T)      { adaptertest.Losses(t, mount) }
func TestBlocked(t *testing.T)     { adaptertest.Blocked(t, mount) }
func TestReset(t *testing.T)       { adaptertest.Reset(t, mount) }
func TestDraining(t *testing.T)    { adaptertest.Draining(t, mount) }
func TestNothingLeft(t *testing.T) { adaptertest.NothingLeft(t, mount) }
func TestRandom(t *testing.T)      { adaptertest.Random(t, mount, mountBare) }

func mountBare(_ *testing.T, _ *guard.Guard, h http.HandlerFunc, _ ...middleware.Option) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/orders/{id}", h)
	return mux
}
