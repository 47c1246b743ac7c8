// Package board is a page of memory that the processes of a run share. Each worker but Redisson's writes there how many of its
// goroutines are inside a section and how many wait, so that a fault can strike when somebody is.
package board

import (
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Places is how many workers a board has room for.
const Places = 64

// Place is one worker's part.
type Place struct {
	Inside  atomic.Int64 // sections
	Waiting atomic.Int64 // calls that have waited for a while
	Entered atomic.Int64 // sections so far
	Adding  atomic.Int64 // of these, those between the read and the write of a set
	_       [4]int64     // a line of the processor's cache
}

// Board is the whole page.
type Board [Places]Place

// Open maps the board in the file of that name, which it makes if it is not there.
func Open(name string) (*Board, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := int(unsafe.Sizeof(Board{}))
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	page, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*Board)(unsafe.Pointer(&page[0])), nil
}
