package guard

import (
	"testing"
	"unsafe"
)

// TestFrameIsSmall holds what a call needs under 512 bytes, beyond which the runtime has a slower way to allocate it. It is
// the greatest part of what a guard costs.
func TestFrameIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(frame[any, string]{}); size > 480 {
		t.Errorf("a call with a text as result takes %d bytes, want at most 480", size)
	}
}
