package keyexpr

import (
	"fmt"
	"strings"
	"testing"
)

// operandValues are what operators meet: one of each sort, and a whole number that no int64 holds.
var operandValues = map[string]any{
	"text":  "b",
	"num":   7,
	"big":   uint64(1<<64 - 1),
	"real":  2.5,
	"yes":   true,
	"none":  nil,
	"list":  []string{"a", "b"},
	"table": map[string]int{"a": 1},
	"rec":   line{"b", 7},
}

// operandTypes are their types. nil is that of a pointer, as a field has it that may be missing.
var operandTypes = Roots{
	"text":  TypeFor[string](),
	"num":   TypeFor[int](),
	"big":   TypeFor[uint64](),
	"real":  TypeFor[float64](),
	"yes":   TypeFor[bool](),
	"none":  TypeFor[*string](),
	"list":  TypeFor[[]string](),
	"table": TypeFor[map[string]int](),
	"rec":   TypeFor[line](),
}

// What each operator makes of each pair of values whose types are not known at start, as in JSON without a declaration: the
// left one is named by the row, and the right one by the column. A cell is a value, with floats rounded, or a word for a refusal.
var operatorTables = map[string]string{
	// + puts texts together or adds numbers, and mixes neither.
	"+": `
		+     text     num    big      real     yes    none  list   table  rec
		text  bb       text   text     text     text   text? text   text   text
		num   string() 14     large    9.5      misfit nil   misfit misfit misfit
		big   string() large  large    1.84e+19 misfit nil   misfit misfit misfit
		real  string() 9.5    1.84e+19 5        misfit nil   misfit misfit misfit
		yes   string() misfit misfit   misfit   misfit nil   misfit misfit misfit
		none  string() nil    nil      nil      nil    nil   nil    nil    nil
		list  string() misfit misfit   misfit   misfit nil   misfit misfit misfit
		table string() misfit misfit   misfit   misfit nil   misfit misfit misfit
		rec   string() misfit misfit   misfit   misfit nil   misfit misfit misfit
	`,
	// - is exact for whole numbers. A float beside one makes it a float.
	"-": `
		-     text   num    big       real     yes    none list   table  rec
		text  misfit misfit misfit    misfit   misfit nil  misfit misfit misfit
		num   misfit 0      large     4.5      misfit nil  misfit misfit misfit
		big   misfit large  large     1.84e+19 misfit nil  misfit misfit misfit
		real  misfit -4.5   -1.84e+19 0        misfit nil  misfit misfit misfit
		yes   misfit misfit misfit    misfit   misfit nil  misfit misfit misfit
		none  nil    nil    nil       nil      nil    nil  nil    nil    nil
		list  misfit misfit misfit    misfit   misfit nil  misfit misfit misfit
		table misfit misfit misfit    misfit   misfit nil  misfit misfit misfit
		rec   misfit misfit misfit    misfit   misfit nil  misfit misfit misfit
	`,
	"*": `
		*     text   num    big      real     yes    none list   table  rec
		text  misfit misfit misfit   misfit   misfit nil  misfit misfit misfit
		num   misfit 49     large    17.5     misfit nil  misfit misfit misfit
		big   misfit large  large    4.61e+19 misfit nil  misfit misfit misfit
		real  misfit 17.5   4.61e+19 6.25     misfit nil  misfit misfit misfit
		yes   misfit misfit misfit   misfit   misfit nil  misfit misfit misfit
		none  nil    nil    nil      nil      nil    nil  nil    nil    nil
		list  misfit misfit misfit   misfit   misfit nil  misfit misfit misfit
		table misfit misfit misfit   misfit   misfit nil  misfit misfit misfit
		rec   misfit misfit misfit   misfit   misfit nil  misfit misfit misfit
	`,
	// / is one of floats, and left to the engine: div is for ids.
	"/": `
		/     text   num      big      real     yes    none   list   table  rec
		text  misfit misfit   misfit   misfit   misfit misfit misfit misfit misfit
		num   misfit 1        3.79e-19 2.8      misfit misfit misfit misfit misfit
		big   misfit 2.64e+18 1        7.38e+18 misfit misfit misfit misfit misfit
		real  misfit 0.357    1.36e-19 1        misfit misfit misfit misfit misfit
		yes   misfit misfit   misfit   misfit   misfit misfit misfit misfit misfit
		none  misfit misfit   misfit   misfit   misfit misfit misfit misfit misfit
		list  misfit misfit   misfit   misfit   misfit misfit misfit misfit misfit
		table misfit misfit   misfit   misfit   misfit misfit misfit misfit misfit
		rec   misfit misfit   misfit   misfit   misfit misfit misfit misfit misfit
	`,
	// % is for whole numbers. Only the left one may be above the largest int64.
	"%": `
		%     text   num    big    real   yes    none   list   table  rec
		text  whole  whole  whole  whole  whole  whole  whole  whole  whole
		num   whole  0      large  whole  whole  whole? whole  whole  whole
		big   whole  1      large  whole  whole  large  whole  whole  whole
		real  whole  whole  whole  whole  whole  whole  whole  whole  whole
		yes   whole  whole  whole  whole  whole  whole  whole  whole  whole
		none  whole? whole? whole? whole? whole? whole? whole? whole? whole?
		list  whole  whole  whole  whole  whole  whole  whole  whole  whole
		table whole  whole  whole  whole  whole  whole  whole  whole  whole
		rec   whole  whole  whole  whole  whole  whole  whole  whole  whole
	`,
	"**": `
		**    text   num       big    real     yes    none   list   table  rec
		text  misfit misfit    misfit misfit   misfit misfit misfit misfit misfit
		num   misfit 8.24e+05  +Inf   130      misfit misfit misfit misfit misfit
		big   misfit 7.27e+134 +Inf   1.46e+48 misfit misfit misfit misfit misfit
		real  misfit 610       +Inf   9.88     misfit misfit misfit misfit misfit
		yes   misfit misfit    misfit misfit   misfit misfit misfit misfit misfit
		none  misfit misfit    misfit misfit   misfit misfit misfit misfit misfit
		list  misfit misfit    misfit misfit   misfit misfit misfit misfit misfit
		table misfit misfit    misfit misfit   misfit misfit misfit misfit misfit
		rec   misfit misfit    misfit misfit   misfit misfit misfit misfit misfit
	`,
	// == compares what values are. Nothing equals a value of another sort, and nil equals nil.
	"==": `
		==    text  num   big   real  yes   none  list  table rec
		text  true  false false false false false false false false
		num   false true  false false false false false false false
		big   false false true  false false false false false false
		real  false false false true  false false false false false
		yes   false false false false true  false false false false
		none  false false false false false true  false false false
		list  false false false false false false true  false false
		table false false false false false false false true  false
		rec   false false false false false false false false true
	`,
	// An order is one of texts or of numbers. nil has none.
	"<": `
		<     text   num    big    real   yes    none   list   table  rec
		text  false  misfit misfit misfit misfit misfit misfit misfit misfit
		num   misfit false  true   false  misfit misfit misfit misfit misfit
		big   misfit false  false  false  misfit misfit misfit misfit misfit
		real  misfit true   true   false  misfit misfit misfit misfit misfit
		yes   misfit misfit misfit misfit misfit misfit misfit misfit misfit
		none  misfit misfit misfit misfit misfit misfit misfit misfit misfit
		list  misfit misfit misfit misfit misfit misfit misfit misfit misfit
		table misfit misfit misfit misfit misfit misfit misfit misfit misfit
		rec   misfit misfit misfit misfit misfit misfit misfit misfit misfit
	`,
	">=": `
		>=    text   num    big    real   yes    none   list   table  rec
		text  true   misfit misfit misfit misfit misfit misfit misfit misfit
		num   misfit true   false  true   misfit misfit misfit misfit misfit
		big   misfit true   true   true   misfit misfit misfit misfit misfit
		real  misfit false  false  true   misfit misfit misfit misfit misfit
		yes   misfit misfit misfit misfit misfit misfit misfit misfit misfit
		none  misfit misfit misfit misfit misfit misfit misfit misfit misfit
		list  misfit misfit misfit misfit misfit misfit misfit misfit misfit
		table misfit misfit misfit misfit misfit misfit misfit misfit misfit
		rec   misfit misfit misfit misfit misfit misfit misfit misfit misfit
	`,
	// in looks into lists, maps and structs. nil holds nothing, and is in nothing.
	"in": `
		in    text   num    big    real   yes    none  list  table rec
		text  holder holder holder holder holder false true  false false
		num   holder holder holder holder holder false false key   text
		big   holder holder holder holder holder false false key   text
		real  holder holder holder holder holder false false key   text
		yes   holder holder holder holder holder false false key   text
		none  holder holder holder holder holder false false false false
		list  holder holder holder holder holder false false key   text
		table holder holder holder holder holder false false key   text
		rec   holder holder holder holder holder false false key   text
	`,
	// contains reads the left side first. In nil, there is nothing to find.
	"contains": `
		contains text  num   big   real  yes   none  list  table rec
		text     true  text  text  text  text  false text  text  text
		num      text  text  text  text  text  text  text  text  text
		big      text  text  text  text  text  text  text  text  text
		real     text  text  text  text  text  text  text  text  text
		yes      text  text  text  text  text  text  text  text  text
		none     false false false false false false false false false
		list     text  text  text  text  text  text  text  text  text
		table    text  text  text  text  text  text  text  text  text
		rec      text  text  text  text  text  text  text  text  text
	`,
}

