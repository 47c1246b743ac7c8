package main

import (
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"
)

// latency is how much later an answer comes over the link.
const latency = 500 * time.Microsecond

// link is a way to Redis on which each answer takes longer: toxiproxy, within this process.
type link struct{ proxy *toxiproxy.Proxy }

// openLink returns a link to the server at target, on a free port.
func openLink(target string) (*link, error) {
	toxics.Register("late", new(late))
	p := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), "link", "127.0.0.1:0", target)
	if err := p.Start(); err != nil {
		return nil, err
	}
	if _, err := p.Toxics.AddToxicJson(strings.NewReader(`{"type":"late","stream":"downstream"}`)); err != nil {
		p.Stop()
		return nil, err
	}
	return &link{p}, nil
}

// Addr is where clients connect.
func (l *link) Addr() string { return l.proxy.Listen }

// Close ends all connections.
func (l *link) Close() { l.proxy.Stop() }

// late is toxiproxy's latency, which counts in milliseconds only and sleeps with timers that are as coarse.
type late struct{}

// GetBufferSize is how many chunks can be under way at once.
func (*late) GetBufferSize() int { return 1024 }

// Pipe passes on each chunk when its time has come.
func (*late) Pipe(stub *toxics.ToxicStub) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case c := <-stub.Input:
			if c == nil {
				stub.Close()
				return
			}
			pause(latency - time.Since(c.Timestamp))
			stub.Output <- c
		}
	}
}
