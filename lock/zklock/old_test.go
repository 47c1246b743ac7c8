package zklock_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// oldServer answers as ZooKeeper 3.4.14 does: no node is there, and a question of a type that it does not know ends the connection.
func oldServer(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answerAsOld(c)
		}
	}()
	return l.Addr().String()
}

func answerAsOld(c net.Conn) {
	defer c.Close()
	const ping, syncs, containers, noNode, unimplemented = -2, 9, 19, -101, -6
	for first := true; ; first = false {
		head := make([]byte, 4)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		question := make([]byte, binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(c, question); err != nil {
			return
		}
		if first { // the version, the timeout, the session, its password
			answer := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 36, 0, 0, 0, 0}, 4000)
			answer = binary.BigEndian.AppendUint64(answer, uint64(time.Now().UnixNano()))
			_, _ = c.Write(append(binary.BigEndian.AppendUint32(answer, 16), make([]byte, 16)...))
			continue
		}
		xid, code := int32(binary.BigEndian.Uint32(question)), int32(noNode)
		kind := binary.BigEndian.Uint32(question[4:])
		switch {
		case xid == ping, kind == syncs:
			code = 0
		case kind == containers:
			code = unimplemented
		}
		answer := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 20}, uint32(xid)) // with an empty text at its end
		answer = append(answer, make([]byte, 8)...)
		_, _ = c.Write(append(binary.BigEndian.AppendUint32(answer, uint32(code)), 0, 0, 0, 0))
		if kind == containers {
			_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // so that the answer is not lost with what was not read
			_, _ = io.Copy(io.Discard, c)
			return
		}
	}
}

func TestServerIsTooOld(t *testing.T) {
	t.Parallel()
	l := newLocker(t, connect(t, oldServer(t)))
	for range 3 { // the first one costs the connection
		soon(t, "a refusal", func() bool {
			_, err := l.Acquire(t.Context(), lock.Request{Key: "k", Wait: time.Minute})
			return errors.Is(err, lock.ErrRefused)
		})
	}
}