// The sentences of refusals. %[1]T is the left value, and %[2]T the right one.
var operatorRefusals = map[string][]string{
	"misfit":   {"has operands of types %[1]T and %[2]T, which don't fit"},
	"large":    {"has a number that is too large to calculate with"},
	"nil":      {"calculates with nil"},
	"text":     {"has a value of type %[1]T where a string is wanted: use string(x)", "has a value of type %[2]T where a string is wanted: use string(x)"},
	"text?":    {"has nil where a string is wanted"},
	"string()": {"adds text to what is no text: use string(x)"},
	"whole":    {"has a value of type %[1]T where a whole number is wanted", "has a value of type %[2]T where a whole number is wanted"},
	"whole?":   {"has nil where a whole number is wanted"},
	"holder":   {"looks for something in a value of type %[2]T"},
	"key":      {"asks a map by string for an entry by %[1]T"},
}

// calculated is what a condition's expression comes to over operandValues, or the sentence with which it is refused.
func calculated(text string, roots Roots, values map[string]any) string {
	c, err := newCompilation(text, roots, true, config{})
	if err != nil {
		return "start: " + err.Error()
	}
	var x *code
	node, err := c.tree(text, 0)
	if err == nil {
		x, err = c.compile(node)
	}
	if err != nil {
		return "start: " + err.Error()
	}
	st := newTestState(c, func(root string) (any, error) {
		if v := values[root]; v != nil || roots[root].of.Type == nil {
			return v, nil
		}
		return (*string)(nil), nil
	})
	defer st.Release()
	v, err := x.value(st)
	if err != nil {
		return err.Error()
	}
	if f, ok := v.(float64); ok {
		return fmt.Sprintf("%.3g", f)
	}
	return fmt.Sprint(v)
}

