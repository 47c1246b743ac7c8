package spel

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
)

var expressions = []struct{ spel, want string }{
	{"'order'", "order"},
	{`"order"`, "order"},
	{"'it''s'", "it's"},
	{"'order:' + #order.id", "order:42"},
	{"'order:' + #p0.id + ':' + #a0.urgent", "order:42:true"},
	{"'order:' + #order.getId() + ':' + #order.isUrgent()", "order:42:true"},
	{"'o:' + #root.args[0].id", "o:42"},
	{"order-#{#order.id}", "order-42"},
	{"order-#{#order.id}-#{#order.name.trim()}!", "order-42-Ab C!"},
	{"#{#order.id}#{#order.urgent}", "42true"},
	{"#order.id", "42"},
	{"#order.id + 1", "43"},
	{"#order.id + #order.id", "84"},
	{"#order.id + #order.name", "42 Ab C "},
	{"1 + 2 + 'x'", "3x"},
	{"'x' + 1 + 2", "x12"},
	{"'x' + (1 + 2)", "x3"},
	{"'x' + 0x7F + 1L + 007", "x12717"},
	{"'a' + #order.id * 2 + '-' + #order.id / 5 + '-' + #order.id % 5 + '-' + (#order.id mod 4)", "a84-8-2-2"},
	{"'{#' + #order.id + '#' + #order.id + '#' + '{' + '%'", "{#42#42#{%"},
	{"#order.note ?: 'none'", "none"},
	{"#order.owner?.login ?: 'none'", "none"},
	{"#order.attrs['k'] + #order.attrs['nope'] ?: 'none'", ""},
	{"#order.attrs['k']", "v"},
	{"#order.tags[1]", "y"},
	{"#order.urgent ? 'u' : 'n'", "u"},
	{"#order.id eq 42 and not (#order.id ne 42) or false ? 'y' : 'n'", "y"},
	{"#order.id lt 50 && #order.id gt 1 && #order.id le 42 && #order.id ge 42 ? 'y' : 'n'", "y"},
	{"#order.id between {1, 50} ? 'y' : 'n'", "y"},
	{"'abc' matches 'b' ? 'y' : 'n'", "n"}, // the whole string must match
	{"'abc' matches '[a-c]+' ? 'y' : 'n'", "y"},
	{"{1, 42}.contains(#order.id) ? 'y' : 'n'", "n"}, // an Integer never equals a Long
	{"{1, 42L}.contains(#order.id) ? 'y' : 'n'", "y"},
	{"#order.tags.size()", "2"},
	{"#order.name.trim().toLowerCase()", "ab c"},
	{"#order.name.trim().substring(1, 3).toUpperCase()", "B "},
	{"#order.name.trim().substring(2)", " C"},
	{"#order.name.length()", "6"},
	{"'hello'.hashCode()", "99162322"},
	{"'zzzzzz'.hashCode()", "-685785664"},
	{"'naïve😀'.length()", "7"},
	{"'a'.concat(#order.id).concat('b')", "a42b"},
	{"#order.name.replace(' ', '_')", "_Ab_C_"},
	{"#order.items.![sku]", "a b"},
	{"#order.items.![sku + '-' + qty]", "a-1 b-5"},
	{"#order.items.?[qty > 1].![sku]", "b"},
	{"#order.items.^[qty > 0].sku", "a"},
	{"#order.items.$[qty > 0].sku", "b"},
	{"#order.tags.?[#this != 'x']", "y"},
	{"#order.tags?.![toUpperCase()]", ""},
	{"#order.tags?.![#this.toUpperCase()]", "X Y"},
	{"{'b', 'a'}", "a b"},
	{"'m:' + #root.methodName + ':' + #root.targetClass.simpleName", "m:pay:OrderService"},
	{"#executionPath", "com.acme.OrderService.pay"},
	{"#root.method.name + '@' + #root.targetClass.name", "pay@com.acme.OrderService"},
}

func TestExpression(t *testing.T) {
	for _, tt := range expressions {
		got, err := keysOf(t, Expression(tt.spel, Params("order"), Method("com.acme.OrderService", "pay")))
		if tt.want == "" {
			if err == nil {
				t.Errorf("Expression(%q) makes %q, want an error", tt.spel, got)
			}
			continue
		}
		want := []string{tt.want}
		if strings.Contains(tt.spel, "![") || strings.HasPrefix(tt.spel, "{'") {
			want = strings.Fields(tt.want)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Expression(%q) makes %q, %v, want %q", tt.spel, got, err, want)
		}
	}
}

