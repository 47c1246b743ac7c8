package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// board is a page of memory that the processes of a job share: it says who holds the lock, whatever the lock says.
type board struct {
	Inside   atomic.Int64    // how many hold the lock
	Owner    atomic.Int64    // who held it last
	Released atomic.Int64    // when that one began to release it, in ns since 1970
	Turn     atomic.Int64    // counts the turns
	Waiting  [2]atomic.Int64 // the turn for which each side waits
}

const boardSize = 4096

// openBoard returns the board in the file, or one of this process alone if there is no file.
func openBoard(path string) (*board, error) {
	if path == "" {
		return new(board), nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(boardSize); err != nil {
		return nil, err
	}
	page, err := syscall.Mmap(int(f.Fd()), 0, boardSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return (*board)(unsafe.Pointer(&page[0])), nil // mapped until the process ends: there is one for each job
}

// enter notes that caller holds the lock now. It returns whether another caller had it before, and how long ago that one
// began to release it; and whether more than the limit hold it at the moment.
func (b *board) enter(caller, limit int64) (changed bool, gap time.Duration, overlap bool) {
	now := time.Now().UnixNano()
	overlap = b.Inside.Add(1) > max(limit, 1)
	released := b.Released.Load()
	changed = b.Owner.Swap(caller) != caller && released != 0
	return changed, time.Duration(now - released), overlap
}

// leave notes that the caller begins to release the lock.
func (b *board) leave() {
	b.Released.Store(time.Now().UnixNano())
	b.Inside.Add(-1)
}
