package main

import (
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/faults/history"
	"github.com/latchkey-go/latchkey/faults/server"
)

// mixes are the kinds of locks and synchronizers that are played together on one server.
var mixes = [][]string{
	{"lock", "read", "write", "permit"},
	{"lock", "multi", "spin"},
	{"fair", "fenced", "lock"},
	{"read", "write", "fenced", "multi"},
	{"permit", "fair", "spin", "lock"},
	{"semaphore", "lock", "latch"},
	{"expirable", "write", "limiter"},
	{"semaphore", "expirable", "fair", "latch"},
}

// javaMixes are those that Redisson's workers know.
var javaMixes = [][]string{{"lock", "read", "write"}, {"fair", "fenced"}, {"lock", "spin", "write"}}

// plans are the worlds of a run.
func plans() []plan {
	return []plan{
		{name: "links", config: server.Config{Keep: true}, mixes: mixes, kinds: slices.Concat(linkKinds, workerKinds)},
		{name: "wire", config: server.Config{Keep: true}, mixes: mixes, kinds: wireKinds},
		{name: "server", config: server.Config{Keep: true}, mixes: mixes, kinds: serverKinds},
		{name: "loss", mixes: mixes, kinds: lossKinds},
		{name: "sentinel", servers: 2, arrange: sentinels, mixes: mixes[:5], kinds: slices.Concat(sentinelKinds, across("sentinel"))},
		{name: "cluster", servers: 6, config: server.Config{Cluster: true}, arrange: cluster, mixes: mixes[:5], kinds: slices.Concat(clusterKinds, across("cluster"))},
		{name: "red", servers: 3, mixes: [][]string{{"redlock"}}, kinds: redKinds},
		{name: "redisson", config: server.Config{Keep: true}, java: 2, mixes: javaMixes, kinds: javaKinds},
		{name: "sets", sets: true, config: server.Config{Keep: true}, kinds: slices.Concat(setKinds, leadKinds)},
		{name: "requests", sets: true, config: server.Config{Keep: true}, kinds: requestKinds},
		{name: "limits", config: server.Config{Keep: true}, kinds: limitKinds},
		{name: "clock", config: server.Config{Keep: true}, clock: true, mixes: mixes, kinds: clockKinds},
	}
}

// across are kinds of fault on the way to servers that belong together, by the name of their world.
func across(world string) (some []kind) {
	for _, k := range slices.Concat(linkKinds, wireKinds) {
		if slices.Contains([]string{"latency", "cut connections", "request lost", "reply lost"}, k.name) {
			k.name = world + ": " + k.name
			some = append(some, k)
		}
	}
	return some
}

// selected leaves only the kinds that the pattern names.
func selected(all []plan, only *regexp.Regexp) (some []plan) {
	for _, p := range all {
		p.kinds = slices.DeleteFunc(slices.Clone(p.kinds), func(k kind) bool { return !only.MatchString(k.name) })
		if len(p.kinds) > 0 {
			some = append(some, p)
		}
	}
	return some
}

func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	return h.Sum64()
}

func newLog(dir string) (*history.Log, error) {
	if err := os.MkdirAll(filepath.Join(dir, "log"), 0o755); err != nil {
		return nil, err
	}
	return history.Create(filepath.Join(dir, "log"), "faults")
}

// stays reports whether a key may stay in Redis when nobody holds anything: the counter of a fenced lock does for ever, and the note
// of what came of a request for its time.
func stays(key string) bool {
	return strings.HasPrefix(key, "redisson_lock_token:") || strings.HasPrefix(key, "latchkey_receipt:")
}
