package zklock

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/lock"
)

// The names of the nodes in line, as Curator's InterProcessMutex and InterProcessReadWriteLock write them: a prefix that is different
// for each node, one of the marks, and ten digits that ZooKeeper counts up for each child of the parent.
const (
	protection = "_c_"
	markLock   = "lock-"
	markRead   = "__READ__"
	markWrite  = "__WRIT__"
)

// lastSequence is where a line ends. The counter of ZooKeeper is a signed number of 32 bits that wraps, and others
// compare names as text, so the order would be lost. The rest of the range is for those who come at the same time, and
// for peers.
const lastSequence = math.MaxInt32 - 1<<20

// spent is the number from which on a node that leaves an empty line removes the parent, with which the counter begins
// again.
const spent = 1 << 30

// member is a node in line.
type member struct {
	name     string
	kind     lock.Kind // Exclusive, Read or Write
	sequence int64
}

// mark returns what the names of nodes of this kind have before their number.
func mark(k lock.Kind) string {
	switch k {
	case lock.Read:
		return markRead
	case lock.Write:
		return markWrite
	}
	return markLock
}

// members returns the children that stand in line. Children without a number are somebody's nodes below, such as keys of another
// root. A numbered node of another protocol is an error: nobody knows what it excludes.
func members(children []string) (line []member, err error) {
	for _, name := range children {
		m, ok := parse(name)
		switch {
		case ok:
			line = append(line, m)
		case numbered(name):
			return nil, fmt.Errorf("%w: beside the nodes of locks there is a numbered node of another kind, %.20q: "+
				"use a root or key of its own for locks", lock.ErrRefused, name)
		}
	}
	return line, nil
}

func parse(name string) (member, bool) {
	for _, k := range []lock.Kind{lock.Exclusive, lock.Read, lock.Write} {
		if i := strings.LastIndex(name, mark(k)); i >= 0 {
			digits := name[i+len(mark(k)):]
			n, err := strconv.ParseInt(digits, 10, 32)
			if err == nil && len(digits) >= 10 && digits[0] != '+' {
				return member{name, k, n}, true
			}
		}
	}
	return member{}, false
}

// numbered reports whether a name ends like that of a sequential node.
func numbered(name string) bool {
	return len(name) >= 10 && strings.Trim(name[len(name)-10:], "0123456789") == ""
}

// ahead returns the member of the line that own has to wait for, or nil if it is its turn. That is the nearest one that it must not
// hold beside. It is a *lock.KindError if the first in line is of another family: whoever is of another family than the first leaves
// by itself, and does not count.
func ahead(line []member, own member) (nearest *member, err error) {
	first := own
	for _, m := range line {
		if m.sequence < 0 || m.sequence > lastSequence {
			return nil, errSpent
		}
		if m.sequence < first.sequence {
			first = m
		}
		shared := own.kind == lock.Read && m.kind == lock.Read
		if m.sequence >= own.sequence || shared || m.kind.Family() != own.kind.Family() {
			continue
		}
		if nearest == nil || m.sequence > nearest.sequence {
			nearest = &m
		}
	}
	if first.kind.Family() != own.kind.Family() {
		return &first, &lock.KindError{Held: first.kind, Wanted: own.kind}
	}
	return nearest, nil
}
