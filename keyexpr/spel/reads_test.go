package spel

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// An expression that makes the same key of all requests is refused, as a template is: with the same rule, and as far.
var oneKeyForAll = []string{
	// No parameter is named.
	"'order'",
	"'a' + 1",
	"order-#{'x'}",
	"#fixed('x')",
	// None is looked at.
	"true ? 'a' : #order.name",
	"1 < 2 ? 'a' : #order.name",
	"#order.urgent or true ? 'a' : #order.name",
	"!(#order.urgent and false) ? 'x' : #order.name",
	"'a' ?: #order.name",
	"{'a', #order.name}[0]",
	// An operator makes the same of all: of equal operands, or of one that leaves nothing of the other.
	"#order.id == #order.id",
	"#order.id == #order.id ? 'x' : #order.name",
	"#order.id != #order.id ? #order.name : 'x'",
	"#order.name.equals(#order.name)",
	"#order.name.startsWith('')",
	"#order.name.contains(#order.name)",
	"#order.name matches '.*'",
	"#order.urgent ? 'a' : 'a'",
	"#order.id - #order.id",
	"#order.id * 0 + 'x'",
	"#order.id % 1",
	"#order.tags.!['x']",
	// The same, one step further in.
	"'o:' + (true ? 'a' : #order.name)",
	"false ? #order.name : 'a'",
	"!true ? #order.name : 'a'",
	"1 == 1 and 2 > 1 ? 'a' : #order.name",
	"'a' matches 'a' ? 'x' : #order.name",
	"('a' ?: #order.name).length()",
	"('a' + 'b' ?: #order.name) + 'c'",
	"{#order.name, 'a'}[1]",
	"{'a', {#order.name}}[0]",
	"#order.urgent and false",
	"false and #order.urgent",
	"true or #order.urgent",
	"#order.id - #order.id + 1",
	"0 * #order.id",
	"0L / #order.id",
	"#order.id / #order.id",
	"#order.id % #order.id",
	"0 % #order.id",
	"#order.id % 1L",
	"#order.id <= #order.id",
	"#order.id < #order.id",
	"#order.name.equalsIgnoreCase(#order.name)",
	"#order.name.endsWith('')",
	"#order.getName().equals(#order.getName())",
	"#root.methodName",
	"order-#{1 + 2}",
	"#order.name.contains('')",
	// What is made of it is the same, too.
	"'x' + (#order.id * 0)",
	"T(String).valueOf(#order.id - #order.id).length()",
	"#order.id * (2 - 2)",
	"(('' + #order.id * 0) ?: #order.name).concat('-')",
	"#order.name.substring(0, 0) ?: 'x'",
	"'ab'.toUpperCase().substring(1) + 'abc'.hashCode()",
	"'%s'.formatted('a') + {1, 2, 3}.?[#this > 2].size()",
	"#fixed('' + #order.id * 0)",
	// A choice whose results are one, or of which only one makes a key.
	"#order.urgent ? 'a' : ''",
	"(#order.urgent ? 'a' : 'A').toLowerCase()",
	"'k' + (#order.urgent ? 4 : 4L)",
	"('' + #order.urgent).replace('true', 'false')",
	"(#order.urgent ? 'a' : 'b').length()",
	"(#order.urgent ? '' : 'a') ?: 'a'",
	"{'x', 'x'}[#order.tags.size() % 2]",
	"{'x', 'x'}[#order.id]",
	"{#order.name, 'x'}[#order.urgent ? 1 : 1]",
	"#order.urgent ? #order.tags.?[false] : {'x'}",
	// Comparisons with one answer.
	"#order.urgent and !#order.urgent",
	"#order.name == null ? 'a' : 'b'",
	"null != #order.id",
	"#order.tags.size() >= 0 ? 'a' : 'b'",
	"-1 < #order.name.length()",
	"#order.id between {#order.id, #order.id}",
	"{#order.name, 'x'}.contains(#order.name)",
	"{#order.name, 'x'}.size()",
	"#order.id > 5 or #order.id <= 5",
	// Tests that are written twice come out the same way twice.
	"order-#{#order.urgent ? 'a' : ''}:#{#order.urgent ? 'b' : #order.id}",
	"#order.id == 5 ? 'x' : #order.id == 5 ? #order.name : 'x'",
	"#order.urgent ? (#order.urgent ? 'x' : #order.name) : 'x'",
	// Methods of two that are one.
	"#order.name.replace(#order.name, 'x')",
	"#order.name.indexOf(#order.name) + #order.name.lastIndexOf(#order.name)",
	// Elements that are all the same.
	"#order.items.!['x'][0]",
	"#order.items.!['x'].get(0) ?: #order.name",
	"#order.items.!['x'].?[#this != '']",
	"#order.items.!['x'].![#this + 'y']",
	"#order.items.![sku == sku ? 'a' : 'b']",
	"#order.tags.?[false].size()",
	"#order.tags.^[false] ?: 'none'",
	"{#order.name, 'x'}.$[true]",
	"#order.items.![1].size() * 0",
}