func untyped(values map[string]any) Roots {
	roots := Roots{}
	for name := range values {
		roots[name] = Root{}
	}
	return roots
}

func TestOperatorsOverPairsOfValues(t *testing.T) {
	roots := untyped(operandValues)
	for op, table := range operatorTables {
		rows := strings.Split(strings.TrimSpace(table), "\n")
		columns := strings.Fields(rows[0])[1:]
		for _, row := range rows[1:] {
			cells := strings.Fields(row)
			for i, b := range columns {
				a, want := cells[0], cells[1+i]
				fits := func(sentence string) bool { return sentence == want }
				if sentences, ok := operatorRefusals[want]; ok {
					fits = func(sentence string) bool {
						for _, s := range sentences {
							if s = strings.NewReplacer("%[1]T", fmt.Sprintf("%T", operandValues[a]), "%[2]T", fmt.Sprintf("%T", operandValues[b])).Replace(s); s == sentence {
								return true
							}
						}
						return false
					}
				}
				text := a + " " + op + " " + b
				if got := calculated(text, roots, operandValues); !fits(got) {
					t.Errorf("%s = %q, want %s", text, got, want)
				}
			}
		}
	}
}

// Which pairs an operator takes where both types are known. All others are refused at start, and no request gets to them.
var operatorsAtStart = []struct{ op, pairs string }{
	{"+", "text text, text none, num num, num big, num real, big num, big big, big real, real num, real big, real real, none text, none none"},
	{"-", "num num, num big, num real, big num, big big, big real, real num, real big, real real"},
	{"*", "num num, num big, num real, big num, big big, big real, real num, real big, real real"},
	{"/", "num num, num big, num real, big num, big big, big real, real num, real big, real real"},
	{"%", "num num, num big, big num, big big"},
	{"**", "num num, num big, num real, big num, big big, big real, real num, real big, real real"},
	{"==", "text text, text none, num num, num big, num real, big num, big big, big real, real num, real big, real real, yes yes, none text, none none, list list, table table, rec rec"},
	{"<", "text text, text none, num num, num big, num real, big num, big big, big real, real num, real big, real real, none text, none none"},
	{">=", "text text, text none, num num, num big, num real, big num, big big, big real, real num, real big, real real, none text, none none"},
	{"in", "text list, text table, text rec, none list, none table, none rec"},
	{"contains", "text text, text none, none text, none none"},
}

