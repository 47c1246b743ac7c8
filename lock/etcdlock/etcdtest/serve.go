package etcdtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

const (
	variable  = "LATCHKEY_ETCDTEST_MEMBER" // of the environment; a setup
	readyLine = "ready"
)

// setup is the configuration of a member.
type setup struct {
	Name, Dir                     string
	ClientURL, ListenURL, PeerURL string
	Cluster                       string
	Durable                       bool
	Election                      time.Duration
	Quota                         int64
	TokenTTL                      time.Duration
}

// mainCalled is what Start wants to know of this process.
var mainCalled atomic.Bool

// Main returns at once, unless [Start] has started this process. Then it is a member of the cluster, and Main does not return.
func Main() {
	mainCalled.Store(true)
	text := os.Getenv(variable)
	if text == "" {
		return
	}
	if err := serve(text); err != nil {
		fmt.Fprintln(os.Stderr, "etcdtest:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs a member until the process that started it has closed our input, which is when it ends.
func serve(text string) error {
	var s setup
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	cfg, err := s.config()
	if err != nil {
		return err
	}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		return err
	}
	if _, err := fmt.Fprintln(os.Stdout, readyLine); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func (s setup) config() (*embed.Config, error) {
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir, cfg.InitialCluster = s.Name, s.Dir, s.Cluster
	cfg.LogLevel, cfg.LogOutputs = "error", []string{"stderr"}
	cfg.UnsafeNoFsync = !s.Durable
	cfg.BcryptCost = 4 // passwords of tests
	cfg.MaxTxnOps = 128
	if s.Quota > 0 {
		cfg.QuotaBackendBytes = s.Quota
	}
	if s.TokenTTL > 0 {
		cfg.AuthTokenTTL = uint(s.TokenTTL / time.Second)
	}
	if s.Election > 0 {
		cfg.ElectionMs = uint(s.Election.Milliseconds())
		cfg.TickMs = max(1, cfg.ElectionMs/10)
	}
	for _, u := range []struct {
		text string
		to   *[]url.URL
	}{
		{s.ClientURL, &cfg.ListenClientUrls}, {s.ClientURL, &cfg.AdvertiseClientUrls},
		{s.ListenURL, &cfg.ListenPeerUrls}, {s.PeerURL, &cfg.AdvertisePeerUrls},
	} {
		parsed, err := url.Parse(u.text)
		if err != nil {
			return nil, err
		}
		*u.to = []url.URL{*parsed}
	}
	return cfg, cfg.Validate()
}
