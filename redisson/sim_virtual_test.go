package redisson_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/internal/sim"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// simulate plays a world in virtual time and returns it when all is over.
func simulate(t *testing.T, o simOptions) *world {
	w := &world{options: o, scene: simScenes[o.scene], times: virtualTimes, forces: map[string]bool{}}
	alarm := time.AfterFunc(2*time.Minute, func() { panic(fmt.Sprintf("virtual time stands still: %v", o)) })
	defer alarm.Stop()
	cryptotest.SetGlobalRandom(t, o.seed)
	synctest.Test(t, func(t *testing.T) { w.playVirtually(t) })
	return w
}

func (w *world) playVirtually(t *testing.T) {
	net, err := sim.New(sim.Options{Seed: w.options.seed, Faults: simFaults[w.options.faults], Names: simNames, Executed: w.executed})
	if err != nil {
		t.Fatal(err)
	}
	w.net, w.sim = net, net
	w.judge = newJudge(w)
	for i := range simClients {
		w.connect(t, i, func(o *redis.Options) { o.Dialer = net.Dialer(i) })
	}
	if w.scene.force != nil { // it is of locks
		redisson.Twin(w.clients[2], w.clients[1]) // two processes go on from one memory image
	}
	w.play()
	w.close()
	net.Close()
	time.Sleep(10 * w.times.timeout) // what goes on after Close is bounded by the client's timeout
	synctest.Wait()
	if left := goroutines(); left != "" {
		w.judge.accuse("left: goroutines\n%s", left)
	}
}

// bubble finds in a stack trace the bubble that a goroutine is in.
var bubble = regexp.MustCompile(`synctest bubble \d+`)

// goroutines returns the stacks of all goroutines in the bubble but those of the test itself.
func goroutines() string {
	buf := make([]byte, 1<<20)
	stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	mine := bubble.FindString(stacks[0])
	var left []string
	for _, s := range stacks[1:] {
		if bubble.FindString(s) == mine && !strings.Contains(s, "synctest.Run(") && !strings.Contains(s, "synctest.testing") {
			left = append(left, s)
		}
	}
	return strings.Join(left, "\n\n")
}

// simNames distinguishes the ids of holders, and names scripts by their files.
var simNames = sim.Names{ID: regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}(:[0-9]+)?`), Script: scriptNamer()}

// scriptNamer returns a function that finds the file of a script by its end: it may have a prelude.
func scriptNamer() func(text string) string {
	texts := map[string]string{}
	for _, pattern := range []string{"*.lua", "lua/*.lua"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil {
				texts[strings.TrimSuffix(filepath.Base(file), ".lua")] = string(text)
			}
		}
	}
	return func(text string) (found string) {
		for name, end := range texts {
			if strings.HasSuffix(text, end) && len(end) > len(texts[found]) {
				found = name
			}
		}
		return found
	}
}
