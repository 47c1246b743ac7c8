package spel

import (
	"errors"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// What somebody writes who is tired, or takes Java's text for a template. Each is an error at start whose sentence says what to
// write, and points into the Java text.
func TestATiredDeveloper(t *testing.T) {
	for _, tt := range []struct{ text, reason string }{
		// Text without quotes, or in other ones.
		{"order:#order.id", "a text stands in quotes, as in 'order:' + #order.id, or in front of a hole, as in order:#{#order.id}"},
		{"order:{#order.id}", "a text stands in quotes, as in 'order:' + #order.id"},
		{"order:${order.id}", "${…} is filled in by Spring: write the value"},
		{"`order:` + #order.id", "unexpected '`'"},
		{"'order:' #order.id", `unexpected "#"`},
		{"'order:' + ", `unexpected "the end"`},
		{"'order:' + #order.id;", "unexpected ';'"},
		// Names.
		{"'order:' + order.id", "write #order for a parameter"},
		{"'order:' + #orders.id", "did you mean order?"},
		{"'order:' + #order.nme", "did you mean Name?"},
		{"'order:' + #p1.id", "there is order"},
		{"#order.items.![#sku]", "a property of the element is sku, without #"},
		{"#order.items.sku", "write .![sku] for that of each element, or [0].sku"},
		{"#order.attrs.k", "written ['k'] in Java"},
		{"#order", "name one of its properties"},
		{"#order.items", "name one of its properties"},
		// Methods.
		{"'order:' + #order.name.toUppercase()", "there is no method toUppercase, did you mean toUpperCase?"},
		{"'order:' + #order.name.tolowercase()", "did you mean toLowerCase?"},
		{"'order:' + #order.name.subString(1)", "did you mean substring?"},
		{"'order:' + #order.name.trm()", "did you mean trim?"},
		{"'order:' + #order.tags.contain('x')", "did you mean contains?"},
		{"'order:' + #order.name.trim(1)", "the method trim with 1 argument of a text is not known here"},
		{"'order:' + #order.name.replaceAll('a', 'b')", "the method replaceAll with 2 arguments of a text is not known here"},
		// Other languages.
		{"#order.note ?? 'none'", "?? is not in Java's text: write ?: 'none'"},
		{"String.format('order:%s', #order.id)", "String is no property: write 'order:' + #order.id"},
		{"String.valueOf(#order.id)", "String is no property: write 'order:' + #order.id"},
		{"T(String).format('order:%s', #order.id)", "depends on the locale"},
		{"T(java.util.UUID).randomUUID().toString()", "reaches no class here"},
		{"order:#{req.ID}", "req is a fact of templates, which go to guard.Key: in Java's text a parameter is #order"},
		{"order:#{header.Tenant}", "header is a fact of templates, which go to guard.Key"},
		{"lower(#order.name)", "lower is a method of the target"},
		{"#lower(#order.name)", "there is no function lower"},
		{"'vip' in #order.tags", `unexpected "in"`},
		// One key for all.
		{"'order'", "all requests would share one key"},
		{"'order:' + 1", "all requests would share one key"},
		{"#order.id == #order.id ? 'a' : 'b'", "all requests would share one key"},
	} {
		_, err := Expression(tt.text, Params("order")).Parse(javaRoots)
		fault, ok := errors.AsType[*keyexpr.Error](err)
		if !ok || !strings.Contains(fault.Reason, tt.reason) || fault.Text != tt.text || fault.Offset > len(tt.text) {
			t.Errorf("Expression(%q) = %v, want %q", tt.text, err, tt.reason)
		}
	}
	// Plain Java has no such words, and its own sentence.
	if _, err := Redisson(`String.format("order:%s", order.id())`, Params("order")).Parse(javaRoots); err != nil {
		t.Errorf("Redisson(String.format) = %v", err)
	}
}
