package spel

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// hugeOrder is an order that wants to take all time or all memory.
type hugeOrder struct {
	Name   string // 60 MiB
	Runes  string // for which there is no quick way
	Tags   []string
	Counts []int32
	Few    []int32 // few enough to go through
	Lines  []javaItem
	IDs    []ident
	Big    *big.Int
	Bigger *big.Int
	Number json.Number // of ten million digits
	JSON   map[string]any
	Deep   any // lists in lists
	Ring   any // a list that holds itself
}

func newHugeOrder() *hugeOrder {
	o := &hugeOrder{
		Name: strings.Repeat("aB ", 20<<20), Runes: strings.Repeat("é", 20_000),
		Tags: make([]string, 1_000_000), Counts: make([]int32, 100_000), Few: make([]int32, 10_000), Lines: make([]javaItem, 10_000), IDs: make([]ident, 20_000),
		Big: new(big.Int).Lsh(big.NewInt(1), 4000), Bigger: new(big.Int).Lsh(big.NewInt(1), 1<<23), Number: json.Number(strings.Repeat("1", 10<<20)),
	}
	for range 100_000 {
		o.Deep = []any{o.Deep}
	}
	ring := []any{nil}
	ring[0] = ring
	o.Ring = ring
	o.JSON = map[string]any{"n": o.Number, "zeros": json.Number(strings.Repeat("0", 10<<20)), "ring": ring}
	return o
}

// mostBytes is what an expression and a value take at most, as for templates. With the race detector, a sync.Pool forgets what it is given.
const mostBytes = slower * 10 << 20

// hugeTexts are expressions that are cheap to write, and would cost much.
var hugeTexts = []string{
	// Texts, and what is made of them.
	"'o:' + #p0.name",
	"#p0.name.trim()",
	"#p0.name.toUpperCase()",
	"#p0.name.substring(1)",
	"#p0.name.length()",
	"#p0.name.hashCode()",
	"#p0.name == 'x'",
	"#p0.name < 'x'",
	"#p0.name.contains('zz')",
	// The same within a loop, where each round costs little.
	"#p0.few.![#p0.runes.toLowerCase() == 'x'].size()",
	"#p0.few.![#p0.runes.substring(5) == 'x'].size()",
	"#p0.few.![#p0.runes[5]].size()",
	"#p0.few.![#p0.runes < #p0.runes].size()",
	"#p0.few.![#p0.runes.strip() == 'x'].size()",
	"#p0.few.![#p0.runes.length()].size()",
	"#p0.few.![#p0.runes.contains('z')].size()",
	"#p0.few.![#p0.runes.concat(#p0.runes) == 'x'].size()",
	"#p0.few.![(#p0.runes + #p0.runes).hashCode()].size()",
	// Numbers that are spelt, or read, in the square of their length.
	"#p0.big",
	"#p0.bigger",
	"#p0.few.![#p0.big == #p0.big].size()",
	"#p0.few.![#p0.big.toString() == 'x'].size()",
	"#p0.number",
	"#p0.few.![#p0.json.n == 5].size()",
	"#p0.few.![#p0.json.zeros == 5].size()",
	// Lists.
	"#p0.tags",
	"'t:' + #p0.tags",
	"#p0.tags.![#this + 'x'][0]",
	"#p0.tags.![#this == 'x'].size()",
	"#p0.tags.contains('x')",
	"#p0.counts.![#p0.counts.size()].size()",
	"#p0.few.![#p0.few.contains(5)].size()",
	"#p0.few.![{1, 2, 3, 4, 5, 6, 7, 8, 9}.contains(#this)].size()",
	"#p0.few.![{#this, #this, #this, #this, #this, #this, #this, #this}].size()",
	"#p0.few.![#this + 1].![#this * 2].![#this + 1].![#this * 2].size()",
	"#p0.few.![#p0.few.![#p0.few.![1].size()].size()].size()",
	"#p0.lines.![sku + ':' + qty].size()",
	"'x' + #p0.iDs",
	// Lists in lists, and in a circle.
	"'x' + #p0.deep",
	"'x' + #p0.ring",
	"'x' + #p0.json.ring",
	"#p0.few.![#p0.json.ring[0][0][0][0] == null].size()",
	"#p0.ring == #p0.ring",
	"{#p0.ring}.contains(#p0.ring)",
}

func TestHugeValues(t *testing.T) {
	huge := newHugeOrder()
	facts := func(string) (any, error) { return huge, nil }
	for _, text := range hugeTexts {
		key, roots := Expression(text), keyexpr.Roots{"req": keyexpr.TypeFor[*hugeOrder]()}
		tmpl, err := key.Parse(roots, keyexpr.OneKey())
		if err != nil {
			t.Fatal(err)
		}
		made := uint64(math.MaxUint64)
		for try := 0; try < 20 && made > mostBytes; try++ { // until one is not disturbed
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = tmpl.Expand(t.Context(), facts)
			runtime.ReadMemStats(&after)
			made = min(made, after.TotalAlloc-before.TotalAlloc)
		}
		steps, bytes := spent(t, key, facts)
		t.Logf("%-70s %6d KiB made, %6d steps, %7d bytes, %.60v", text, made>>10, steps, bytes, err)
		if made > mostBytes {
			t.Errorf("%q takes %d MiB: %v", text, made>>20, err)
		}
		// Nothing that makes much of a value goes uncounted. The time of a count is measured by BenchmarkHugeValues.
		if steps > run.MaxSteps || bytes > run.MaxBytes || steps+bytes == 0 && err == nil {
			t.Errorf("%q takes %d steps and %d bytes", text, steps, bytes)
		}
		if err != nil && !errors.Is(err, keyexpr.ErrValue) {
			t.Errorf("%q: %v, want ErrValue", text, err)
		}
	}
}

func BenchmarkHugeValues(b *testing.B) {
	huge := newHugeOrder()
	for _, text := range hugeTexts {
		tmpl, err := Expression(text).Parse(keyexpr.Roots{"req": keyexpr.TypeFor[*hugeOrder]()}, keyexpr.OneKey())
		if err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				_, _ = tmpl.Expand(b.Context(), func(string) (any, error) { return huge, nil })
			}
		})
	}
}

// spent returns what an expansion has cost.
func spent(tb testing.TB, k *Key, facts keyexpr.Facts) (steps, bytes int) {
	p, err := k.compile(&run.Setup{Roots: map[string]run.Root{"req": {Type: reflect.TypeFor[*hugeOrder]()}}, OneKey: true})
	if err != nil {
		tb.Fatal(err)
	}
	st := run.NewState(tb.Context(), facts, p.Roots)
	defer st.Release()
	_, _ = p.ExpandWith(st, nil)
	return st.Spent()
}
