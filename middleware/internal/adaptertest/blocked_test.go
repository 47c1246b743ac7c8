package adaptertest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// Blocked loses the locks of handlers that heed nothing but the errors of reads and writes, and that may be blocked in
// one.
func Blocked(t *testing.T, mount Mount) {
	for _, p := range Protocols {
		t.Run(p.Name+"/events", func(t *testing.T) { events(t, mount, p) })
		t.Run(p.Name+"/deadlines", func(t *testing.T) { deadlines(t, mount, p) })
		t.Run(p.Name+"/read", func(t *testing.T) { blockedRead(t, mount, p) })
		t.Run(p.Name+"/write", func(t *testing.T) {
			blockedWrite(t, mount, p, func(w http.ResponseWriter) error { _, err := w.Write(make([]byte, 1<<20)); return err })
		})
		t.Run(p.Name+"/copy", func(t *testing.T) {
			blockedWrite(t, mount, p, func(w http.ResponseWriter) error { _, err := io.Copy(w, endless{}); return err })
		})
		t.Run(p.Name+"/copy of a known length", func(t *testing.T) {
			blockedWrite(t, mount, p, func(w http.ResponseWriter) error {
				w.Header().Set("Content-Length", "1000000000000")
				_, err := io.Copy(w, endless{})
				return err
			})
		})
		if p.Name != "HTTP2" {
			t.Run(p.Name+"/hijacked", func(t *testing.T) { hijacked(t, mount, p) })
			t.Run(p.Name+"/hijacked, blocked", func(t *testing.T) {
				hijackedBlocked(t, mount, p, func(c net.Conn, _ *bufio.ReadWriter) error { _, err := c.Read(make([]byte, 1)); return err })
			})
			t.Run(p.Name+"/hijacked, blocked in the buffer", func(t *testing.T) {
				hijackedBlocked(t, mount, p, func(_ net.Conn, rw *bufio.ReadWriter) error { _, err := rw.Read(make([]byte, 1)); return err })
			})
			t.Run(p.Name+"/hijacked, blocked in a write", func(t *testing.T) {
				hijackedBlocked(t, mount, p, func(c net.Conn, _ *bufio.ReadWriter) error { _, err := io.Copy(c, endless{}); return err })
			})
		}
	}
}

// Reset loses the lock of a response to HTTP/1.0 whose length is not known: the client takes the end of the connection
// for that of the response, unless it is a reset.
func Reset(t *testing.T, mount Mount) {
	for _, tt := range []struct{ late, panics bool }{{}, {late: true}, {panics: true}} {
		s, l := lossServer(t, mount, Protocols[0], func(w http.ResponseWriter, _ *http.Request, l *LossLocker) {
			_, _ = w.Write(make([]byte, 10_000))
			l.Lose()
			if tt.panics {
				panic(http.ErrAbortHandler)
			}
		})
		l.Late.Store(tt.late)
		conn := dial(t, s)
		fmt.Fprint(conn, "GET /orders/42 HTTP/1.0\r\n\r\n")
		if answer, err := io.ReadAll(conn); err == nil {
			t.Errorf("%+v: a response of %d bytes that looks complete", tt, len(answer))
		}
	}
}

// Draining loses the lock while the server reads the rest of an upload, which it does before it sends a header.
func Draining(t *testing.T, mount Mount) {
	wrote := make(chan error, 1)
	s, _ := lossServer(t, mount, Protocols[0], func(w http.ResponseWriter, _ *http.Request, l *LossLocker) {
		time.AfterFunc(50*time.Millisecond, l.Lose) // most likely while Write waits
		_, err := w.Write(make([]byte, 10_000))
		for ; err == nil; _, err = w.Write(make([]byte, 10_000)) {
		}
		wrote <- err
	})
	conn := dial(t, s)
	fmt.Fprint(conn, "POST /orders/42 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf")
	if err := <-wrote; !errors.Is(err, lock.ErrLost) {
		t.Errorf("Write = %v, want ErrLost", err)
	}
}