// What is known at start must not change what an operator comes to: it only decides when a mistake is found.
func TestOperatorsAreCheckedAtStart(t *testing.T) {
	for _, tt := range operatorsAtStart {
		for a := range operandTypes {
			for b := range operandTypes {
				text := a + " " + tt.op + " " + b
				got := calculated(text, operandTypes, operandValues)
				refused := strings.HasPrefix(got, "start: ")
				if pair := a + " " + b; strings.Contains(", "+tt.pairs+",", ", "+pair+",") == refused {
					t.Errorf("%s of known types = %q", text, got)
				}
				if late := calculated(text, untyped(operandValues), operandValues); !refused && got != late {
					t.Errorf("%s = %q where types are known, and %q where they are not", text, got, late)
				}
			}
		}
	}
}

// and, or and ?? look at their right side only if the left one leaves something open.
func TestOperatorsThatStopEarly(t *testing.T) {
	roots := untyped(operandValues)
	const neither = "is neither true nor false"
	for a := range operandValues {
		for _, tt := range []struct{ text, want string }{
			{"yes or " + a, "true"},
			{"false and " + a, "false"},
			{"yes ? 1 : " + a, "1"},
			{"text ?? " + a, "b"},
			{"num ?? " + a, "7"},
			{"none ?? " + a, fmt.Sprint(operandValues[a])},
			{"none?.x ?? " + a, fmt.Sprint(operandValues[a])},
			{"none?.x.y.z ?? " + a, fmt.Sprint(operandValues[a])},
		} {
			if got := calculated(tt.text, roots, operandValues); got != tt.want {
				t.Errorf("%s = %q, want %q", tt.text, got, tt.want)
			}
		}
		if a == "yes" {
			continue
		}
		for _, text := range []string{a + " and yes", a + " or yes", "yes and " + a, "!yes or " + a, "not " + a, a + " ? 1 : 2", "all([1], " + a + ")"} {
			if got := calculated(text, roots, operandValues); got != neither {
				t.Errorf("%s = %q, want %q", text, got, neither)
			}
		}
	}
}
