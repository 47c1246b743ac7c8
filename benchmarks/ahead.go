package main

import (
	"fmt"
	"slices"
	"strings"
)

// compared is a figure in which one peer can be better than another.
type compared struct {
	id, what string
	more     bool // is better
}

// comparisons are what a user of a lock notices. Without commands: their price is in the times.
var comparisons = []compared{
	{"pair_us", "a pair of one caller, µs", false},
	{"pair_p99_us", "a pair of one caller, 99th percentile, µs", false},
	{"uncontended_allocs", "allocations of a pair", false},
	{"link_pair_us", "a pair of one caller over the link, µs", false},
	{"own_keys_8_rate", "8 callers with own keys, pairs/s", true},
	{"own_keys_64_rate", "64 callers with own keys, pairs/s", true},
	{"own_keys_512_rate", "512 callers with own keys, pairs/s", true},
	{"one_key_per_s", "64 callers on one key, acquisitions/s", true},
	{"one_key_longest_ms", "64 callers on one key, longest wait, ms", false},
	{"busy_key_per_s", "64 callers on one key, each back at once, acquisitions/s", true},
	{"busy_key_longest_ms", "64 callers on one key, each back at once, longest wait, ms", false},
	{"link_key_per_s", "64 callers on one key over the link, acquisitions/s", true},
	{"processes_per_s", "4 processes × 16 on one key, acquisitions/s", true},
	{"processes_longest_ms", "4 processes × 16 on one key, longest wait, ms", false},
	{"turns_gap_us", "strict turns, from release to acquisition, µs", false},
	{"held_bytes", "memory of a held lock, B", false},
	{"held_goroutines", "goroutines of a held lock", false},
	{"held_10000_share", "share of Redis' time to renew 10,000 locks", false},
	{"key_ns", "a key from two fields, ns", false},
}

// noLock are peers that lock nothing that anybody could wait for or rely on: they are floors, and no competition.
var noLock = []string{base, "bare", "bare-default", floorLine, floorMany, "rueidis", ourUser, unguarded, byHand}

// ahead lists where another peer is better than Latchkey, with the medians of both.
func (r report) ahead() grid {
	g := grid{title: "Where others are ahead", head: []string{"what", we, "better"}}
	for _, c := range comparisons {
		own, ok := r.find(c.id, we)
		if !ok || own.Value == nil {
			continue
		}
		var better []string
		for _, f := range r.Figures {
			if f.ID == c.id && f.Value != nil && !slices.Contains(noLock, f.Peer) && c.better(*f.Value, *own.Value) {
				better = append(better, fmt.Sprintf("%s: %s", f.Peer, number(*f.Value)))
			}
		}
		if len(better) > 0 {
			g.rows = append(g.rows, []string{c.what, number(*own.Value), strings.Join(better, ", ")})
		}
	}
	return g
}

func (c compared) better(a, b float64) bool {
	if c.more {
		return a > b
	}
	return a < b
}