// events is a handler of server-sent events that moves its write deadline before each, as many do.
func events(t *testing.T, mount Mount, p Protocol) {
	ended := make(chan error, 1)
	s, l := lossServer(t, mount, p, func(w http.ResponseWriter, _ *http.Request, l *LossLocker) {
		w.Header().Set("Content-Type", "text/event-stream")
		control := http.NewResponseController(w)
		for i := 0; ; i++ {
			moved := control.SetWriteDeadline(time.Now().Add(time.Minute))
			_, wrote := fmt.Fprintf(w, "data: %d\n\n", i)
			flushed := control.Flush()
			if err := errors.Join(moved, wrote, flushed); err != nil {
				ended <- errors.Join(err, isLost(moved), isLost(wrote), isLost(flushed))
				return
			}
			if i > 1_000_000 {
				ended <- errors.New("the events go on")
				return
			}
		}
	})
	res, err := s.Client().Get(s.URL + "/orders/42")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for range 10 {
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
	}
	l.Lose()
	for lines.Scan() {
	}
	if lines.Err() == nil {
		t.Error("the events look complete")
	}
	if err := <-ended; !errors.Is(err, lock.ErrLost) || errors.Is(err, errNotLost) {
		t.Errorf("the handler got %v, want ErrLost", err)
	}
}

var errNotLost = errors.New("another error than ErrLost")

// isLost objects to errors that are not ErrLost. An operation that was over when the lock was lost has none.
func isLost(err error) error {
	if err == nil || errors.Is(err, lock.ErrLost) {
		return nil
	}
	return fmt.Errorf("%w: %w", errNotLost, err)
}

// blockedRead is a handler that waits for the rest of an upload.
func blockedRead(t *testing.T, mount Mount, p Protocol) {
	read := make(chan error, 1)
	s, l := lossServer(t, mount, p, func(_ http.ResponseWriter, r *http.Request, l *LossLocker) {
		half := make([]byte, 4)
		_, err := io.ReadFull(r.Body, half)
		if err != nil {
			t.Error(err)
		}
		go l.Lose()
		_, err = io.ReadAll(r.Body)
		read <- err
	})
	body, upload := io.Pipe()
	defer upload.Close()
	go func() { _, _ = io.WriteString(upload, "half") }()
	res, err := s.Client().Post(s.URL+"/orders/42", "text/plain", body)
	if err == nil { // over HTTP/1, the client may find out by its upload only
		res.Body.Close()
		if res.StatusCode != http.StatusInternalServerError {
			t.Errorf("status = %d, want 500", res.StatusCode)
		}
	}
	if err := <-read; !errors.Is(err, lock.ErrLost) {
		t.Errorf("Read = %v, want ErrLost", err)
	}
	l.Lose()
}

// blockedWrite is a handler whose client does not read on.
func blockedWrite(t *testing.T, mount Mount, p Protocol, write func(http.ResponseWriter) error) {
	wrote := make(chan error, 1)
	s, l := lossServer(t, mount, p, func(w http.ResponseWriter, _ *http.Request, l *LossLocker) {
		var err error
		for err == nil {
			err = write(w)
		}
		wrote <- err
	})
	res, err := s.Client().Get(s.URL + "/orders/42")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	l.Lose()
	if err := <-wrote; !errors.Is(err, lock.ErrLost) {
		t.Errorf("Write = %v, want ErrLost", err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err == nil {
		t.Error("the response looks complete")
	}
}

// deadlines is a handler that lifts its deadlines after the loss, and wants to go on.
func deadlines(t *testing.T, mount Mount, p Protocol) {
	s, _ := lossServer(t, mount, p, func(w http.ResponseWriter, _ *http.Request, l *LossLocker) {
		l.Lose()
		c := http.NewResponseController(w)
		if err := errors.Join(c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{})); err != nil {
			t.Error(err)
		}
		_, _, hijacked := c.Hijack()
		_, wrote := w.Write(nil)
		for _, err := range []error{hijacked, wrote, c.Flush()} {
			if !errors.Is(err, lock.ErrLost) {
				t.Errorf("%v, want ErrLost", err)
			}
		}
	})
	if got, err := exchange(t, s, "GET", "42"); err != nil || got.status != http.StatusInternalServerError {
		t.Errorf("response = %d, %v, want 500", got.status, err)
	}
}

// endless is a source of bytes.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// hijacked is a websocket that echoes, and that sets its deadlines anew for each message.
func hijacked(t *testing.T, mount Mount, p Protocol) {
	ended := make(chan error, 1)
	s, l := lossServer(t, mount, p, func(w http.ResponseWriter, _ *http.Request, l *LossLocker) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		for err = rw.Flush(); err == nil; {
			var line string
			if line, err = rw.ReadString('\n'); err != nil {
				break
			}
			if line == "lose\n" {
				l.Lose()
			}
			if err = conn.SetDeadline(time.Time{}); err == nil {
				_, err = io.WriteString(conn, line)
			}
		}
		ended <- err
	})
	_ = l
	conn := upgrade(t, s.Client(), s.URL)
	defer conn.Close()
	lines := bufio.NewReader(conn)
	fmt.Fprint(conn, "hello\n")
	if line, err := lines.ReadString('\n'); line != "hello\n" {
		t.Fatalf("echo = %q, %v", line, err)
	}
	fmt.Fprint(conn, "lose\n")
	if line, err := lines.ReadString('\n'); err == nil {
		t.Errorf("echo after the loss: %q", line)
	}
	if err := <-ended; !errors.Is(err, lock.ErrLost) {
		t.Errorf("write = %v, want ErrLost", err)
	}
}

