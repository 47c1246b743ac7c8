package neighbours

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gin-gonic/gin"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// exceptions are plays whose answers may differ from those without a guard. Beside them, differences knows one for all programs.
var exceptions = []struct{ program, work, state, reason string }{
	{"http.TimeoutHandler outside", "pani", "lost midway", "http.TimeoutHandler drops what was written before a panic, and the server closes the connection"},
	{"http.TimeoutHandler outside", "abort", "lost midway", "as before"},
	{"http.TimeoutHandler around echo", "pani", "lost midway", "as before"},
	{"http.TimeoutHandler around echo", "abort", "lost midway", "as before"},
	{"etag", "pani", "lost midway", "as before"},
	{"etag", "abort", "lost midway", "as before"},
	{"etag", "fails after a part", "", "a status after a part of the body counts for it, and nowhere else"},
	{"gin, timeout outside", "fails after a part", "", "a status after a part of the body counts for it, and nowhere else"},
	{"gin, gzip and cors", "fails after a part", "free", "it breaks that response off by itself"},
	{"gin, gzip and cors", "panics", "lost midway", "the guard flushes its answer before the panic goes on, and gzip's Flush puts its own marker behind a plain one"},
	{"gin, gzip and cors", "aborts", "lost midway", "as before"},
	{"gorilla/handlers", "panics after a part", "", "its compressor answers 200 for a handler that panics, with whatever was written"},
	{"scs sessions", "events", "free", "it forgets its cookie where a response is flushed before it is written, and the guard writes the status first"},
	{"", "reads too much", "", "http.MaxBytesReader has a server close the connection only through the server's own writer"},
	{"echo v5, gzip", "length", "free", "it leaves the length of what it compresses, and the guard chooses the status early enough to have it dropped"},
}

func excepted(p play) bool {
	for _, e := range exceptions {
		if strings.HasPrefix(p.program.name, e.program) && strings.Contains(p.work.name, e.work) && strings.Contains(p.state.name, e.state) {
			return true
		}
	}
	return false
}

// TestNeighbours plays all works in all programs and all states, and compares what the clients see with and without a guard.
func TestNeighbours(t *testing.T) { compare(t, works, states, http1, http2) }

func compare(t *testing.T, works []work, states []state, protocols ...protocol) {
	var plays atomic.Int64
	t.Cleanup(func() { t.Logf("%d plays", plays.Load()) })
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for _, w := range works {
				if w.late && !p.late || slices.ContainsFunc(p.unfit, func(unfit string) bool { return strings.Contains(w.name, unfit) }) {
					continue
				}
				for _, protocol := range protocols {
					if protocol == http2 && p.http1 {
						continue
					}
					compresses := false
					for _, gzip := range []bool{true, false} {
						if compresses && protocol == http2 {
							continue // it is the same as for a program that does not
						}
						play := play{program: p, work: w, protocol: protocol, gzip: gzip}
						without, _ := play.run(t)
						if compresses = without.envelope.Get("Content-Encoding") != ""; gzip && !compresses {
							continue
						}
						for _, s := range states {
							if s.status != 0 && !w.refused {
								continue
							}
							plays.Add(1)
							play.state = &s
							play.compare(t, without)
						}
					}
				}
			}
		})
	}
}

// compare plays a call with a guard.
func (p play) compare(t *testing.T, without answer) {
	t.Helper()
	with, account := p.run(t)
	if p.work.late && account.runs == 0 {
		return // the time was over before
	}
	if wrong := judge(p, without, with, account); len(wrong) > 0 {
		t.Errorf("%s / %s / %s / %s, gzip %v: %s\n\twithout: %v\n\twith:    %v\n\tguard:   %+v",
			p.program.name, p.work.name, p.state.name, p.protocol, p.gzip, strings.Join(wrong, "; "), without, with, account)
	}
}

// judge says what is wrong with an answer of a guarded program.
func judge(p play, without, with answer, a account) (wrong []string) {
	switch {
	case p.work.whole && p.program.proxies && p.state.midway && slices.Equal(a.outcomes, []string{"ok"}):
		return p.differences(without, with) // the proxy had all of it, and the guarded call was over before the lock was lost
	case p.work.name == "panics after a part" && p.state.status == 0 && with.err == "" && with.status == http.StatusInternalServerError:
		// What the guard held back is gone with the panic, so that recovery in front can answer.
	case excepted(p) && (p.state.outcome != "lost" || with.err != "" || with.status >= 400 || p.work.outcome == "panic" && without.status < 400):
	case p.state.status != 0:
		wrong = append(p.judgeRefusal(with), p.neighbourly(without, with)...)
		if a.runs != 0 {
			wrong = append(wrong, "the handler ran")
		}
	case p.state.outcome == "lost":
		wrong = p.judgeLoss(without, with)
	default:
		wrong = p.differences(without, with)
	}
	return append(wrong, p.judgeGuard(without, a)...)
}

// differences are what the client of the guarded program sees otherwise.
func (p play) differences(without, with answer) (wrong []string) {
	if without.err != with.err || without.status != with.status {
		wrong = append(wrong, fmt.Sprintf("%s %d, want %s %d", with.err, with.status, without.err, without.status))
	}
	if without.err == "" && without.body != with.body {
		wrong = append(wrong, "another body")
	}
	for _, part := range []struct {
		name          string
		without, with []string
	}{{"headers", without.header, with.header}, {"trailers", without.trailer, with.trailer}, {"early hints", without.early, with.early}} {
		if !slices.Equal(part.without, part.with) && (without.envelope.Get("Content-Encoding") == "" ||
			!slices.Equal(unframed(part.without, without.body), unframed(part.with, with.body))) {
			wrong = append(wrong, "other "+part.name)
		}
	}
	// A log of requests that is right without a guard is right with one. See unframed for sizes of what is compressed.
	if right := without.seen[0] == without.status && without.err == "" && !p.work.late; right && with.seen[0] != without.seen[0] ||
		right && without.seen[1] == without.raw && with.seen[1] != with.raw {
		wrong = append(wrong, "a wrong line in the log of requests")
	}
	for _, line := range with.log {
		if !slices.Contains(without.log, line) {
			wrong = append(wrong, "the server logs "+line)
		}
	}
	return wrong
}

