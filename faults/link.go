package main

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// link is a worker's way to a server: a toxiproxy within this process.
type link struct{ proxy *toxiproxy.Proxy }

// toxic is one of toxiproxy's, by its own names.
type toxic struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Stream     string         `json:"stream"`
	Toxicity   float32        `json:"toxicity"`
	Attributes map[string]any `json:"attributes"`
}

func openLink(name, target string) (*link, error) {
	p := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), name, "127.0.0.1:0", target)
	return &link{p}, p.Start()
}

func (l *link) addr() string { return l.proxy.Listen }

func (l *link) add(t toxic) error {
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	_, err = l.proxy.Toxics.AddToxicJson(strings.NewReader(string(text)))
	return err
}

func (l *link) clear(ctx context.Context) { l.proxy.Toxics.ResetToxics(ctx) }

// answerTimeout is how long after a stop a server may take to answer on a link.
const answerTimeout = 10 * time.Second

// answers waits until a new connection through the link is answered.
func (l *link) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for {
		err := l.ping(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		sleep(ctx, 10*time.Millisecond)
	}
}

func (l *link) ping(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", l.addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if _, err := conn.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1)) // a refusal is an answer, too
	return err
}

// cut ends all connections and lets none in, until mend.
func (l *link) cut()        { l.proxy.Stop() }
func (l *link) mend() error { return l.proxy.Start() }