// hijackedBlocked is a websocket that waits for its client when the lock is lost.
func hijackedBlocked(t *testing.T, mount Mount, p Protocol, wait func(net.Conn, *bufio.ReadWriter) error) {
	ended := make(chan error, 1)
	s, _ := lossServer(t, mount, p, func(w http.ResponseWriter, _ *http.Request, l *LossLocker) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		go l.Lose()
		ended <- wait(conn, rw)
	})
	conn := upgrade(t, s.Client(), s.URL)
	defer conn.Close()
	if err := <-ended; !errors.Is(err, lock.ErrLost) {
		t.Errorf("%v, want ErrLost", err)
	}
}

func upgrade(t *testing.T, c *http.Client, url string) io.ReadWriteCloser {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url+"/orders/42", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	conn, ok := res.Body.(io.ReadWriteCloser)
	if !ok || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("status = %d, body %T", res.StatusCode, res.Body)
	}
	return conn
}

// NothingLeft sends requests over one connection to handlers that read, write and flush under locks that are not lost.
// The connection must stay in use, and no goroutine may be left.
func NothingLeft(t *testing.T, mount Mount) {
	for _, p := range Protocols {
		t.Run(p.Name, func(t *testing.T) {
			s, _ := lossServer(t, mount, p, func(w http.ResponseWriter, r *http.Request, _ *LossLocker) {
				if err := http.NewResponseController(w).EnableFullDuplex(); err != nil && p.Name != "HTTP2" {
					t.Error(err)
				}
				if n, err := io.Copy(w, r.Body); n != 100_000 || err != nil {
					t.Errorf("echoed %d bytes, %v", n, err)
				}
				flush(w)
			})
			before := 0
			for i := range 20 {
				reused := false
				trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }}
				r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPost, s.URL+"/orders/42",
					strings.NewReader(strings.Repeat("x", 100_000)))
				if err != nil {
					t.Fatal(err)
				}
				res, err := s.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, res.Body); n != 100_000 || err != nil {
					t.Errorf("got %d bytes, %v", n, err)
				}
				res.Body.Close()
				if i == 0 {
					before = runtime.NumGoroutine()
				} else if !reused {
					t.Errorf("request %d came over a new connection", i)
				}
			}
			waitForGoroutines(t, before+3) // the server's own come and go
		})
	}
}

// waitForGoroutines waits until there are at most that many.
func waitForGoroutines(t *testing.T, most int) {
	t.Helper()
	late := time.After(20 * time.Second)
	for runtime.NumGoroutine() > most {
		select {
		case <-late:
			t.Fatalf("%d goroutines, want %d", runtime.NumGoroutine(), most)
		case <-time.After(time.Millisecond):
		}
	}
}
