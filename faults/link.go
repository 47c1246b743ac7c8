package main

import (
	"context"
	"encoding/json"
	"strings"

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

// cut ends all connections and lets none in, until mend.
func (l *link) cut()        { l.proxy.Stop() }
func (l *link) mend() error { return l.proxy.Start() }
