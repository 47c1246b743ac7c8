package neighbours

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// dialogue is a websocket that answers each message until the client closes it, or until one asks for the loss of the lock.
func dialogue(x *exchange) error {
	c, err := websocket.Accept(x.w, x.r, nil)
	if err != nil {
		return nil // it has answered
	}
	defer func() { _ = c.CloseNow() }()
	for {
		_, message, err := c.Read(x.r.Context())
		if err != nil {
			if websocket.CloseStatus(err) == websocket.StatusNormalClosure {
				return nil
			}
			return err
		}
		if string(message) == "lose" {
			x.lose()
		}
		if err := c.Write(x.r.Context(), websocket.MessageText, append([]byte("you said "), message...)); err != nil {
			return err
		}
	}
}

// TestWebsockets talks through each program that lets a connection be taken over.
func TestWebsockets(t *testing.T) {
	for _, p := range programs {
		if p.keeps { // nobody can take it over
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := work{name: "dialogue", method: "GET", do: dialogue}
			without, _ := play{program: p, work: w, protocol: http1}.talk(t)
			for _, s := range states {
				with, a := play{program: p, work: w, protocol: http1, state: &s}.talk(t)
				want := without
				switch {
				case s.status != 0:
					want = fmt.Sprintf("refused with %d application/problem+json", s.status)
				case s.midway:
					want = "you said hello; broken"
				}
				outcome := s.outcome
				if outcome == "" {
					outcome = "ok"
				}
				if s.midway && strings.HasSuffix(with, "; broken") && p.proxies { // it may have passed on a reply before
					with = want
				}
				if with != want || fmt.Sprint(a.outcomes) != "["+outcome+"]" {
					t.Errorf("%s / %s: %s, outcomes %q\n\twant %s, %q; without: %s", p.name, s.name, with, a.outcomes, want, outcome, without)
				}
			}
		})
	}
}

// talk opens a websocket, and says what came back.
func (p play) talk(t *testing.T) (said string, a account) {
	t.Helper()
	_, a = p.with(t, func(url, tenant string, _ *call) answer {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		transport := &http.Transport{DisableCompression: true}
		defer transport.CloseIdleConnections()
		c, res, err := websocket.Dial(ctx, url+"/orders/7", &websocket.DialOptions{ //nolint:bodyclose // Dial has read it
			HTTPClient: &http.Client{Transport: transport},
			HTTPHeader: http.Header{"Tenant": {tenant}},
		})
		if err != nil {
			if said = "no answer"; res != nil {
				said = fmt.Sprintf("refused with %d %s", res.StatusCode, res.Header.Get("Content-Type"))
			}
			return answer{}
		}
		defer func() { _ = c.CloseNow() }()
		var all []string
		for _, message := range []string{"hello", "lose", "good-bye"} {
			err := c.Write(ctx, websocket.MessageText, []byte(message))
			if err == nil {
				var reply []byte
				if _, reply, err = c.Read(ctx); err == nil {
					all = append(all, string(reply))
				}
			}
			if err != nil {
				word := "broken"
				if errors.Is(err, context.DeadlineExceeded) {
					word = "no end in sight"
				}
				said = strings.Join(append(all, word), "; ")
				return answer{}
			}
		}
		_ = c.Close(websocket.StatusNormalClosure, "")
		said = strings.Join(all, "; ")
		return answer{}
	})
	return said, a
}

// TestEarlyBytes has a client that sends its first message with its handshake. Libraries look for it in the buffer of the
// connection that they take over, and read from the connection itself afterwards.
func TestEarlyBytes(t *testing.T) {
	w := work{name: "takes over", method: "GET", do: func(x *exchange) error {
		conn, rw, err := http.NewResponseController(x.w).Hijack()
		if err != nil {
			return err
		}
		defer conn.Close()
		early, err := rw.Peek(rw.Reader.Buffered())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly: %s", early)
		return err
	}}
	for _, p := range programs {
		if p.keeps || p.name == "reverse proxy outside" || p.name == "reverse proxy inside" { // which have a connection of their own
			continue
		}
		hear := func(s *state) (said string) {
			play{program: p, work: w, protocol: http1, state: s}.with(t, func(url, tenant string, _ *call) answer {
				conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				fmt.Fprintf(conn, "GET /orders/7 HTTP/1.1\r\nHost: shop\r\nTenant: %s\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello", tenant)
				rest := bufio.NewReader(conn)
				res, err := http.ReadResponse(rest, nil) //nolint:bodyclose // there is none, or the connection closes
				if err != nil {
					t.Fatal(err)
				}
				if res.StatusCode != http.StatusSwitchingProtocols {
					said = res.Status
					return answer{}
				}
				all, _ := io.ReadAll(rest)
				said, _ = strings.CutPrefix(string(all), "early: ")
				return answer{}
			})
			return said
		}
		if without, with := hear(nil), hear(&states[0]); with != without || without != "hello" {
			t.Errorf("%s: the handler finds %q, and %q without a guard", p.name, with, without)
		}
	}
}
