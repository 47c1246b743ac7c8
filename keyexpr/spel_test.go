package keyexpr

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

type javaOrder struct {
	ID     int64 `json:"id"`
	Name   string
	Note   *string
	Items  []javaItem
	Tags   []string
	Attrs  map[string]string
	Urgent bool
	Owner  *javaOwner
}

type javaItem struct {
	SKU string
	Qty int
}

type javaOwner struct{ Login string }

func javaFacts(string) (any, error) {
	return &javaOrder{
		ID: 42, Name: " Ab C ", Items: []javaItem{{"a", 1}, {"b", 5}}, Tags: []string{"x", "y"},
		Attrs: map[string]string{"k": "v"}, Urgent: true,
	}, nil
}

var javaRoots = Roots{"req": TypeFor[*javaOrder]()}

// expandJava translates and expands a key of a Java method that has one parameter, order.
func expandJava(t *testing.T, text string, err error) ([]string, error) {
	t.Helper()
	if err != nil {
		return nil, err
	}
	tmpl, err := Parse(text, javaRoots)
	if err != nil {
		return nil, err
	}
	return tmpl.Expand(context.Background(), javaFacts)
}

var spelKeys = []struct{ spel, want string }{
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
	{"{1, 42}.contains(#order.id) ? 'y' : 'n'", "y"},
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

func TestSpEL(t *testing.T) {
	for _, tt := range spelKeys {
		text, err := SpEL(tt.spel, Params("order"), Method("com.acme.OrderService", "pay"))
		got, err := expandJava(t, text, err)
		if tt.want == "" {
			if err == nil {
				t.Errorf("SpEL(%q) makes %q, want an error", tt.spel, got)
			}
			continue
		}
		want := []string{tt.want}
		if strings.HasSuffix(text, "]}") || strings.Contains(tt.spel, "![") || strings.HasPrefix(tt.spel, "{'") {
			want = strings.Fields(tt.want)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("SpEL(%q) = %q makes %q, %v, want %q", tt.spel, text, got, err, want)
		}
	}
}

func TestSpELErrors(t *testing.T) {
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
		{"#root.target.tenant", 0, "#root is not known"},
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
		{"#order.name.format('x')", 12, "format with 1 arguments is not known"},
		{"#order.name matches #order.name", 27, "must be written out"},
		{"#order.id between 5", 18, "a list of two"},
		{"#root.methodName", 6, "add Method"},
		{strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200), 100, "nested too deeply"},
		{strings.Repeat("!", 200) + "true", 99, "nested too deeply"},
		{"${app.prefix}", 0, "filled in by Spring"},
	} {
		text, err := SpEL(tt.spel, Params("order"))
		fault, ok := errors.AsType[*Error](err)
		if !ok {
			t.Errorf("SpEL(%q) = %q, %v, want an *Error", tt.spel, text, err)
			continue
		}
		if fault.Text != tt.spel || fault.Offset != tt.offset || !strings.Contains(fault.Reason, tt.reason) {
			t.Errorf("SpEL(%q) = %d: %q, want %d: %q", tt.spel, fault.Offset, fault.Reason, tt.offset, tt.reason)
		}
	}
}

func TestSpELVariables(t *testing.T) {
	for _, tt := range []struct {
		spel string
		opts []JavaOption
		want string
	}{
		{"#p0.id", nil, "#{raw(req.id)}"},
		{"#order.id", nil, "#{raw(order.id)}"},
		{"#order.id", []JavaOption{Params("order")}, "#{raw(req.id)}"},
		{"#userId + ':' + #p1", []JavaOption{Params("userId", "orderId")}, "#{raw(req.userId)}:#{raw(req.orderId)}"},
		{"#id", []JavaOption{Var("id", "path.id")}, "#{raw(path.id)}"},
		{"#t.x", []JavaOption{Var("t", `header["X-T"]`)}, `#{raw((header["X-T"]).x)}`},
		{"#header.tenant", []JavaOption{Params("order")}, "#{raw(header.tenant)}"},
		{"#claim(#p0.id, 'x')", nil, `#{raw(claim(req.id, "x"))}`},
		{"#root.methodName", []JavaOption{Method("a.B", "c")}, "c"},
	} {
		if got, err := SpEL(tt.spel, tt.opts...); got != tt.want || err != nil {
			t.Errorf("SpEL(%q) = %q, %v, want %q", tt.spel, got, err, tt.want)
		}
	}
}

func TestSpELRefusesNull(t *testing.T) {
	for _, spel := range []string{"'order:' + #order.note", "#order.owner.login", "#order.attrs['nope']", "#order.note"} {
		text, err := SpEL(spel, Params("order"))
		if got, err := expandJava(t, text, err); !errors.Is(err, ErrValue) {
			t.Errorf("SpEL(%q) makes %q, %v, want ErrValue", spel, got, err)
		}
	}
}

func TestSpELDoesNotEscapeOrDigest(t *testing.T) {
	text, err := SpEL("'o:' + #name + ':' + #id", Params("name", "id"))
	if err != nil {
		t.Fatal(err)
	}
	type request struct{ Name, ID string }
	tmpl, err := Parse(text, Roots{"req": TypeFor[request]()})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := tmpl.Expand(t.Context(), func(string) (any, error) { return request{"a b:{c}%", "7"}, nil })
	if err != nil || keys[0] != "o:a b:{c}%:7" {
		t.Errorf("Expand = %q, %v", keys, err)
	}
	_, err = tmpl.Expand(t.Context(), func(string) (any, error) { return request{strings.Repeat("x", 600), "7"}, nil })
	if !errors.Is(err, ErrValue) {
		t.Errorf("Expand = %v, want ErrValue for a key that would be digested", err)
	}
}

