package neighbours

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// exceptions are plays whose answers may differ from those without a guard. Beside them, differences knows one for all programs.
var exceptions = []struct{ program, work, state, reason string }{
	{"http.TimeoutHandler outside", "pani", "lost midway", "http.TimeoutHandler drops what was written before a panic, and the server closes the connection"},
	{"http.TimeoutHandler outside", "abort", "lost midway", "as before"},
	{"gin, timeout outside", "fails after a part", "", "a status after a part of the body counts for it, and nowhere else"},
	{"gin, timeout outside", "events", "free", "it loses the headers of a response that is flushed"},
	{"gin, timeout outside", "lines with trailers", "free", "as before"},
	{"gin, gzip and cors", "fails after a part", "free", "it breaks that response off by itself"},
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
				if w.late && !p.late {
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
	if wrong := judge(p, without, with, account); len(wrong) > 0 {
		t.Errorf("%s / %s / %s / %s, gzip %v: %s\n\twithout: %v\n\twith:    %v\n\tguard:   %+v",
			p.program.name, p.work.name, p.state.name, p.protocol, p.gzip, strings.Join(wrong, "; "), without, with, account)
	}
}

// judge says what is wrong with an answer of a guarded program.
func judge(p play, without, with answer, a account) (wrong []string) {
	switch {
	case excepted(p) && (p.state.outcome != "lost" || with.err != "" || with.status >= 400):
	case p.state.status != 0:
		wrong = p.judgeRefusal(with)
		if a.runs != 0 {
			wrong = append(wrong, "the handler ran")
		}
	case p.state.outcome == "lost":
		wrong = p.judgeLoss(without, with)
	default:
		wrong = differences(without, with)
	}
	return append(wrong, p.judgeGuard(without, a)...)
}

// differences are what the client of the guarded program sees otherwise.
func differences(without, with answer) (wrong []string) {
	if without.err != with.err || without.status != with.status {
		wrong = append(wrong, fmt.Sprintf("%s %d, want %s %d", with.err, with.status, without.err, without.status))
	}
	if without.err == "" && without.body != with.body {
		wrong = append(wrong, "another body")
	}
	for _, part := range []struct {
		name          string
		without, with []string
	}{{"headers", without.header, with.header}, {"trailers", without.trailer, with.trailer}} {
		if !slices.Equal(part.without, part.with) && !slices.Equal(unframed(part.without), unframed(part.with)) {
			wrong = append(wrong, "other "+part.name)
		}
	}
	for _, line := range with.log {
		if !slices.Contains(without.log, line) {
			wrong = append(wrong, "the server logs "+line)
		}
	}
	return wrong
}

// unframed leaves out how the end of a compressed response shows: one that was begun while the guard could still lose its lock was
// flushed, and so its length is not known.
func unframed(headers []string) []string {
	if !slices.Contains(headers, "Content-Encoding: gzip") {
		return headers
	}
	return slices.DeleteFunc(slices.Clone(headers), func(h string) bool {
		return strings.HasPrefix(h, "Content-Length: ") || strings.HasPrefix(h, "Transfer-Encoding: ")
	})
}

// judgeRefusal holds an answer against the table of package middleware.
func (p play) judgeRefusal(with answer) []string {
	if with.err != "" || with.status != p.state.status {
		return []string{fmt.Sprintf("%s %d, want a complete %d", with.err, with.status, p.state.status)}
	}
	return append(p.judgeProblem(with, p.state.problem), p.judgeRetry(with)...)
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

func (p play) judgeRetry(with answer) []string {
	if (with.envelope.Get("Retry-After") != "") != p.state.retry {
		return []string{"Retry-After " + with.envelope.Get("Retry-After")}
	}
	return nil
}

// judgeLoss wants no complete success, and no connection that ends without a byte.
func (p play) judgeLoss(without, with answer) (wrong []string) {
	panics, same := p.panics(without), len(differences(without, with)) == 0
	switch {
	case with.err == "broken" && with.status != 0 && (p.work.midway || panics):
		return nil
	case with.err == "gave up" && same:
		return nil
	case with.err != "" && panics && p.protocol == http2:
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
		return "ok" // there is no other way to say it than a status
	}
	return cmp.Or(p.work.outcome, "ok")
}
