package main

import (
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// board is memory that the processes of a scenario share: for each key, how many are inside a section.
type board []atomic.Int64

func openBoard(path string, keys int) (board, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := keys * int(unsafe.Sizeof(atomic.Int64{}))
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	page, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*atomic.Int64)(unsafe.Pointer(&page[0])), keys), nil
}

// section runs work inside the section of a key, and reports whether somebody else was there at the time.
func (b board) section(key int, work func()) (overlap bool) {
	overlap = b[key].Add(1) != 1
	work()
	return b[key].Add(-1) != 0 || overlap
}
