package pubsub

import (
	"fmt"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// From Subscribe until messages get through, for a channel that is new, and for one that lingers.
func BenchmarkSubscribe(b *testing.B) {
	rdb := redistest.Start(b).Client(b)
	s := NewSubscriber(NewTopology(rdb, Auto))
	defer s.Close()
	until := func(channel string) {
		sub := s.Subscribe(channel)
		defer sub.Close()
		for {
			changed, live := sub.Changed()
			if live {
				return
			}
			<-changed
		}
	}
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			n++
			until(fmt.Sprint("k", n))
		}
	})
	b.Run("lingering", func(b *testing.B) {
		b.ReportAllocs()
		until("k")
		for b.Loop() {
			until("k")
		}
	})
}
