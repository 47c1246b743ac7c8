package redisson_test

import (
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/internal/sim"
)

// simSometimes is what a run of many seeds must have reached: faults that strike nothing prove nothing.
var simSometimes = []string{
	// Faults.
	"request lost", "request late", "answer lost", "subscription cut", "tail of delay", "script flush", "request held back",
	"answer held back", "request after its caller left", "keys that are back", "undone",
	// Faults that strike where it matters.
	"request lost: lock_update", "answer lost: lock_update", "answer lost: lock_acquire", "answer lost: lock_release",
	"request late: lock_release", "answer lost: rw_update", "answer lost: rw_release", "answer lost: fair_acquire",
	"answer lost: semaphore_release", "answer lost: permits_acquire",
	// Rare states.
	"late acquire took the lock", "late update behind a re-entry", "late update of a lock that is gone",
	"late release with somebody inside", "loss during a renewal", "ghost in a fair queue", "passed on",
	"forced release repeated with somebody inside",
	// How calls end.
	"busy", "context ended", "outage", "lost", "re-entry", "re-entry of a member", "downgrade", "re-entry beside a release", "outer hold released first", "lease over inside", "robbed",
	"kept", "extended", "refused as not re-entrant", "died", "level given away", "a level of an outer hold",
}

// executed is called with each command that the server has run.
func (w *world) executed(e sim.Execution) {
	if strings.HasSuffix(e.Script, "_release") && e.Answer == "*1\r\n:0\r\n" {
		w.vain.Add(1)
	}
	if strings.HasSuffix(e.Script, "force") && strings.HasPrefix(e.Answer, "*2\r\n:1\r\n") {
		w.forced(e)
	}
	w.permits(e)
	w.judge.look()
	if strings.HasSuffix(e.Script, "_update") && e.Answer == "*1\r\n:0\r\n" {
		w.net.Reach("loss during a renewal")
	}
	if e.Late && len(e.Args) > 2 {
		w.late(e)
	}
}

// permits is called with each command, and looks for those that give a permit of a rate, or give one back that somebody else has.
func (w *world) permits(e sim.Execution) {
	switch {
	case w.options.scene == "levels" && e.Script == "permits_release" && e.Answer == "*1\r\n:1\r\n":
		w.judge.gaveAway(e.Args[3], e.Args[4+atoi(e.Args[2])])
	case w.options.scene == "begin" && strings.HasPrefix(e.Answer, "*3\r\n:1\r\n") && (e.Script == "permit_acquire" || e.Script == "lock_wait"):
		w.judge.began(holderOf(e.Args))
	}
	if e.Script == "lock_wait" && strings.HasPrefix(e.Answer, "*3\r\n:1\r\n") && w.uniform() && w.options.faults == "none" {
		w.judge.passedOver(e.Args)
	}
}

// forced is called with each command that says that it has freed a lock. Of several copies, the first one has.
func (w *world) forced(e sim.Execution) {
	receipt, number := e.Args[len(e.Args)-4], e.Args[len(e.Args)-3]
	if request := receipt + " " + number; !w.forces[request] {
		w.forces[request] = true
		w.judge.rob(e.Args[3])
	} else if inside, _ := w.judge.present(e.Client); inside {
		w.net.Reach("forced release repeated with somebody inside")
	}
}

// late notes what a command has done whose sender had given it up.
func (w *world) late(e sim.Execution) {
	took := strings.HasPrefix(e.Answer, ":") || strings.HasPrefix(e.Answer, "*3\r\n:1\r\n") // a lone integer is a yes
	updates := strings.HasSuffix(e.Script, "_update")
	switch inside, nested := w.judge.present(e.Client); {
	case updates && took && nested:
		w.net.Reach("late update behind a re-entry")
	case updates && !took:
		w.net.Reach("late update of a lock that is gone")
	case strings.HasSuffix(e.Script, "_acquire") && took && !inside:
		w.net.Reach("late acquire took the lock")
	case strings.HasSuffix(e.Script, "_release") && inside:
		w.net.Reach("late release with somebody inside")
	}
	if queue, _ := w.sim.Server().List("redisson_lock_queue:{L}"); e.Script == "fair_acquire" && slices.Contains(queue, holderOf(e.Args)) {
		w.net.Reach("ghost in a fair queue")
	}
}

// holderOf is the first argument of a script.
func holderOf(args []string) string {
	if at := 3 + atoi(args[2]); at < len(args) {
		return args[at]
	}
	return ""
}

// present reports whether anybody is inside, and whether an owner of the client is so more than once.
func (j *judge) present(client int) (inside, nested bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, stays := range j.inside {
		for _, s := range stays {
			inside = true
			nested = nested || s.o.client == j.w.clients[client] && len(s.live) > 1
		}
	}
	return inside, nested
}

// missed lists what was not reached.
func missed(reached map[string]int) []string {
	return slices.DeleteFunc(slices.Clone(simSometimes), func(what string) bool { return reached[what] > 0 })
}
