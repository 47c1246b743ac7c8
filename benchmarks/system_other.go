//go:build !linux

package main

import (
	"syscall"
	"time"
)

// apart keeps the terminal's Ctrl-C from a child: the program ends it.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// pause waits for d, or longer if timers are coarse.
func pause(d time.Duration) { time.Sleep(d) }
