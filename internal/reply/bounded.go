package reply

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"
)

// The bounds on a reply. go-redis has none: it makes room for whatever length is declared, and calls itself for each level of lists.
// Replies that this module asks for are far below: the largest is that of COMMAND in a cluster.
const (
	mostCost  = 16 << 20 // bytes of texts and lines, and elemCost for each element of a list
	elemCost  = 16
	mostLine  = 64 << 10
	mostDepth = 32
)

var errHostile = errors.New("redisson: a reply that no Redis would give, or one over 16 MiB")

// Dialer is a function of a Redis client's options.
type Dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// Bounded returns a dialler whose connections fail before the server can have go-redis take more memory, or go deeper,
// than any reply needs. Bytes that have passed by then are not changed.
func Bounded(dial Dialer) Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		b := &bounded{Conn: conn}
		if s, ok := conn.(syscall.Conn); ok { // go-redis looks at the socket of a connection from its pool
			return struct {
				*bounded
				syscall.Conn
			}{b, s}, nil
		}
		return b, nil
	}
}

// bounded is a connection that follows the replies that are read from it. Only its reader uses it.
type bounded struct {
	net.Conn
	replies replies
	err     error
}

// NetConn returns the connection below.
func (b *bounded) NetConn() net.Conn { return b.Conn }

// Read implements [net.Conn].
func (b *bounded) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.Conn.Read(p)
	taken, ok := b.replies.take(p[:n])
	if !ok {
		b.err = errHostile
		return taken, b.err
	}
	return n, err
}

// replies is where in a stream of replies a reader is. A reply is a line with a type and a number or text, a text of a length that its
// line declares, or a list of replies of a length that its line declares:
//
//	reply = (":" | "+" | "-" | "_" | "," | "#" | "(") line
//	      | ("$" | "!" | "=") length CRLF bytes CRLF
//	      | ("*" | "~" | ">" | "%") length CRLF {reply}
//
// Attributes, "|", are refused: Redis sends them to nobody who did not ask.
type replies struct {
	head []byte // the first bytes of the line under way
	line int    // its length so far
	skip int    // bytes of a text that are still to come
	left []int  // for each list that is open: how many of its elements are to come
	cost int    // of the reply so far
}

// mostHead is longer than a type and a length.
const mostHead = 24

// take follows p. It is not ok if a bound is broken, or the grammar; taken is what came before that.
func (r *replies) take(p []byte) (taken int, ok bool) {
	for taken < len(p) {
		rest := p[taken:]
		n := min(r.skip, len(rest))
		r.skip -= n
		if n == 0 {
			n = bytes.IndexByte(rest, '\n') + 1
			complete := n > 0
			if !complete {
				n = len(rest)
			}
			r.head = append(r.head, rest[:min(n, mostHead-len(r.head))]...)
			r.line += n
			if r.line > mostLine || complete && !r.begin() {
				return taken, false
			}
		}
		if taken += n; r.skip == 0 && r.line == 0 {
			r.end()
		}
	}
	return taken, true
}

// begin takes in a line that is complete.
func (r *replies) begin() bool {
	head, line := r.head, r.line
	r.head, r.line = r.head[:0], 0
	if strings.IndexByte(":+-_,#(", head[0]) >= 0 {
		r.cost += line
		return r.cost <= mostCost
	}
	length, err := strconv.Atoi(string(bytes.TrimSuffix(head[1:], []byte("\r\n"))))
	if err != nil || length < -1 || length > mostCost {
		return false
	}
	return r.declared(head[0], length)
}

// declared makes room for a text or a list of a length that may be -1, which is that there is none.
func (r *replies) declared(kind byte, length int) bool {
	switch kind {
	case '$', '!', '=':
		if length >= 0 {
			r.skip = length + len("\r\n")
			r.cost += length
		}
	case '%', '*', '~', '>':
		if kind == '%' {
			length *= 2
		}
		if length > 0 {
			r.left = append(r.left, length+1) // the list itself is one
			r.cost += elemCost * length
		}
	default:
		return false
	}
	return r.cost <= mostCost && len(r.left) <= mostDepth
}

// end ends an element, and with it all lists of which it is the last one: the line of a list, too.
func (r *replies) end() {
	for last := len(r.left) - 1; last >= 0; last-- {
		if r.left[last]--; r.left[last] > 0 {
			return
		}
		r.left = r.left[:last]
	}
	r.cost = 0
}
