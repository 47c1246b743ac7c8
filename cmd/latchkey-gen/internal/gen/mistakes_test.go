package gen

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// slip is a file with a mistake, and what it gets: the line and column, and the sentence. The first line is the third.
type slip struct{ source, want string }

// method is the file of an interface with one method and comments above it.
func inInterface(above, method string) string {
	return fmt.Sprintf("type Orders interface {\n\t%s\n\t%s\n}", above, method)
}

const pay = "Pay(ctx context.Context, id string, cents int64) error"

var slips = []slip{
	// the text
	{inInterface("//latchkey:guard order:#{id}; wiat=5s", pay), `6:2: Orders.Pay: tag "order:#{id}; wiat=5s": unknown attribute "wiat", did you mean wait? (at offset 13)`},
	{inInterface("//latchkey:guard order:#{id}; wait=5", pay), `6:2: Orders.Pay: tag "order:#{id}; wait=5": bad duration "5", want one like 2s or 500ms (at offset 18)`},
	{inInterface("//latchkey:guard key=order:#{id}", pay), `6:2: Orders.Pay: tag "key=order:#{id}": the template stands first, without its name: write order:#{id} (at offset 0)`},
	{inInterface("//latchkey:guard order:#{id} wait=5s", pay), `6:2: Orders.Pay: tag "order:#{id} wait=5s": attributes follow a semicolon, not a blank: write ; wait=5s (at offset 11)`},
	{inInterface("//latchkey:guard", pay), `6:2: Orders.Pay: no key: write its template first, as in //latchkey:guard order:#{id}; wait=5s`},
	{inInterface("//latchkey:guard ; wait=5s", pay), `6:2: Orders.Pay: no key: write its template first, as in //latchkey:guard order:#{id}; wait=5s`},
	{inInterface("//latchkey:guard order:#{id", pay), `6:2: Orders.Pay: key: keyexpr: the hole is not closed by }`},
	{inInterface("//latchkey:guard order:{id}", pay), `6:2: Orders.Pay: key: keyexpr: {id} is a hash tag, and id could be read: write #{id}`},
	{inInterface("//latchkey:guard order", pay), `6:2: Orders.Pay: key: keyexpr: all requests would share one key`},
	{inInterface("//latchkey:guard order:#{di}", pay), `6:2: Orders.Pay: key: keyexpr: unknown name di, did you mean id? (at offset 8 of "order:#{di}")`},
	{inInterface("//latchkey:guard order:#{id.Number}", pay), `6:2: Orders.Pay: key: keyexpr: id has no fields: it is of type string`},
	{inInterface("//latchkey:guard order:#{ctx}", pay), `6:2: Orders.Pay: key: keyexpr: unknown name ctx`},
	{inInterface("//latchkey:guard order:#{id}; when=cents", pay), `6:2: Orders.Pay: when: keyexpr: a condition is true or false, and this is of type int64`},
	{inInterface("//latchkey:guard order:#{id}; args=id,cents", pay), `6:2: Orders.Pay: args=id,cents: the names are those of the arguments, so leave it out`},
	{inInterface("//latchkey:guard order:#{id}; methods=POST", pay), `6:2: Orders.Pay: methods=POST is about requests of HTTP, which there are none of here`},
	{inInterface("//latchkey:guard order:#{id}; kind=permit", pay), `6:2: Orders.Pay: kind permit needs a limit of at least 1, not 0, or a rate`},
	{inInterface("//latchkey:guard order:#{id}; lease=1m; max-hold=1s", pay), `6:2: Orders.Pay: lease 1m0s is over max-hold 1s, which would end it first`},
	{inInterface("//latchkey:guard order:#{id}; busy=fallback", pay), `6:2: Orders.Pay: a fallback is for one argument and at most one result, or for neither: put the arguments into a struct`},
	{inInterface("//latchkey:guard order:#{id} // one at a time", pay), `6:2: a comment behind a directive would be a part of it: write //latchkey:guard order:#{id}`},
	{inInterface("//latchkey:guard order:#{o.Sum}", "Pay(ctx context.Context, o struct{ Sum float64 }) error"), `6:2: Orders.Pay: key: keyexpr: o.Sum is a float, float64, which has many spellings: use a whole number or a string`},
	{inInterface("//latchkey:guard order:#{o.ID}", "Pay(ctx context.Context, o struct { _ int `guard:\"a:#{req.ID}\"`; ID string }) error"),
		`6:2: Orders.Pay: the guard tags of argument o (struct { _ int "guard:\"a:#{req.ID}\""; ID string }) would be ignored: they are for a request that is the only argument, and is called req`},
	// two at once
	{inInterface("//latchkey:guard order:#{id}\n\t//latchkey:guard order:#{id}; wait=5s", pay), `7:2: second directive of Pay: write one, with semicolons between its parts`},
	{inInterface("//latchkey:guard order:#{id}; name=x", pay+"\n\t//latchkey:guard order:#{id}; name=x\n\tRefund(ctx context.Context, id string) error"),
		`8:2: Orders.Refund: the name "x" is also that of Pay: name=... gives one of them another`},
	// what is no directive
	{inInterface("// latchkey:guard order:#{id}; wait=5s", pay), `6:2: a directive has no blank behind its slashes: write //latchkey:guard order:#{id}; wait=5s`},
	{inInterface("//\tlatchkey:guard", pay), `6:2: a directive has no blank behind its slashes: write //latchkey:guard`},
	{inInterface("/*latchkey:guard order:#{id}*/", pay), `6:2: a directive is a comment with two slashes: write //latchkey:guard order:#{id}; wait=5s`},
	{inInterface("//latchkey:guards order:#{id}", pay), `6:2: unknown directive latchkey:guards: write //latchkey:guard order:#{id}; wait=5s`},
	{inInterface("//latchkey:lock order:#{id}", pay), `6:2: unknown directive latchkey:lock: write //latchkey:guard order:#{id}; wait=5s`},
	{inInterface("//lachkey:guard order:#{id}", pay), `6:2: lachkey:guard is nobody's directive: write //latchkey:guard order:#{id}; wait=5s`},
	{inInterface("//Latchkey:Guard order:#{id}", pay), `6:2: Latchkey:Guard is nobody's directive: write //latchkey:guard order:#{id}; wait=5s`},
	{inInterface("//latchkey-guard order:#{id}", pay), `6:2: this is no directive: write //latchkey:guard order:#{id}; wait=5s`},
	// where none can be
	{"//latchkey:guard order:#{id}\ntype Orders interface {\n\t" + pay + "\n}", `5:1: directive above a type: write it above each of its methods that is to be guarded`},
	{"//latchkey:guard order:#{id}\ntype ID string", `5:1: directive above a type: only methods of interfaces, and functions, can be guarded`},
	{"type (\n\t//latchkey:guard order:#{id}\n\tID string\n)", `6:2: directive above a type: only methods of interfaces, and functions, can be guarded`},
	{"//latchkey:guard order:#{id}\nvar pay func(context.Context, string) error", `5:1: directive above a var: only methods of interfaces, and functions, can be guarded`},
	{"type T struct{}\n\n//latchkey:guard order:#{id}\nfunc (T) Pay(ctx context.Context, id string) error { return nil }",
		`7:1: directive above a method of a type: declare an interface with Pay, and write it there`},
	{"type T struct {\n\t//latchkey:guard order:#{id}\n\tPay func(context.Context, string) error\n}",
		`6:2: directive stands where there is nothing to guard: write it right above a method of an interface, or a function, of the package`},
	{"func f() {\n\t//latchkey:guard order:#{id}\n\t_ = 1\n}", `6:2: directive stands where there is nothing to guard`},
	{"//latchkey:guard order:#{id}\n\nfunc Pay(ctx context.Context, id string) error { return nil }", `5:1: directive stands where there is nothing to guard`},
	{"type Orders interface {\n\t" + pay + " //latchkey:guard order:#{id}\n}", `6:57: directive behind Pay: write it on a line of its own above`},
	{"type Orders interface {\n\t//latchkey:guard order:#{id}\n\tother\n}\n\ntype other interface{ " + pay + " }",
		`6:2: directive above an embedded interface: write it above the methods, where they are declared`},
	{"type Orders interface {\n\t//latchkey:guard order:#{id}\n\t" + pay + "\n\t~int\n}", `5:6: Orders is a constraint, which no value has: move the methods with directives to an interface of their own`},
	// methods and functions that can't be guarded
	{inInterface("//latchkey:guard order:#{id}", "Pay(id string) error"), `7:2: Pay has no context.Context in front: write Pay(ctx context.Context, id string) error`},
	{inInterface("//latchkey:guard order:#{id}", "Pay(id string, ctx context.Context)"),
		`7:2: Pay has no context.Context in front, and does not return an error last: write Pay(ctx context.Context, id string, ctx context.Context) error`},
	{inInterface("//latchkey:guard order:#{id}", "Pay(ctx context.Context, id ...string) (error, int)"),
		`7:2: Pay does not return an error last: write Pay(ctx context.Context, id ...string) (error, int, error)`},
	{inInterface("//latchkey:guard order:#{id}", "Pay(context.Context, string, int64) error"),
		`7:2: argument 1 of Pay has no name, and the facts of a directive are the names of arguments: write Pay(ctx context.Context, b string, c int64) error`},
	{"//latchkey:guard order:#{id}\nfunc Pay(id string) {}", `6:6: Pay has no context.Context in front, and does not return an error last: write Pay(ctx context.Context, id string) error`},
	// types that do not compile
	{inInterface("//latchkey:guard order:#{id}", "Pay(ctx context.Context, id Identity) error"), `7:30: undefined: Identity`},
	{inInterface("//latchkey:guard order:#{o.ID}", "Pay(ctx context.Context, o Order) error") + "\n\ntype Order struct{ ID Identity }", `10:23: undefined: Identity`},
	{"//latchkey:guard order:#{id}\nfunc Pay(ctx context.Context, id Identity) error { return nil }", `6:34: undefined: Identity`},
	{inInterface("//latchkey:guard order:#{id}", "Pay(ctx context.Context, id string error"), `7:37: missing ',' in parameter list`},
	{"//latchkey:guard order:#{id}\nfunc Pay(ctx context.Context, id no.Identity) error { return nil }", `6:34: undefined: no`},
	// names that are taken
	{inInterface("//latchkey:guard order:#{id}", pay) + "\n\nfunc GuardOrders() {}", `10:6: GuardOrders is what the code that is generated for Orders declares: give this another name`},
	{inInterface("//latchkey:guard order:#{id}", pay) + "\n\ntype ordersPayArgs int", `10:6: ordersPayArgs is what the code that is generated for Orders declares: give this another name`},
	{inInterface("//latchkey:guard order:#{id}", pay+"\n\t//latchkey:guard b:#{id}\n\tp"+pay[1:]), `5:6: ordersPayArgs is declared twice in what is generated: rename Orders`},
}

