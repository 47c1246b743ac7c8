package pubsub

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A server that sends what no Redis would: nothing of it may end the process, stay in memory, or stop the subscriptions for good.

// nonsense is what is sent to subscribers.
var nonsense = []string{
	"*0\r\n", "*-1\r\n", "$-1\r\n", ":1\r\n", "+OK\r\n", "$5\r\nhello\r\n", "-ERR no\r\n", "_\r\n", "*1\r\n:1\r\n", "*1\r\n$-1\r\n", "*1\r\n*0\r\n",
	"*1\r\n$7\r\nmessage\r\n", "*2\r\n$7\r\nmessage\r\n$1\r\na\r\n", "*3\r\n$7\r\nmessage\r\n$-1\r\n$1\r\n0\r\n", "*3\r\n$7\r\nmessage\r\n:1\r\n:2\r\n",
	"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n*1\r\n:1\r\n", "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$-1\r\n", "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n%1\r\n+k\r\n+v\r\n",
	array("message", "a", ""), array("message", "a", "-1"), array("message", "a", strings.Repeat("9", 1000)), array("message", "a", "\x00\xff"),
	array("message", "never subscribed", "0"), array("smessage", "a", "0"), array("pmessage", "*", "a", "0"), array("pmessage", "*"),
	"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n$1\r\n1\r\n", "*2\r\n$9\r\nsubscribe\r\n$1\r\na\r\n", array("subscribe", "a", -1), array("subscribe", "b", 1), array("unsubscribe", "a", 0),
	"*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n", array("sunsubscribe", "a", 0), array("pong"), "*2\r\n$4\r\npong\r\n:1\r\n",
	">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n", ">0\r\n", ">1\r\n:1\r\n", ">1\r\n$-1\r\n", ">4\r\n+MOVING\r\n:1\r\n:2\r\n+127.0.0.1:1\r\n", "|1\r\n+a\r\n+b\r\n",
	"*1\r\n-MOVED 1 127.0.0.1:1\r\n", "-MOVED\r\n", "-MOVED x 127.0.0.1:1\r\n", "-MOVED 99999999999 \r\n",
	"$9223372036854775807\r\n", "*2147483647\r\n", "*1000000\r\n*1000000\r\n", strings.Repeat("*1\r\n", 100), strings.Repeat("|0\r\n", 100), "HTTP/1.1 200 OK\r\n",
}

// After any nonsense, a subscription is live again and gets messages.
func TestNonsenseIsSurvived(t *testing.T) {
	for _, what := range nonsense {
		for _, sharded := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) { testNonsense(t, what, sharded) })
		}
	}
}

func testNonsense(t *testing.T, what string, sharded bool) {
	f := newFakeServer()
	s := f.subscriber(t)
	if sharded {
		c := newFakeCluster()
		f, s = c.a, c.subscriber(t, On)
	}
	sub := s.Subscribe("a")
	defer sub.Close()
	time.Sleep(reconnectCap)
	synctest.Wait()
	f.reply(what)
	time.Sleep(4 * silence) // time to find a connection dead that waits for the rest of a reply
	synctest.Wait()
	changed, live := sub.Changed()
	if !live {
		t.Errorf("after %.60q the subscription is not live", what)
	}
	f.publish("a")
	if !hinted(changed) {
		t.Errorf("after %.60q a message does not arrive", what)
	}
	if channels, connections := s.size(); channels != 1 || connections != 1 {
		t.Errorf("after %.60q there are %d channels and %d connections", what, channels, connections)
	}
}

// FuzzMessages is TestNonsenseIsSurvived with any text.
func FuzzMessages(f *testing.F) {
	for _, what := range nonsense {
		f.Add([]byte(what))
	}
	f.Fuzz(func(t *testing.T, what []byte) {
		synctest.Test(t, func(t *testing.T) { testNonsense(t, string(what), false) })
	})
}
