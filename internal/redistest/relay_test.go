package redistest

import (
	"bufio"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
)

func TestRequestsAreRead(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string // nil for an error
	}{
		{"*1\r\n$4\r\nPING\r\n", []string{"PING"}},
		{"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\n\r\n\r\n\r\n", []string{"SET", "k", "\r\n\r\n"}},
		{"*2\r\n$3\r\nGET\r\n$0\r\n\r\n", []string{"GET", ""}},
		{"PING\r\n", nil},
		{"*0\r\n", nil},
		{"*1\r\n$-1\r\n", nil},
		{"*1\r\n$999999999999\r\n", nil},
		{"*2\r\n$3\r\nGET\r\n", nil},
		{"*x\r\n", nil},
		{"", nil},
	} {
		raw, words, err := ReadRequest(bufio.NewReader(strings.NewReader(tt.text)))
		if !slices.Equal(words, tt.want) || (err == nil) != (tt.want != nil) {
			t.Errorf("ReadRequest(%q) = %q, %v, want %q", tt.text, words, err, tt.want)
		}
		if err == nil && string(raw) != tt.text {
			t.Errorf("%q comes back as %q", tt.text, raw)
		}
	}
}

// Drop ends what there is, Move leads to another server, and Close waits for what carries.
func TestRelayMovesAndEnds(t *testing.T) {
	carrying := 0
	r, err := Listen(greeter(t, "one"), func(client, server net.Conn) (up, down func()) {
		carrying++ // by one goroutine, that which accepts
		return func() { _, _ = io.Copy(server, client) }, func() { _, _ = io.Copy(client, server) }
	})
	check(t, err)
	for _, want := range []string{"one", "two"} {
		conn, err := net.Dial("tcp", r.Addr)
		check(t, err)
		defer conn.Close()
		got := make([]byte, 3)
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
			t.Errorf("read %q, %v, want %q", got, err, want)
		}
		r.Move(greeter(t, "two"))
		if _, err := conn.Read(got); err == nil {
			t.Error("a connection has outlived a move")
		}
	}
	r.Close()
	if open, made := r.Connections(); open != 0 || made != 2 || carrying != 2 {
		t.Errorf("%d connections are open, %d were made and %d carried, want 0, 2 and 2", open, made, carrying)
	}
	if conn, err := net.Dial("tcp", r.Addr); err == nil {
		_ = conn.Close()
		t.Error("a closed relay accepts connections")
	}
}

// greeter is a server that says one thing and then nothing.
func greeter(t *testing.T, text string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			_, _ = io.WriteString(conn, text)
		}
	}()
	return l.Addr().String()
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