// The keys of these tables are what the Java sources named in presets.go make.
func TestPresets(t *testing.T) {
	order := Params("order")
	method := Method("com.acme.OrderService", "pay")
	join := func(s string, err error) func() (string, error) { return func() (string, error) { return s, err } }
	for _, tt := range []struct {
		name string
		text func() (string, error)
		want string
	}{
		{"lock4j named", join(Lock4j("order.pay", []string{"#order.id", "#order.tags[0]"}, order)), "lock4j:order.pay#42.x"},
		{"lock4j by method", join(Lock4j("", []string{"#order.id"}, order, method)), "lock4j:com.acme.OrderServicepay#42"},
		{"lock4j without keys", join(Lock4j("daily", []string{"", " "})), "lock4j:daily#"},
		{"lock4j constant key", join(Lock4j("daily", []string{"'all'"})), "lock4j:daily#all"},
		{"klock named", join(Klock("pay", []string{"#order.id", "#order.urgent"}, order)), "lock.pay-42-true"},
		{"klock by method", join(Klock("", []string{"#order.id"}, order, method)), "lock.com.acme.OrderService.pay-42"},
		{"klock without keys", join(Klock("pay", nil)), "lock.pay"},
		{"alturkovic", join(Alturkovic("", "order:", "#order.id", order)), "distributed_lock:order:42"},
		{"alturkovic store", join(Alturkovic("locks", "", "'o' + #order.id", order)), "locks:o42"},
		{"alturkovic list", join(Alturkovic("", "sku:", "#order.items.![sku]", order)), "distributed_lock:sku:a distributed_lock:sku:b"},
		{"alturkovic variable that is a list", join(Alturkovic("", "", "#order.tags", order)), "distributed_lock:x distributed_lock:y"},
		{"alturkovic default", join(Alturkovic("", "", "", method)), "distributed_lock:com.acme.OrderService.pay"},
		{"redisson", join(Redisson(`"order:" + order.getId() + ":pay"`, order)), "order:42:pay"},
		{"redisson format", join(Redisson(`String.format("order:%s:100%%:%d", order.id, order.id)`, order)), "order:42:100%:42"},
		{"redisson valueOf", join(Redisson(`String.valueOf(order.id)`, order)), "42"},
		{"redisson escapes", join(Redisson(`"a\"b\\" + order.id`, order)), `a"b\42`},
	} {
		text, err := tt.text()
		got, err := expandJava(t, text, err)
		if err != nil || !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%s: %q makes %q, %v, want %q", tt.name, text, got, err, tt.want)
		}
	}
}

func TestPresetsNeedTheMethod(t *testing.T) {
	if _, err := Lock4j("", nil); err == nil || !strings.Contains(err.Error(), "add Method") {
		t.Errorf("Lock4j = %v", err)
	}
	if _, err := Klock("", nil); err == nil || !strings.Contains(err.Error(), "add Method") {
		t.Errorf("Klock = %v", err)
	}
	if _, err := Alturkovic("", "", ""); err == nil || !strings.Contains(err.Error(), "add Method") {
		t.Errorf("Alturkovic = %v", err)
	}
	for _, text := range []string{`String.format("%x", a)`, `String.format("%s")`, `String.format("x", a)`, `String.format(a)`, `String.join(a)`, `"\q"`} {
		if got, err := Redisson(text); err == nil {
			t.Errorf("Redisson(%q) = %q, want an error", text, got)
		}
	}
}

// FuzzSpEL translates texts, which must come out of the template as they went in, and expressions, which must not panic.
func FuzzSpEL(f *testing.F) {
	for _, seed := range []string{
		"order:", "#{", "{#x}", "##{", "'", "\"", "\\", "\x00", "é\u00a0\U0001f600", "'a' + #p0.id", "a#{#p0.id}b", "#p0?.x.?[y > 1].![z]",
		"#a ?: 'b'", "T(x)", "{1,2}", "#p0.x.substring(1,2).hashCode()", "between {1,2}", "a ? b : c", "!!!not -1", "'#' + #p0.id + '{#'", "0X", "0x1L + 9223372036854775808", "0.A0",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if text, err := SpEL(s); err != nil {
			checkError(t, s, err)
		} else if err := Check(text); err != nil {
			t.Errorf("SpEL(%q) = %q: %v", s, text, err)
		}
		spel := "'" + strings.ReplaceAll(s, "'", "''") + "' + #p0.id + '" + strings.ReplaceAll(s, "'", "''") + "'"
		if strings.Contains(s, "#{") || len(s) > 200 {
			return
		}
		text, err := SpEL(spel)
		if err != nil {
			checkError(t, spel, err)
			return
		}
		if got, err := expandJava(t, text, nil); err != nil || got[0] != s+"42"+s {
			t.Errorf("SpEL(%q) = %q makes %q, %v", spel, text, got, err)
		}
	})
}