// unframed leaves out how the end of a compressed response shows, as a guard flushes one that was begun, whose length is not known
// then; and what says that no body at all is compressed.
func unframed(headers []string, body string) []string {
	return slices.DeleteFunc(slices.Clone(headers), func(h string) bool {
		return strings.HasPrefix(h, "Content-Length: ") || strings.HasPrefix(h, "Transfer-Encoding: ") ||
			body == "" && (h == "Content-Encoding: gzip" || h == "Vary: Accept-Encoding")
	})
}

// judgeRefusal holds an answer against the table of package middleware.
func (p play) judgeRefusal(with answer) []string {
	if with.err != "" || with.status != p.state.status {
		return []string{fmt.Sprintf("%s %d, want a complete %d", with.err, with.status, p.state.status)}
	}
	if retry := with.envelope.Get("Retry-After"); (retry != "") != p.state.retry {
		return []string{"Retry-After " + retry}
	}
	return p.judgeProblem(with, p.state.problem)
}

// neighbourly looks for the headers that the neighbours give each response.
func (p play) neighbourly(without, with answer) (wrong []string) {
	for _, h := range without.header {
		if (strings.HasPrefix(h, "Access-Control-") || strings.HasPrefix(h, "Set-Cookie")) && !slices.Contains(with.header, h) {
			wrong = append(wrong, "lacks "+h)
		}
	}
	return wrong
}

// judgeProblem looks for the problem details of an error, in a body that the client can decode.
func (p play) judgeProblem(with answer, want string) (wrong []string) {
	if got := with.envelope.Get("Content-Type"); got != "application/problem+json" {
		wrong = append(wrong, "content type "+got)
	}
	if p.work.method == "HEAD" {
		return wrong
	}
	var problem struct {
		Type, Guard string
		Status      int
	}
	if err := json.Unmarshal([]byte(with.body), &problem); err != nil {
		return append(wrong, "the body is no problem: "+err.Error())
	}
	if _, typ, _ := strings.Cut(problem.Type, "#"); typ != want || problem.Status != with.status || problem.Guard != "order.settle" {
		wrong = append(wrong, fmt.Sprintf("problem %+v", problem))
	}
	if n := with.envelope.Get("Content-Length"); n != "" && n != strconv.Itoa(with.raw) {
		wrong = append(wrong, fmt.Sprintf("Content-Length %s of %d bytes", n, with.raw))
	}
	return wrong
}

// judgeLoss wants no complete success, and no connection that ends without a byte.
func (p play) judgeLoss(without, with answer) (wrong []string) {
	panics, same := p.panics(without), len(p.differences(without, with)) == 0
	switch {
	case with.err == "broken" && with.status != 0 && (p.work.midway || panics || p.program.proxies):
		return nil
	case with.err == "gave up" && without.err == "gave up":
		return nil
	case with.err != "" && (p.work.midway || panics) && p.protocol == http2:
		return nil // a reset of the stream, which no client takes for a connection that was idle for too long
	case panics && !p.state.midway && same:
		return nil // a loss that only the release finds
	case p.work.outcome == "error" && (same || p.state.midway && (p.work.hangs || p.work.late) && with.err == "" && with.status >= 400):
		return nil // its own error
	case p.program.proxies && p.state.midway && with.err == "" && with.status == 502:
		return nil // the proxy's, which gave up its request
	case with.err != "":
		return []string{fmt.Sprintf("%s, status %d", with.err, with.status)}
	case with.status < 400:
		return []string{"a complete success"}
	case with.status == 500:
		return p.judgeProblem(with, "ErrLost")
	}
	return []string{"another error"}
}

func (p play) panics(without answer) bool {
	return p.work.outcome == "panic" || p.program.proxies && without.err != "" && !p.work.hangs
}

// judgeGuard looks at what the guard knows of the call, and at what is left of it.
func (p play) judgeGuard(without answer, a account) (wrong []string) {
	want := cmp.Or(p.state.outcome, p.outcome(without))
	if want == "ok" && p.work.outcome == "error" && slices.Contains(a.outcomes, "error") {
		want = "error" // the framework has a way to say it after all
	}
	ok := len(a.outcomes) == 1 && (a.outcomes[0] == want || want == "lost" && (p.panics(without) || p.program.proxies) && a.outcomes[0] == "panic")
	if !ok {
		wrong = append(wrong, fmt.Sprintf("outcomes %q, want %s", a.outcomes, want))
	}
	if want != "lost" && a.held != (want == "ok") {
		wrong = append(wrong, fmt.Sprintf("the key is held for later: %v", a.held))
	}
	return wrong
}

// outcome is that of a call whose lock was not lost.
func (p play) outcome(without answer) string {
	switch {
	case p.program.proxies && p.panics(without):
		return map[bool]string{false: "panic", true: "error"}[without.err == ""]
	case p.work.name == "fails after a part" && !p.program.returns:
		return "ok" // a handler of net/http has no other way to say it than a status
	}
	return cmp.Or(p.work.outcome, "ok")
}
