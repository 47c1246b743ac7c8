package main

import (
	"syscall"
	"time"
)

// pause waits for d. A timer of Go's would wait for a whole millisecond in a process with nothing else to
// do.
func pause(d time.Duration) {
	if d > 0 {
		t := syscall.NsecToTimespec(d.Nanoseconds())
		_ = syscall.Nanosleep(&t, nil) // a signal that cuts it short only makes one answer earlier
	}
}
