package zklock_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// link is a way to a server: a toxiproxy within this process.
type link struct {
	testing.TB
	proxy *toxiproxy.Proxy
}

func openLink(tb testing.TB, target string) *link {
	tb.Helper()
	l := &link{tb, toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), "link", "127.0.0.1:0", target)}
	if err := l.proxy.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { l.proxy.Stop() })
	return l
}

func (l *link) addr() string { return l.proxy.Listen }

// add puts one of toxiproxy's toxics on a stream, upstream or downstream.
func (l *link) add(kind, stream string, attributes map[string]any) {
	l.Helper()
	text, err := json.Marshal(map[string]any{"name": kind + stream, "type": kind, "stream": stream, "toxicity": 1, "attributes": attributes})
	if err == nil {
		_, err = l.proxy.Toxics.AddToxicJson(strings.NewReader(string(text)))
	}
	if err != nil {
		l.Fatal(err)
	}
}

// swallow lets nothing through on a stream, while the connection stays.
func (l *link) swallow(stream string) { l.add("timeout", stream, map[string]any{"timeout": 0}) }

func (l *link) clear() { l.proxy.Toxics.ResetToxics(l.Context()) }

// cut ends all connections and lets none in, until mend.
func (l *link) cut() { l.proxy.Stop() }

func (l *link) mend() {
	l.Helper()
	if err := l.proxy.Start(); err != nil {
		l.Fatal(err)
	}
}
