package pubsub

import (
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
)

// secured is a connection like that of TLS, whose Close would wait.
type secured struct {
	net.Conn
	t *testing.T
}

func (s secured) NetConn() net.Conn { return s.Conn }
func (s secured) Close() error      { s.t.Error("closed above TLS"); return nil }

func TestCutBelowTLS(t *testing.T) {
	ours, theirs := net.Pipe()
	cut(secured{ours, t})
	if _, err := theirs.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open")
	}
}

// The client's own options stay as they are.
func TestDedicatedCopies(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{MinIdleConns: 3})
	defer rdb.Close()
	before := *rdb.Options()
	o := dedicated(t.Context(), rdb.Options())
	after := rdb.Options()
	if o.MinIdleConns != 0 || after.MinIdleConns != 3 || after.ReadTimeout != before.ReadTimeout {
		t.Errorf("MinIdleConns %d, ReadTimeout %v after a copy was made", after.MinIdleConns, after.ReadTimeout)
	}
}
