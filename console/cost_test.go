package console

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// What open pages cost Redis.

// monitor counts what clients send to a server, and the SCANs of their scripts, by name, until stop is called. Runs of one script that travel
// together count once.
func monitor(t *testing.T, r *redistest.Server) (stop func() map[string]int) {
	t.Helper()
	conn, err := net.Dial("tcp", r.Addr)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil || !lines.Scan() || lines.Text() != "+OK" {
		t.Fatalf("MONITOR: %v, %q", err, lines.Text())
	}
	counts := map[string]int{}
	var reading sync.WaitGroup
	reading.Go(func() {
		last, at := "", 0.0
		for lines.Scan() {
			name, what, when := monitored(lines.Text())
			if name == "" {
				continue
			}
			if name != "evalsha" || what != last || when-at > 0.05 {
				counts[name]++
			}
			last, at = what, when
		}
	})
	end := sync.OnceFunc(func() { _ = conn.Close(); reading.Wait() })
	t.Cleanup(end)
	return func() map[string]int { end(); return counts }
}

var monitorLine = regexp.MustCompile(`^\+([\d.]+) \[\d+ ([^\]]*)\] "(\w+)"(?: "\w+")?`)

// monitored is the command of a line of MONITOR, unless a script sent it and it is no SCAN, what says who has sent it, and which script, and when
// the server read it, in seconds.
func monitored(line string) (name, what string, when float64) {
	m := monitorLine.FindStringSubmatch(line)
	if m == nil || m[2] == "lua" && !strings.EqualFold(m[3], "scan") {
		return "", "", 0
	}
	_, what, _ = strings.Cut(m[0], " ")
	when, _ = strconv.ParseFloat(m[1], 64)
	return strings.ToLower(m[3]), what, when
}

// asked counts the questions that clients send to some servers while f runs, but for the scripts with SCAN.
func asked(t *testing.T, servers []*redistest.Server, f func()) (total int, text string) {
	t.Helper()
	var stops []func() map[string]int
	for _, r := range servers {
		stops = append(stops, monitor(t, r))
	}
	f()
	all := map[string]int{}
	for _, stop := range stops {
		for name, n := range stop() {
			all[name] += n
		}
	}
	for _, n := range all {
		total += n
	}
	return total - 2*all["scan"] - all["eval"], fmt.Sprint(all) // each is counted with its script, and what brings a script twice
}

// filled is one server or a cluster, with keys of somebody else.
func filled(t *testing.T, others int, cluster bool) (servers []*redistest.Server, rdb redis.UniversalClient) {
	t.Helper()
	if !cluster {
		r := redistest.Start(t)
		r.Fill(t, others)
		return []*redistest.Server{r}, r.Client(t)
	}
	c := redistest.StartCluster(t, 0)
	c.Fill(t, others)
	for _, m := range c.Masters {
		servers = append(servers, m.Server)
	}
	return servers, c.Client(t)
}

