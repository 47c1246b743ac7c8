package zklock

import (
	"testing"
	"time"
)

// proofTests are what a session of 8 s, attached at 0, knows after what was answered. Times are seconds.
var proofTests = []struct {
	name    string
	created bool
	reads   [][2]float64 // sent and answered
	writes  [][2]float64
	want    float64 // until when the session lives; -1 if that is not known
}{
	{name: "a new session is proven by its making", created: true, want: 8},
	{name: "a connection that is taken up again proves nothing yet", want: -1},
	{name: "reads prove nothing", reads: [][2]float64{{1, 1.1}, {5, 5.1}, {9, 9.1}}, want: -1},
	{name: "a write proves the handshake", writes: [][2]float64{{1, 1.1}}, want: 8},
	{name: "a write proves what was answered two seconds before", reads: [][2]float64{{3, 3.5}}, writes: [][2]float64{{5.5, 5.6}}, want: 11},
	{name: "but not what the leader may not have heard yet", reads: [][2]float64{{3, 3.5}}, writes: [][2]float64{{5.4, 5.6}}, want: 8},
	{name: "the answer has to be two seconds old, not the question", reads: [][2]float64{{1, 4}}, writes: [][2]float64{{5, 5.1}}, want: 8},
	{name: "a write is heard of like a read", writes: [][2]float64{{3, 3.1}, {6, 6.1}}, want: 11},
	{name: "the latest counts", reads: [][2]float64{{1, 1.1}, {2, 2.1}, {3, 3.1}}, writes: [][2]float64{{4.5, 4.6}}, want: 10},
	{name: "what is known stays known", created: true, writes: [][2]float64{{0.1, 0.2}}, want: 8},
}

func TestProof(t *testing.T) {
	epoch := time.Now()
	at := func(s float64) time.Time { return epoch.Add(time.Duration(s * float64(time.Second))) }
	for _, tt := range proofTests {
		var p proof
		p.attach(at(0), 8*time.Second, tt.created)
		for _, r := range tt.reads {
			p.note(at(r[0]), at(r[1]), false)
		}
		for _, w := range tt.writes {
			p.note(at(w[0]), at(w[1]), true)
		}
		switch {
		case tt.want < 0 && !p.until.IsZero():
			t.Errorf("%s: until %v", tt.name, p.until.Sub(epoch))
		case tt.want >= 0 && !p.until.Equal(at(tt.want)):
			t.Errorf("%s: until %v, want %vs", tt.name, p.until.Sub(epoch), tt.want)
		}
	}
}

// A new connection may be to a server of another opinion, so that what was answered on the old one does not count.
func TestProofBeginsAnewWithAConnection(t *testing.T) {
	epoch := time.Now()
	var p proof
	p.attach(epoch, 8*time.Second, true)
	p.note(epoch.Add(3*time.Second), epoch.Add(3*time.Second), false)
	p.attach(epoch.Add(4*time.Second), 8*time.Second, false)
	if got := p.until.Sub(epoch); got != 8*time.Second {
		t.Errorf("after the handshake: until %v", got)
	}
	p.note(epoch.Add(7*time.Second), epoch.Add(7*time.Second), true)
	if got := p.until.Sub(epoch); got != 12*time.Second {
		t.Errorf("after a write: until %v, want 8s after the handshake", got)
	}
}

func TestProofRemembersLittle(t *testing.T) {
	var p proof
	epoch := time.Now()
	p.attach(epoch, 8*time.Second, true)
	for i := range 100_000 {
		at := epoch.Add(time.Duration(i) * time.Millisecond)
		p.note(at, at, i%100 == 0)
	}
	if len(p.touches) > 64 {
		t.Errorf("%d answers are remembered", len(p.touches))
	}
	if got := p.until.Sub(epoch); got < 105*time.Second || got > 106*time.Second {
		t.Errorf("until %v after answers for 100s, want some 2.2s less than 108s", got)
	}
}
