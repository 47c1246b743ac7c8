package main

import (
	"syscall"
	"time"
)

// apart has the kernel kill a child when the program dies, and keeps the terminal's Ctrl-C from it: the program ends it.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// pause waits for d. A timer of Go's would wait for a whole millisecond where nothing else is to be done.
func pause(d time.Duration) {
	if d > 0 {
		t := syscall.NsecToTimespec(d.Nanoseconds())
		_ = syscall.Nanosleep(&t, nil) // a signal that cuts it short only makes one answer earlier
	}
}