// holders makes locks, each of a client of its own, that nobody renews.
func holders(t *testing.T, rdb redis.UniversalClient, n int) {
	t.Helper()
	for from := 0; from < n; from += 500 {
		pipe := rdb.Pipeline()
		for i := from; i < min(from+500, n); i++ {
			key := fmt.Sprint("order:", i)
			pipe.HSet(t.Context(), key, fmt.Sprintf("6ba7b810-9dad-41d1-80b4-%012d:1", i), 1)
			pipe.Expire(t.Context(), key, time.Hour)
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// An open page costs Redis at most five questions a second beside the list's SCAN, however many look and however many locks there are, and nothing once
// it is closed.
func TestCost(t *testing.T) {
	const list, lock, seconds = "events?of=list", "events?of=lock&key=order:42", 6
	for _, tt := range []struct {
		name    string
		pages   []string
		locks   int
		others  int // keys of somebody else
		cluster bool
		asks    bool
	}{
		{"list", []string{list}, 2, 0, false, true},
		{"five who look at the list", []string{list, list, list + "&q=a", list + "&sort=left", list}, 2, 0, false, true},
		{"list of 200 locks", []string{list}, 200, 0, false, true},
		{"list of 200 locks among others", []string{list}, 200, 50_000, false, true},
		{"list of 200 locks in a cluster", []string{list}, 200, 0, true, true},
		{"lock", []string{lock}, 43, 0, false, true},
		{"five who look at a lock", []string{lock, lock, lock, lock, lock}, 43, 0, false, true},
		{"lock in a cluster", []string{lock}, 43, 0, true, true},
		{"guards", []string{"events?of=guards"}, 2, 0, false, false},
		{"nobody", nil, 2, 0, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			servers, rdb := filled(t, tt.others, tt.cluster)
			holders(t, rdb, tt.locks)
			s := consoleOf(t, rdb)
			var ends []context.CancelFunc
			for _, page := range tt.pages {
				ends = append(ends, watch(t, s, page))
			}
			begun := time.Now()
			total, counts := asked(t, servers, func() { <-time.After(seconds * time.Second) })
			took := time.Since(begun).Seconds() // on a busy machine, more than it was asked for; a second's round may be under way
			if float64(total) > 5*(took+1) || total > 0 && !tt.asks {
				t.Errorf("%d questions in %.1f s: %s", total, took, counts)
			}
			if tt.asks && total == 0 {
				t.Error("nothing was asked at all")
			}
			t.Logf("%.1f questions a second: %s", float64(total)/took, counts)
			for _, end := range ends {
				end()
			}
			<-time.After(linger)
			for tries := 1; ; tries++ { // on a busy machine, the handlers notice later that their viewers have gone
				total, counts := asked(t, servers, func() { <-time.After(2 * listRest) })
				if total == 0 {
					break
				}
				if tries == 10 {
					t.Fatalf("asked while nobody looks: %s", counts)
				}
			}
		})
	}
}

// watch holds a page's stream open, and reads what comes.
func watch(t *testing.T, s *httptest.Server, page string) context.CancelFunc {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/"+page, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	lines := bufio.NewReader(res.Body)
	for begun := false; !begun; { // what is needed once, such as a script that is loaded, is over by then
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		begun = strings.HasPrefix(line, "data:")
	}
	reading.Go(func() {
		for {
			if _, err := lines.ReadString('\n'); err != nil {
				_ = res.Body.Close()
				return
			}
		}
	})
	end := sync.OnceFunc(func() { cancel(); reading.Wait() })
	t.Cleanup(end)
	return end
}

// A reading rests for as long as its questions are worth, however many locks there are.
func TestReadingsRest(t *testing.T) {
	t.Parallel()
	_, rdb := filled(t, 0, false)
	read := func() (*listState, time.Duration) {
		t.Helper()
		return newListFeed(newClient(t, rdb)).read(t.Context(), nil, func(*listState) {})
	}
	if state, rest := read(); rest < listRest || rest > max(listRest, searchShare*state.took) {
		t.Errorf("no locks, which took %v to find out: rest for %v, want %v or %d times that", state.took, rest, listRest, searchShare)
	}
	holders(t, rdb, 10_000)
	state, rest := read()
	for tries := 0; state.failed != nil && tries < 10; tries++ { // a busy machine's Redis can be silent for too long
		state, rest = read()
	}
	if n := state.progress.Questions; state.total != 10_000 || n < 200 || n > 250 || rest != time.Duration(n)*time.Second/listPace {
		t.Errorf("%d locks, %d questions: rest for %v", state.total, n, rest)
	}
}

// Very many keys of somebody else: the page says how far it has come, then shows the locks, and Redis serves others meanwhile.
func TestListAmongManyOthers(t *testing.T) {
	n := 60_000
	if given, err := strconv.Atoi(os.Getenv("LATCHKEY_TEST_KEYS")); err == nil {
		n = given
	}
	for _, cluster := range []bool{false, true} {
		t.Run(fmt.Sprintf("cluster=%v", cluster), func(t *testing.T) {
			servers, rdb := filled(t, n-n%3, cluster)
			holders(t, rdb, 100)
			s := consoleOf(t, rdb)
			var took time.Duration
			states := map[string]bool{}
			slow := redistest.Slow(t, func() {
				start := time.Now()
				next, _ := live(t, s, "events?of=list")
				for part := ""; !strings.Contains(part, "100 locks") || !strings.Contains(part, "Read at"); {
					part = next()
					states[statusText.FindString(part)] = true
				}
				took = time.Since(start)
			}, servers...)
			t.Logf("%d keys took %v: %q", n, took, slices.Sorted(maps.Keys(states)))
			if len(slow) > 0 {
				t.Errorf("%d commands were slow: %.2000q", len(slow), slow)
			}
		})
	}
}

var statusText = regexp.MustCompile(`(Searching|Read at)[^<]*`)