func TestExpressionErrors(t *testing.T) {
	for _, tt := range []struct {
		spel   string
		offset int
		reason string
	}{
		{"", 0, "nothing is written"},
		{"'a' + T(java.util.UUID).randomUUID()", 6, "Func"},
		{"new java.lang.String('x')", 0, "nothing can be constructed"},
		{"@svc.tenant()", 0, "no beans"},
		{"#order.name = 'x'", 12, "nothing can be assigned"},
		{"#order.id++", 9, "nothing can be assigned"},
		{"#order instanceof String", 7, "instanceof"},
		{"#other.id", 0, "unknown parameter #other"},
		{"#p1.id", 0, "unknown parameter #p1"},
		{"#result", 0, "no #result"},
		{"#root.target.tenant", 0, "of #root there is methodName"},
		{"order.id", 0, "write #order"},
		{"tenant()", 0, "write #tenant(…)"},
		{"'a' + ", 6, "unexpected"},
		{"'a", 0, "not closed"},
		{"''", 0, "makes an empty key"},
		{"'" + strings.Repeat("a", maxText-2) + "'.concat('" + "b')", maxText, "longer than"},
		{"a-#{#order.id", 2, "not closed"},
		{"a-#{#order.}", 11, "a name is missing"},
		{"#order.id + 1.5", 12, "only whole numbers"},
		{"2 ^ 3", 2, "a power"},
		{"#this", 0, "#this is the element"},
		{"#order.name.format('x')", 12, "the method format with 1 argument of a text is not known here"},
		{"#order.name matches #order.name", 27, "must be written out"},
		{"#order.id between 5", 18, "a list of two"},
		{"#root.methodName", 6, "add Method"},
		{strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200), 100, "nested too deeply"},
		{strings.Repeat("!", 200) + "true", 100, "nested too deeply"},
		{"${app.prefix}", 0, "filled in by Spring"},
	} {
		got, err := keysOf(t, Expression(tt.spel, Params("order")))
		fault, ok := errors.AsType[*keyexpr.Error](err)
		if !ok {
			t.Errorf("Expression(%q) = %q, %v, want an *Error", tt.spel, got, err)
			continue
		}
		if fault.Text != tt.spel || fault.Offset != tt.offset || !strings.Contains(fault.Reason, tt.reason) {
			t.Errorf("Expression(%q) = %d: %q, want %d: %q", tt.spel, fault.Offset, fault.Reason, tt.offset, tt.reason)
		}
	}
}

// The keys of these tables are what the Java sources named in presets.go make.
func TestPresets(t *testing.T) {
	order := Params("order")
	method := Method("com.acme.OrderService", "pay")
	for _, tt := range []struct {
		name string
		key  *Key
		want string
	}{
		{"lock4j named", Lock4j("order.pay", []string{"#order.id", "#order.tags[0]"}, order), "lock4j:order.pay#42.x"},
		{"lock4j by method", Lock4j("", []string{"#order.id"}, order, method), "lock4j:com.acme.OrderServicepay#42"},
		{"lock4j without keys", Lock4j("daily", []string{""}), "lock4j:daily#"},
		{"lock4j constant key", Lock4j("daily", []string{"'all'"}), "lock4j:daily#all"},
		{"klock named", Klock("pay", []string{"#order.id", "#order.urgent"}, order), "lock.pay-42-true"},
		{"klock by method", Klock("", []string{"#order.id"}, order, method), "lock.com.acme.OrderService.pay-42"},
		{"klock without keys", Klock("pay", nil), "lock.pay"},
		{"alturkovic", Alturkovic("", "order:", "#order.id", order), "distributed_lock:order:42"},
		{"alturkovic store", Alturkovic("locks", "", "'o' + #order.id", order), "locks:o42"},
		{"alturkovic list", Alturkovic("", "sku:", "#order.items.![sku]", order), "distributed_lock:sku:a distributed_lock:sku:b"},
		{"alturkovic variable that is a list", Alturkovic("", "", "#order.tags", order), "distributed_lock:x distributed_lock:y"},
		{"alturkovic default", Alturkovic("", "", "", method), "distributed_lock:com.acme.OrderService.pay"},
		{"redisson", Redisson(`"order:" + order.getId() + ":pay"`, order), "order:42:pay"},
		{"redisson format", Redisson(`String.format("order:%s:100%%:%d", order.id, order.id)`, order), "order:42:100%:42"},
		{"redisson valueOf", Redisson(`String.valueOf(order.id)`, order), "42"},
		{"redisson escapes", Redisson(`"a\"b\\" + order.id`, order), `a"b\42`},
	} {
		got, err := keysOf(t, tt.key)
		if err != nil || !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%s: %v makes %q, %v, want %q", tt.name, tt.key, got, err, tt.want)
		}
	}
}

func TestPresetsNeedTheMethod(t *testing.T) {
	for _, k := range []*Key{Lock4j("", nil), Klock("", nil)} {
		if err := k.Check(); err == nil || !strings.Contains(err.Error(), "add Method") {
			t.Errorf("%v = %v", k, err)
		}
	}
	if got, err := keysOf(t, Alturkovic("", "", "")); err == nil || !strings.Contains(err.Error(), "add Method") {
		t.Errorf("Alturkovic = %q, %v", got, err)
	}
	for _, text := range []string{`String.format("%x", a)`, `String.format("%s")`, `String.format("x", a)`, `String.format(a)`, `String.join(a)`, `"\q"`} {
		if got, err := keysOf(t, Redisson(text, Params("order"))); err == nil {
			t.Errorf("Redisson(%q) = %q, want an error", text, got)
		}
	}
}