func TestMistakes(t *testing.T) {
	files := make(map[string]string)
	for i, s := range slips {
		files[fmt.Sprintf("p%02d/orders.go", i)] = s.source
	}
	dir := module(t, files)
	_, err := Generate(dir, "./...")
	if err == nil {
		t.Fatal("no error")
	}
	got := make(map[string][]string)
	for line := range strings.Lines(err.Error()) {
		pkg, place, ok := strings.Cut(line, "/")
		if !ok {
			t.Errorf("no place in %q", line)
		}
		got[pkg] = append(got[pkg], strings.TrimSpace(place))
	}
	for i, s := range slips {
		lines := got[fmt.Sprintf("p%02d", i)]
		if len(lines) != 1 || !strings.HasPrefix(lines[0], "orders.go:"+s.want) {
			t.Errorf("%s\n\tgot  %q\n\twant orders.go:%s", s.source, lines, s.want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", "*_latchkey.go")); len(left) > 0 {
		t.Errorf("nevertheless there is %v", left)
	}
}

func TestMistakesOfTests(t *testing.T) {
	dir := module(t, map[string]string{
		"orders.go":      "func pay(ctx context.Context, id string) error { return nil }",
		"orders_test.go": "//latchkey:guard order:#{id}\nfunc refund(ctx context.Context, id string) error { return nil }",
	})
	_, err := Generate(dir, "./...")
	if err == nil || err.Error() != "orders_test.go:5:1: directive in a test: move what it is about to another file, or use guard.Func" {
		t.Errorf("Generate: %v", err)
	}
	if _, err := Generate(dir, "./nowhere"); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a package that there is not: %v", err)
	}
}

// TestMistypedDirectives has comments that guard nothing and look as if they did.
func TestMistypedDirectives(t *testing.T) {
	for _, comment := range []string{
		"//latchkey: guard x", "// latchkey: guard x", "//latchkey :guard x", "//latchkey::guard x", "///latchkey:guard x", "//+latchkey:guard x",
		"//@latchkey:guard x", "//latchkey/guard x", "//latchkey：guard x", "/**latchkey:guard x */", "//\u200blatchkey:guard x", "//\u00a0latchkey:guard x",
		"//\ufefflatchkey:guard x", "//Latchkey:Guard x", "//latchkey;guard x",
	} {
		if text, ok, wrong := read(comment); ok || wrong == "" {
			t.Errorf("read(%q) = %q, %v, and nothing is wrong", comment, text, ok)
		}
	}
}

// TestProseIsNoDirective has comments that are about directives.
func TestProseIsNoDirective(t *testing.T) {
	for _, comment := range []string{
		"// Latchkey: guards for all", "// The directive latchkey:guard is written above.", "//go:generate go tool latchkey-gen", "//nolint:gosec // why",
		"//	//latchkey:guard order:#{id}", "// latchkey guards this", "//", "// guard: something", "//latest:guard", "/* see latchkey:guard */",
		"// latchkey/guard has the options", "// latchkey, guard and key",
	} {
		if text, ok, wrong := read(comment); ok || wrong != "" {
			t.Errorf("read(%q) = %q, %v, %q, want it to be left alone", comment, text, ok, wrong)
		}
	}
}
