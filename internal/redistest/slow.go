package redistest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// slow is what Redis' slow log takes for slow by default.
const slow = 10 * time.Millisecond

// Slow runs f, and returns what the servers have noted in their slow logs meanwhile. Time does not count in which the machine did something
// else: as much as a server has waited for its turn in all. Nor does what is not slow again when f runs a second time, as the host of a
// virtual machine may stop it for a moment, and does not say so.
func Slow(tb testing.TB, f func(), servers ...*Server) (commands []string) {
	tb.Helper()
	for range 2 {
		if commands = slowOnce(tb, f, servers); len(commands) == 0 {
			break
		}
	}
	return commands
}

func slowOnce(tb testing.TB, f func(), servers []*Server) (commands []string) {
	tb.Helper()
	ctx := context.Background()
	before := make([]time.Duration, len(servers))
	for i, s := range servers {
		rdb := s.Client(tb)
		for _, err := range []error{rdb.ConfigSet(ctx, "slowlog-log-slower-than", strconv.FormatInt(slow.Microseconds(), 10)).Err(), rdb.SlowLogReset(ctx).Err()} {
			if err != nil {
				tb.Fatalf("redistest: %v", err)
			}
		}
		before[i] = s.waited(tb)
	}
	f()
	for i, s := range servers {
		log, err := s.Client(tb).SlowLogGet(ctx, -1).Result()
		if err != nil {
			tb.Fatalf("redistest: %v", err)
		}
		waited := s.waited(tb) - before[i]
		for _, l := range log {
			if l.Duration-waited > slow {
				commands = append(commands, fmt.Sprintf("%.200q took %v, of which it waited %v at most", l.Args, l.Duration, waited))
			}
		}
	}
	return commands
}

// waited is how long the server could have run and did not, where Linux says so.
func (s *Server) waited(tb testing.TB) time.Duration {
	tb.Helper()
	info, err := s.Client(tb).Info(context.Background(), "server").Result()
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	_, pid, _ := strings.Cut(info, "\nprocess_id:")
	pid, _, _ = strings.Cut(pid, "\r")
	text, err := os.ReadFile("/proc/" + pid + "/schedstat")
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 1 {
		ns, _ := strconv.ParseInt(fields[1], 10, 64)
		return time.Duration(ns)
	}
	return 0
}
