package reply

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/redis/go-redis/v9"
)

// scripted is the connection to a server that sends a text, whatever it is asked, and hangs up.
type scripted struct{ io.Reader }

func (scripted) Write(p []byte) (int, error)      { return len(p), nil }
func (scripted) Close() error                     { return nil }
func (scripted) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (scripted) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (scripted) SetDeadline(time.Time) error      { return nil }
func (scripted) SetReadDeadline(time.Time) error  { return nil }
func (scripted) SetWriteDeadline(time.Time) error { return nil }

func dialScripted(r io.Reader) Dialer {
	return func(context.Context, string, string) (net.Conn, error) { return scripted{r}, nil }
}

// through returns what of a stream passes a bounded connection.
func through(t *testing.T, r io.Reader) (passed []byte, err error) {
	t.Helper()
	conn, err := Bounded(dialScripted(r))(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	return io.ReadAll(conn)
}

// honest are replies that Redis gives, of all types.
var honest = []string{
	"+OK\r\n", "-ERR no\r\n", ":-7\r\n", "$0\r\n\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "_\r\n", ",1.5\r\n", "#t\r\n", "(12345678901234567890\r\n",
	"$12\r\na\r\nb\nc$9\r\n*1\r\n", "=7\r\ntxt:abc\r\n", "!5\r\nERR x\r\n", "*3\r\n:1\r\n:30000\r\n:0\r\n", "~2\r\n+a\r\n+b\r\n",
	"*2\r\n*1\r\n*0\r\n%2\r\n+a\r\n:1\r\n+b\r\n*2\r\n$1\r\nx\r\n_\r\n", ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n0\r\n",
	"$1000000\r\n" + strings.Repeat("x", 1_000_000) + "\r\n", "*65536\r\n" + strings.Repeat(":1\r\n", 65536),
	strings.Repeat("*1\r\n", mostDepth) + ":1\r\n",
}

// What an honest server sends passes unchanged, in whatever pieces it arrives.
func TestBoundedPassesHonestReplies(t *testing.T) {
	all := strings.Join(honest, "")
	for name, r := range map[string]io.Reader{
		"at once": strings.NewReader(all), "byte by byte": iotest.OneByteReader(strings.NewReader(all)), "in halves": iotest.HalfReader(strings.NewReader(all)),
	} {
		if passed, err := through(t, r); string(passed) != all || err != nil {
			t.Errorf("%s: %d of %d bytes, %v", name, len(passed), len(all), err)
		}
	}
}

// hostile are streams, with the number of bytes that are harmless.
var hostile = []struct {
	name, stream string
	harmless     int
}{
	{"the longest text", "+a\r\n$9223372036854775807\r\n", 4},
	{"a text of a gigabyte", "$1000000000\r\n", 0},
	{"a text of a length that nothing has", "$99999999999999999999\r\n", 0},
	{"a text of negative length", "$-2\r\n", 0},
	{"the longest list", "*9223372036854775807\r\n", 0},
	{"a list of two million", "*2000000\r\n", 0},
	{"a map of a million", "%1000000\r\n", 0},
	{"lists of lists", strings.Repeat("*1\r\n", mostDepth+1), 4 * mostDepth},
	{"long lists of long lists", strings.Repeat("*300000\r\n", 9), 9 * 3},
	{"a list of large texts", "*3\r\n" + strings.Repeat("$8000000\r\n"+strings.Repeat("x", 8_000_000)+"\r\n", 3), 4 + 2*8_000_012},
	{"attributes", strings.Repeat("|0\r\n", 10), 0},
	{"no length", "*\r\n", 0},
	{"a length in hex", "$0x10\r\n", 0},
	{"a length with an unknown end", "$?\r\n", 0},
	{"an empty line", ":1\r\n\r\n", 4},
	{"a web server", "HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n", 0},
	{"TLS", "\x15\x03\x01\x00\x02\x02\x50\n", 0},
}

// A stream is cut in front of the first line that would hurt, in whatever pieces it arrives.
func TestBoundedCutsHostileReplies(t *testing.T) {
	for _, tt := range hostile {
		for name, r := range map[string]io.Reader{
			"at once": strings.NewReader(tt.stream), "in halves": iotest.HalfReader(strings.NewReader(tt.stream)),
		} {
			passed, err := through(t, r)
			if !errors.Is(err, errHostile) || !strings.HasPrefix(tt.stream, string(passed)) || strings.Count(string(passed), "\n") != strings.Count(tt.stream[:tt.harmless], "\n") {
				t.Errorf("%s, %s: %d bytes and %v, want %d and an error", tt.name, name, len(passed), err, tt.harmless)
			}
		}
	}
	if passed, err := through(t, io.MultiReader(strings.NewReader("+"), endless{})); !errors.Is(err, errHostile) || len(passed) > mostLine+512 {
		t.Errorf("an endless line: %d bytes, %v", len(passed), err)
	}
}

// endless is a text without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// ask has go-redis read the replies of a server.
func ask(t *testing.T, stream io.Reader) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Dialer: Bounded(dialScripted(io.MultiReader(strings.NewReader("-ERR unknown command\r\n"), stream))),
		DisableIdentity: true, MaxRetries: -1, DialerRetries: 1})
	defer rdb.Close()
	var room []int64
	cmd := redis.NewCmd(t.Context(), "evalsha", "x", 0)
	_ = rdb.Process(t.Context(), cmd)
	values, err := Ints(cmd, &room)
	if err == nil && len(values) < least {
		t.Errorf("%d values and no error", len(values))
	}
}

// go-redis takes what passes without a panic, and without taking memory for what was only announced.
func TestBoundedSparesMemory(t *testing.T) {
	const most = 100 << 20
	for _, tt := range hostile {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ask(t, strings.NewReader(tt.stream))
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s took %d MiB", tt.name, took>>20)
		}
	}
}

// Whatever a server sends, what passes is a beginning of it, does not depend on the pieces in which it arrives, and does not make
// go-redis or Ints panic.
func FuzzReplies(f *testing.F) {
	for _, s := range honest {
		if len(s) < 100 {
			f.Add([]byte(s), uint64(1))
		}
	}
	for _, tt := range hostile {
		if len(tt.stream) < 1000 {
			f.Add([]byte(tt.stream), uint64(2))
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		lines, err := through(t, bytes.NewReader(stream))
		if !bytes.HasPrefix(stream, lines) {
			t.Fatalf("%q has become %q", stream, lines)
		}
		pieces, err2 := through(t, &inPieces{bytes.NewReader(stream), rand.New(rand.NewPCG(seed, 0))})
		if (err == nil) != (err2 == nil) || err == nil && !bytes.Equal(lines, pieces) {
			t.Fatalf("%q at once: %v, in pieces: %v", stream, err, err2)
		}
		ask(t, bytes.NewReader(stream))
	})
}

// inPieces reads a random number of bytes at a time.
type inPieces struct {
	io.Reader
	random *rand.Rand
}

func (r *inPieces) Read(p []byte) (int, error) {
	return r.Reader.Read(p[:1+r.random.IntN(min(len(p), 9))])
}