func TestOneKeyForAll(t *testing.T) {
	for _, text := range oneKeyForAll {
		fixed := keyexpr.Func("fixed", func(string) string { t.Error("a function ran at start"); return "x" })
		_, err := Expression(text, Params("order"), Method("a.B", "pay")).Parse(javaRoots, fixed)
		if err == nil || !strings.Contains(err.Error(), "all requests would share one key") {
			t.Errorf("Parse(%q) = %v, want it refused", text, err)
		}
		if _, err := Expression(text, Params("order"), Method("a.B", "pay")).Parse(javaRoots, fixed, keyexpr.OneKey()); err != nil {
			t.Errorf("Parse(%q, OneKey()) = %v", text, err)
		}
	}
}

// What tells some requests from others is let through, however little it tells.
var keysThatDiffer = []string{
	"#order.id",
	"order-#{#order.id}",
	"#root.args[0].id",
	"#order.id == #order.id ? #order.name : 'x'",
	"#order.urgent ? #order.name : #order.name",
	"#order.id % 2 == 0 ? 'even' : 'odd'",
	"#order.note == null ? 'a' : 'b'",
	"#order.note ?: 'none'",
	"'x' + #order.tags.size()",
	"'x' + #order.tags.!['x']",
	"#order.tags.contains('') ? 'some' : 'none'",
	"#order.tags.![#this]",
	"#order.tags.?[#this == 'x']",
	"#order.tags.![#this == 'x' ? 'a' : 'b']",
	"{'a', 'b'}[#order.tags.size() - 1]",
	"{'all', #order.name}",
	"#tenant()", // which knows the request by its context
	// Nearly the same, and not.
	"#order.id == #order.id + 1 ? #order.name : 'x' + #order.id",
	"#order.id == #order.owner?.login ? 'a' : 'b'",
	"#order.name.startsWith('a')",
	"'x'.startsWith(#order.name)",
	"#order.name matches '.+'",
	"#order.id - #order.tags.size()",
	"#order.id * 1",
	"#order.id % 2",
	"#order.id / 1",
	"0 - #order.id",
	"1 / #order.id",
	"#order.urgent and true",
	"#order.urgent or false",
	"!#order.urgent",
	"#order.urgent ? 'a' : 'b'",
	"#order.urgent ? 'a' : null ?: 'b'",
	"'' ?: #order.name",
	"{'a', #order.name}[1]",
	"{'a', #order.name}.size() + #order.name",
	"#order.tags[0]",
	"#order.attrs['k']",
	"#order.owner?.login ?: 'none'",
	"#order.tags.^[#this != ''] ?: 'none'",
	"#order.urgent ? '' : #order.name",
	"order-#{#order.urgent ? 'a' : ''}:#{#order.urgent ? #order.id : 'b'}",
	"#order.id > 5 or #order.id < 5",
	"(#order.urgent ? 'a' : 'B').toLowerCase()",
	"#order.name.substring(0, 0) ?: #order.name",
	"{'x', 'y'}[#order.id % 2]",
	"#order.items.!['x'].^[true] ?: 'y'",
	"#order.items.!['x'].size()",
	"'x' + #order.items.!['x']",
	"{1, 2}.!['' + (#this + #order.id)]",
	"{1, 2}.?[#this > #order.id].!['' + #this]",
	"#order.owner?.login == null ? 'a' : 'b'",
	"#order.note == null ? 'a' : 'b'",
	"#order.tags.size() > 0 ? 'a' : 'b'",
	"#order.tags.contains('')",
	"#order.urgent ? #order.tags : {'x'}",
	"#fixed2(#order.name)",
}

func TestKeysThatDiffer(t *testing.T) {
	for _, text := range keysThatDiffer {
		tenant := keyexpr.Func("tenant", func(context.Context) string { return "x" })
		fixed := keyexpr.Func("fixed2", func(string) string { return "x" })
		if _, err := Expression(text, Params("order")).Parse(javaRoots, tenant, fixed); err != nil {
			t.Errorf("Parse(%q) = %v", text, err)
		}
	}
}

// The place is that of the first operand which reads something.
func TestOneKeyForAllSaysWhere(t *testing.T) {
	for _, tt := range []struct {
		text string
		at   int
	}{
		{"'order'", 0},
		{"'order:' + #order.id * 0", 11},
		{"'order:' + (#order.urgent ? 'a' : 'a')", 12},
		{"order:#{'x'}:#{(#order.id - #order.id) + 'x'}", 16},
		{"#order.items.!['x']", 0},
	} {
		_, err := Expression(tt.text, Params("order")).Parse(javaRoots)
		e, ok := errors.AsType[*keyexpr.Error](err)
		if !ok || e.Offset != tt.at || !strings.Contains(e.Reason, "all requests would share one key") {
			t.Errorf("Parse(%q) = %v, want offset %d", tt.text, err, tt.at)
		}
	}
}
