package spel

import "testing"

var jsonOfNoDeclaredTypeRows = []row{
	// Values.
	{"#p0.any.id", "7"},
	{"#p0.any.name", "Text"},
	{"#p0.any.yes", "true"},
	{"#p0.any.half", "request: is a float"},
	{"#p0.any.none", "request: is null"},
	{"#p0.any.nope", "request: is null"},
	{"#p0.any.empty", "request: is empty"},
	{"#p0.any.tags", "request: is a list"},
	{"#p0.any.owner", "request: is a map"},
	{"#p0.any.tags[0]", "x"},
	{"#p0.any.tags[3] ?: 'none'", "none"},
	{"#p0.any.tags[4]", "request: asks a list of 4 elements for number 4"},
	{"#p0.any.tags['0']", "request: "},
	{"#p0.any.owner.boss.login", "lee"},
	{"#p0.any.owner['login']", "kim"},
	{"#p0.any.owner.boss?.boss?.login ?: 'nobody'", "nobody"},
	{"#p0.any.name.foo", "request: "},
	{"#p0.any.length", "six"}, // a property like any other
	// Sums.
	{"'a' + #p0.any.id", "a7"},
	{"#p0.any.id + 1", "8"},
	{"#p0.any.id + #p0.any.name", "7Text"},
	{"#p0.any.name + 1 + 2", "Text12"},
	{"1 + 2 + #p0.any.name", "3Text"},
	{"#p0.any.yes + 1", "request: calculates with what is no number"},
	{"#p0.any.none + 'a'", "request: is null"},
	{"#p0.any.big + 1", "1099511627777"},
	{"#p0.any.big * 16777216", "0"}, // 2 to the 64th: no int has the left side, and a long wraps
	{"#p0.any.id * 1000000000", "request: calculates more than 32 bits"},
	{"#p0.any.id * 1000000000L", "7000000000"},
	{"-#p0.any.id", "-7"},
	{"-#p0.any.name", "request: calculates with what is no number"},
	{"#p0.any.id / 0", "request: divides by zero"},
	// Comparisons.
	{"#p0.any.id == 7", "true"},
	{"#p0.any.id == 7L", "true"},
	{"#p0.any.id == '7'", "false"},
	{"#p0.any.name == 'Text'", "true"},
	{"#p0.any.none == null", "true"},
	{"#p0.any.name != null", "true"},
	{"#p0.any.owner == null", "false"},
	{"#p0.any.tags == #p0.any.tags", "request: compares lists, maps or objects"},
	{"#p0.any.id.equals(8)", "false"}, // whichever it is
	{"#p0.any.id.equals(7)", "request: compares numbers that are equal only if both are int, or both long, in Java"},
	{"#p0.any.name.equals('Text')", "true"},
	{"#p0.any.name.equals(7)", "false"},
	{"#p0.any.id < 8", "true"},
	{"#p0.any.name < 'U'", "true"},
	{"#p0.any.name < 8", "request: compares what has no order"},
	{"#p0.any.none < 8", "true"},
	{"#p0.any.yes ? 'y' : 'n'", "y"},
	{"#p0.any.id ? 'y' : 'n'", "request: is neither true nor false"},
	{"#p0.any.none ? 'y' : 'n'", "request: is neither true nor false"},
	{"#p0.any.id between {1, 9}", "true"},
	{"#p0.any.name matches 'T.*'", "true"},
	{"#p0.any.id matches '[0-9]'", "true"},
	{"#p0.any.tags matches 'x'", "request: "},
	// Methods, by what the value is.
	{"#p0.any.name.length()", "4"},
	{"#p0.any.name.toUpperCase()", "TEXT"},
	{"#p0.any.name.substring(1, 3)", "ex"},
	{"#p0.any.name.substring(#p0.any.id)", "request: takes a part of a text that is not there"},
	{"#p0.any.name.substring(#p0.any.name)", "request: gives to substring what it does not take"},
	{"#p0.any.name.contains(#p0.any.none)", "request: gives null to contains"},
	{"#p0.any.name.indexOf('x')", "2"},
	{"#p0.any.name.hashCode()", "2603341"},
	{"#p0.any.id.hashCode()", "request: has a value whose hashCode is not known here"},
	{"#p0.any.id.length()", "request: has a value without the method length"},
	{"#p0.any.yes.trim()", "request: has a value without the method trim"},
	{"#p0.any.tags.size()", "4"},
	{"#p0.any.tags.contains('y')", "true"},
	{"#p0.any.tags.contains('z')", "false"},
	{"#p0.any.tags.contains(1)", "request: compares numbers that are equal only if both are int"},
	{"#p0.any.tags.contains(2)", "false"},
	{"#p0.any.tags.indexOf('y')", "1"},
	{"#p0.any.tags.get(1)", "y"},
	{"#p0.any.tags.isEmpty()", "false"},
	{"#p0.any.owner.size()", "2"},
	{"#p0.any.owner.containsKey('boss')", "true"},
	{"#p0.any.owner.getOrDefault('x', 'd')", "d"},
	{"#p0.any.owner.get('login')", "kim"},
	{"#p0.any.owner.get(1)", "request: gives to get what it does not take"},
	{"#p0.any.containsKey('none')", "true"}, // null is there, too
	{"#p0.any.getOrDefault('none', 'd') ?: 'null'", "null"},
	{"#p0.any.none.trim()", "request: can't go on: #p0.any.none is null"},
	{"#p0.any.none?.trim() ?: 'none'", "none"},
	{"#p0.any.name.repeat(2)", "start: the method repeat with 1 argument is not known here"},
	// Lists.
	{"#p0.any.lines.![sku]", "ink pen"},
	{"'l:' + #p0.any.lines.![sku]", "l:pen,ink"},
	{"#p0.any.lines.![sku + qty][0]", "pen2"},
	{"#p0.any.lines.?[qty > 0][0].sku", "pen"},
	{"#p0.any.lines.^[qty == 0].sku", "ink"},
	{"#p0.any.lines.$[qty > 9]?.sku ?: 'none'", "none"},
	{"'g:' + #p0.any.grid", "g:1,"},
	{"'t:' + #p0.any.tags", "request: is null"},
	{"#p0.any.name.![#this]", "request: has a value that is no list where one is wanted"},
}

// JSON of no declared type: a value decides by what it is, and what can't be decided is refused for the request. In the Java
// program there is a class for it, so that a number is an Integer or a Long, and nobody knows which.
func TestJSONOfNoDeclaredType(t *testing.T) {
	order := map[string]any{
		"id": int64(7), "big": int64(1) << 40, "name": "Text", "empty": "", "none": nil, "yes": true, "half": 0.5,
		"tags": []any{"x", "y", int64(1), nil}, "lines": []any{map[string]any{"sku": "pen", "qty": int64(2)}, map[string]any{"sku": "ink", "qty": int64(0)}},
		"owner": map[string]any{"login": "kim", "boss": map[string]any{"login": "lee"}}, "grid": []any{[]any{int64(1)}, []any{}},
		"length": "six", "size": "L",
	}
	facts := goFacts
	facts.Any = order
	for _, tt := range jsonOfNoDeclaredTypeRows {
		if got := outcome(t, Expression(tt.text), facts); !agrees(got, tt.want) {
			t.Errorf("%s comes to %q, want %q", tt.text, got, tt.want)
		}
	}
}
