package keyexpr

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

type ring struct {
	Next *ring
	Name string
}

// hostileRequest has what a client may send to make a key expensive.
type hostileRequest struct {
	S, ID string
	Big   []int
	Lines []line
	Any   any
	Cy    any
	List  []any // contains itself
	Ring  *ring
	Texts []string
	N     int
	U     uint64
	Huge  *big.Int
	M     map[string]any
}

func newHostileRequest() *hostileRequest {
	h := &hostileRequest{S: strings.Repeat("a", 10<<20), ID: "x", Big: make([]int, 1_000_000), Lines: make([]line, 100_000), Texts: make([]string, 40_000), U: 1<<64 - 1}
	for i := range h.Texts {
		h.Texts[i] = strings.Repeat("t", 1000)
	}
	m := map[string]any{}
	m["a"] = m
	h.Cy, h.Any, h.M = m, make([]any, 1_000_000), m
	h.List = []any{nil}
	h.List[0] = h.List
	h.Ring = &ring{Name: "n"}
	h.Ring.Next = h.Ring
	h.Huge = new(big.Int).Lsh(big.NewInt(1), 1<<20)
	return h
}

// What a hostile request may take. The counts of steps and bytes bound it; these are what they come to.
const (
	mostTime  = slower * 200 * time.Millisecond
	mostBytes = slower * 16 << 20
)

// used is what an expansion has taken.
type used struct {
	steps, bytes int    // that were charged
	made         uint64 // bytes
	keys         int
	err          error
}

func usedBy(t *testing.T, tmpl *Template, h *hostileRequest) (u used) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	st := run.NewState(t.Context(), func(string) (any, error) { return h, nil }, tmpl.program.Roots)
	defer st.Release()
	keys, err := tmpl.program.ExpandWith(st, nil)
	runtime.ReadMemStats(&after)
	u = used{made: after.TotalAlloc - before.TotalAlloc, keys: len(keys), err: err}
	u.steps, u.bytes = st.Spent()
	return u
}

var hostileTexts = []string{
	"#{req.S}", "#{lower(req.S)}", "#{upper(req.S)}", "#{trim(req.S)}", "#{hash(req.S)}", "#{string(req.S)}", "#{shard(req.S, 4)}", "#{len(req.S)}:#{req.ID}",
	"#{req.S matches '(a*)*b' ? 1 : 2}", "#{req.S contains 'b' ? 1 : 2}", "#{key(req.S, req.ID)}", "#{raw(req.S)}", "#{required(req.S)}", "#{coalesce(req.S, req.ID)}",
	"#{req.S == req.S}", "#{req.S < req.S}", "#{req.Big}", "#{map(req.Big, #)}", "#{any(req.Big, # == 1)}", "#{all(req.Big, # == 0)}", "#{filter(req.Big, # == 1)}",
	"#{map(req.Lines, .SKU)}", "#{map(req.Lines, key(.SKU, req.S))}", "#{any(req.Any, # == 1)}", "#{any(req.Texts, req.S contains 'x')}", "#{any(req.Texts, lower(#) == 'x')}",
	"#{any(req.Texts, # in req.Texts)}", "#{any(req.Texts, # matches '(t*)*(t*)*x')}", "#{any(req.Texts, hash(req.Lines) == #)}", "#{map(req.Texts, hash(#))}", "#{len(filter(req.Texts, # != 'x'))}:#{req.ID}",
	"#{hash(req.Big)}", "#{hash(req.Lines)}", "#{hash(req.Any)}", "#{hash(req.Cy)}", "#{hash(req.List)}", "#{hash(req.Ring)}", "#{hash(req.Texts)}", "#{5 in req.Big}", "#{'a' in req.Texts}",
	"#{req.Any == req.Any}", "#{req.Cy.a.a.a.a == 1}", "#{req.M == req.M ? 1 : 2}", "#{first(req.List) == first(req.List)}", "#{req.ID in req.List}", "#{string(req.Cy)}", "#{req.Cy}", "#{req.Huge}",
	"#{req.Ring.Next.Next.Next.Name}", "#{first(req.Big)}:#{last(req.Big)}", "#{len(req.Big)}", "#{mod(req.U, 16)}:#{div(req.U, 3)}",
	"#{" + strings.Repeat("(", 1500) + "req.ID" + strings.Repeat(")", 1500) + "}", "#{" + strings.Repeat("-", 3000) + "1}", "#{" + strings.Repeat("[", 1500) + strings.Repeat("]", 1500) + "}",
	"#{" + strings.Repeat("not ", 500) + "true}",
	// These are out of the language, as nothing bounds them in the engine.
	"#{replace(req.S, 'a', 'bbbbbbbbbb')}", "#{split(req.S, '')[0]}", "#{len(split(req.S, ''))}:#{req.ID}", "#{any(req.Texts, any(req.Texts, # == 'x'))}",
	"#{any(1..40000, any(1..40000, false))}:#{req.ID}", "#{count(1..40000, req.S contains 'b')}", "#{uniq(req.Big)}", "#{sort(req.Texts)[0]}", "#{flatten([req.Texts, req.Texts])[0]}",
	"#{concat(req.Texts, req.Texts, req.Texts)[0]}", "#{map(1..50000, map(1..50000, #))[0][0]}", "#{reverse(req.Big)[0]}", "#{max(req.Big)}", "#{req.Big == req.Big}", "#{req.Ring == req.Ring.Next}",
	"#{map(req.Texts, .foo)}", "#{any(req.Any, .foo == 1)}",
}

