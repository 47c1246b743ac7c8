package middleware_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/middleware/internal/adaptertest"
)

func TestLosses(t *testing.T)      { adaptertest.Losses(t, mount) }
func TestBlocked(t *testing.T)     { adaptertest.Blocked(t, mount) }
func TestNothingLeft(t *testing.T) { adaptertest.NothingLeft(t, mount) }
