//go:build !linux

package main

import "time"

// pause waits for d, or longer if timers are coarse.
func pause(d time.Duration) { time.Sleep(d) }
