package main

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
)

// usage is what a process has.
type usage struct {
	Heap, RSS       int64 // bytes; the heap is what is live after a collection
	Goroutines, FDs int
}

// measure collects garbage first, and gives memory back to the system.
func measure() usage {
	runtime.GC() // twice, as what a finalizer or a pool keeps goes with the second one
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{Heap: int64(m.HeapAlloc), RSS: resident(), Goroutines: runtime.NumGoroutine(), FDs: descriptors()}
}

func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	fields := bytes.Fields(text)
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize())
}

func descriptors() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries) - 1 // the folder itself was open
}

func (u usage) plus(o usage) usage {
	return usage{u.Heap + o.Heap, u.RSS + o.RSS, u.Goroutines + o.Goroutines, u.FDs + o.FDs}
}