// TestHostileRequestsAreBounded holds the worst that is known to an amount of memory and of steps, and to an error of the request.
func TestHostileRequestsAreBounded(t *testing.T) {
	h := newHostileRequest()
	roots := Roots{"req": TypeFor[*hostileRequest]()}
	for _, text := range hostileTexts {
		start := time.Now()
		tmpl, err := Parse(text, roots)
		if took := time.Since(start); took > mostTime {
			t.Errorf("Parse(%.40s) takes %v", text, took)
		}
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Errorf("Parse(%.40s) = %v, want an *Error", text, err)
			}
			continue
		}
		u := used{made: 1 << 62}
		for try := 0; try < 5 && u.made > mostBytes; try++ { // until one is not disturbed
			u = usedBy(t, tmpl, h)
		}
		if u.made > mostBytes || u.steps > run.MaxSteps || u.bytes > run.MaxBytes {
			t.Errorf("%.60s takes %+v", text, u)
		}
		err = u.err
		if err != nil && !errors.Is(err, ErrValue) {
			t.Errorf("%.60s: %v, want ErrValue", text, err)
		}
	}
}

// callsOf are calls of each function, loop and operator with an operand, by name.
var callsOf = map[string]string{
	"hash": "hash(%s)", "shard": "shard(%s, 16)", "mod": "mod(%s, 7)", "div": "div(%s, 7)", "coalesce": "coalesce(%s, 1)", "required": "required(%s)",
	"fmtTime": "fmtTime(%s, '2006')", "raw": "raw(%s)", "key": "key(%s, 1)", "lower": "lower(%s)", "upper": "upper(%s)", "trim": "trim(%s)", "int": "int(%s)",
	"string": "string(%s)", "len": "len(%s)", "first": "first(%s)", "last": "last(%s)", "map": "map(%s, #)", "filter": "filter(%s, # != 5)", "any": "any(%s, # == 5)", "all": "all(%s, # != 5)",
	"in": "(5 in %s)", "==": "(%s == 5)", "<": "(%s < 5)", "contains": "(%s contains 'x')", "startsWith": "(%s startsWith 'x')", "endsWith": "(%s endsWith 'x')", "matches": "(%s matches 'x')",
	"??": "(%s ?? 5)", "?:": "(true ? %s : 5)", "not": "(not (%s == 5))",
}

// TestFunctionsAreBounded calls each function and loop in three ways: as the second operand of another call, on a million
// elements, and on a list that contains itself. A function that leaves something on the engine's stack would change what
// stands beside it.
func TestFunctionsAreBounded(t *testing.T) {
	for name, f := range functions() {
		if _, ok := callsOf[name]; !ok && !f.cond {
			t.Errorf("%s is not tested", name)
		}
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	self := []any{nil}
	self[0] = self
	type request struct {
		V    any
		ID   string
		Many []any
		Self []any
	}
	r := &request{ID: "id", Many: make([]any, 1_000_000), Self: self}
	good := map[string]any{"fmtTime": now, "mod": 12, "div": 15, "int": "12", "len": "abc", "==": 5, "<": 4}
	for _, list := range []string{"first", "last", "map", "filter", "any", "all", "in"} {
		good[list] = []any{1, 2}
	}
	roots := Roots{"req": TypeFor[*request]()}
	facts := func(string) (any, error) { return r, nil }
	for name, call := range callsOf {
		if r.V = good[name]; r.V == nil {
			r.V = "abc"
		}
		alone := expandCall(t, roots, facts, fmt.Sprintf("#{"+call+"}", "req.V"))
		if name != "map" && name != "filter" && name != "raw" && name != "key" {
			for around, want := range map[string]string{
				"#{key(req.ID, %s)}":                          "[id:" + alone[1:],
				"#{coalesce(req.ID == 'no' ? 'x' : nil, %s)}": alone,
				"#{[req.ID, %s]}":                             fmt.Sprint(sorted([]string{"id", alone[1 : len(alone)-1]})),
			} {
				if keys := expandCall(t, roots, facts, fmt.Sprintf(around, fmt.Sprintf(call, "req.V"))); keys != want {
					t.Errorf("%s as second operand in %s = %s, want %s", name, around, keys, want)
				}
			}
		}
		for _, list := range []string{"req.Many", "req.Self"} {
			text := fmt.Sprintf("#{"+call+"}:#{req.ID}", list)
			tmpl, err := Parse(text, roots)
			if err != nil {
				continue // by its type
			}
			took := time.Hour
			for try := 0; try < 5 && took > mostTime; try++ { // until one is not disturbed
				start := time.Now()
				if _, err = tmpl.Expand(context.Background(), facts); err != nil && !errors.Is(err, ErrValue) {
					t.Errorf("%s: %v", text, err)
				}
				took = min(took, time.Since(start))
			}
			if took > mostTime {
				t.Errorf("%s takes %v", text, took)
			}
			r.V = map[string]any{"req.Many": r.Many, "req.Self": r.Self}[list] // as a type that is not known at start
			if tmpl, err = Parse(fmt.Sprintf("#{"+call+"}:#{req.ID}", "req.V"), roots); err == nil {
				if _, err = tmpl.Expand(context.Background(), facts); err != nil && !errors.Is(err, ErrValue) {
					t.Errorf("%s of any: %v", text, err)
				}
			}
		}
	}
}

func expandCall(t *testing.T, roots Roots, facts Facts, text string) string {
	t.Helper()
	tmpl, err := Parse(text, roots)
	if err != nil {
		t.Errorf("Parse(%s) = %v", text, err)
		return ""
	}
	keys, err := tmpl.Expand(context.Background(), facts)
	if err != nil {
		t.Errorf("%s: %v", text, err)
	}
	return fmt.Sprint(keys)
}
