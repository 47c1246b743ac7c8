package rules

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/interceptor/guardpb"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// bank is a registry with one service, whose methods get a latchkey.guard.v1.Guard, for want of another message with a Go
// type: Transfer and Deposit are unary, Watch answers a stream. Transfer has the option, if there is one.
func bank(t *testing.T, option *guardpb.Guard) *protoregistry.Files {
	t.Helper()
	const message = ".latchkey.guard.v1.Guard"
	method := func(name string, stream bool) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: new(name), InputType: new(message), OutputType: new(message), ServerStreaming: new(stream),
		}
	}
	transfer := method("Transfer", false)
	if option != nil {
		transfer.Options = &descriptorpb.MethodOptions{}
		proto.SetExtension(transfer.Options, guardpb.E_Guard, option)
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("bank.proto"), Package: new("bank.v1"), Syntax: new("proto3"),
		Dependency: []string{guardpb.File_latchkey_guard_v1_guard_proto.Path()},
		Service: []*descriptorpb.ServiceDescriptorProto{
			{Name: new("Bank"), Method: []*descriptorpb.MethodDescriptorProto{transfer, method("Deposit", false), method("Watch", true)}},
			{Name: new("Vault"), Method: []*descriptorpb.MethodDescriptorProto{method("Open", false)}},
		},
	}, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	files := new(protoregistry.Files)
	if err := files.RegisterFile(file); err != nil {
		t.Fatal(err)
	}
	return files
}

const (
	transfer = "/bank.v1.Bank/Transfer"
	deposit  = "/bank.v1.Bank/Deposit"
	watch    = "/bank.v1.Bank/Watch"
	open     = "/bank.v1.Vault/Open"
)

// keyed is a guard of name "g".
func keyed(t *testing.T, template string, opts ...guard.Option) *guard.Guard {
	t.Helper()
	g, err := guard.New(memlock.New(), append(opts, guard.Name("g"), guard.Key(template))...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// mistake is one in rules, and what has to stand in the error.
type mistake struct {
	name   string
	kinds  Kinds
	option *guardpb.Guard // of Transfer
	rules  []Rule
	want   []string
	others int // mistakes beside the one
}

// Every realistic mistake is an error at start that says where it is, and what to write where that can be guessed.
func TestMistakes(t *testing.T) {
	for _, tt := range slices.Concat(mistakesInRules(t), mistakesInNames(t), mistakesInTemplates(t), mistakesInOptions()) {
		ms, err := bindIn(bank(t, tt.option), "interceptor", tt.kinds, tt.rules)
		if err == nil || ms != nil {
			t.Errorf("%s: no error, but %v", tt.name, ms)
			continue
		}
		if n := strings.Count(err.Error(), "interceptor: "); n != 1+tt.others {
			t.Errorf("%s: error %q has %d mistakes, want %d", tt.name, err, n, 1+tt.others)
		}
		if named := fmt.Sprintf("method %q", transfer); strings.Contains(err.Error(), named+": "+named) {
			t.Errorf("%s: error %q names the method twice", tt.name, err)
		}
		for _, part := range tt.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %q does not say %s", tt.name, err, part)
			}
		}
	}
}

// mistakesInRules are about one rule, or several that do not go together.
func mistakesInRules(t *testing.T) []mistake {
	g := keyed(t, "account:#{req.name}")
	locker := lock.Locker(memlock.New())
	good := &guardpb.Guard{Key: "account:#{req.name}"}
	faulty := Method(transfer, g)
	faulty.Fault("option 1 of 1 is nil")
	return []mistake{
		// Of a rule
		{name: "no rules", want: []string{"no rules"}},
		{name: "zero rule", rules: []Rule{{}}, want: []string{"without a guard"}},
		{name: "nil guard", rules: []Rule{Method(transfer, nil)}, want: []string{transfer, "without a guard"}},
		{name: "nil option", rules: []Rule{faulty}, want: []string{transfer, "option 1 of 1 is nil"}},
		{name: "no name of a guard", rules: []Rule{Method(transfer, guard.Must(guard.New(locker, guard.Key("account:#{req.name}"))))},
			want: []string{transfer, "give guard.Name"}},
		{name: "no key", rules: []Rule{Method(transfer, guard.Must(guard.New(locker, guard.Name("g"))))}, want: []string{`guard "g"`, "no key"}},
		{name: "methods of HTTP", rules: []Rule{Method(transfer, keyed(t, "account:#{req.name}", guard.Methods("POST")))}, want: []string{`guard "g"`, "HTTP"}},

		// Of a kind
		{name: "stream among unary rules", kinds: Unary, rules: []Rule{Method(watch, g)}, want: []string{watch, "StreamServer"}},
		{name: "unary among stream rules", kinds: Streaming, rules: []Rule{Method(transfer, g)}, want: []string{transfer, "UnaryServer"}},
		{name: "service with a stream, unary only", kinds: Unary, rules: []Rule{Service("bank.v1.Bank", g)}, want: []string{watch, "New"}},
		{name: "pattern with a stream, unary only", kinds: Unary, rules: []Rule{Match("/bank.v1.Bank/*", g)}, want: []string{watch, "New"}},
		{name: "skip without a response", rules: []Rule{ofNoType(t, keyed(t, "k", guard.OneKey(), guard.Busy(guard.Skip)))}, want: []string{"skip"}},
		{name: "skip in an outage without a response", rules: []Rule{ofNoType(t, keyed(t, "k", guard.OneKey(), guard.Outage(guard.Skip)))}, want: []string{"skip"}},

		// Of several rules
		{name: "two rules of a method", rules: []Rule{Method(transfer, g), Method(transfer, g)}, want: []string{transfer, "another rule"}},
		{name: "guarded and not", rules: []Rule{Method(transfer, g), Unguarded(transfer)}, want: []string{transfer, "another rule"}},
		{name: "two rules of a service", rules: []Rule{Service("bank.v1.Bank", g), Service("/bank.v1.Bank", g)}, want: []string{"another rule"}, others: 2},
		{name: "patterns that overlap", rules: []Rule{Match("/bank.v1.Bank/T*", g), Match("/bank.v1.Bank/*r", g)},
			want: []string{transfer, `pattern "/bank.v1.Bank/*r"`, `pattern "/bank.v1.Bank/T*"`}},
		{name: "a rule that never applies", rules: []Rule{Match("/bank.v1.Vault/*", g), Service("bank.v1.Vault", g)},
			want: []string{`pattern "/bank.v1.Vault/*"`, "never applies"}},
		{name: "options twice", option: good, rules: []Rule{FromOptions(locker, nil), FromOptions(locker, nil)}, want: []string{transfer, "another rule"}},
	}
}

// mistakesInNames are about methods, services and patterns.
func mistakesInNames(t *testing.T) []mistake {
	g := keyed(t, "account:#{req.name}")
	withRequest := Service("bank.v1.Bank", g)
	withRequest.Request(reflect.TypeFor[*guardpb.Guard]())
	slashless, nested := Method("shop.v1.Basket/Put", g), Method("/shop.v1.Basket/Put/All", g)
	slashless.Request(reflect.TypeFor[*guardpb.Guard]())
	nested.Request(reflect.TypeFor[*guardpb.Guard]())
	return []mistake{
		{name: "typo in the method", rules: []Rule{Method("/bank.v1.Bank/Tranfser", g)}, want: []string{`guard "g"`, "did you mean", transfer}},
		{name: "dots for slashes", rules: []Rule{Method("bank.v1.Bank.Transfer", g)}, want: []string{"did you mean", transfer}},
		{name: "without the package", rules: []Rule{Method("Bank/Transfer", g)}, want: []string{"did you mean", transfer}},
		{name: "a route of HTTP", rules: []Rule{Method("POST /v1/transfers", g)}, want: []string{"no such method"}},
		{name: "service not linked in", rules: []Rule{Method("/shop.v1.Basket/Put", g)}, want: []string{"import the package generated"}},
		{name: "no slash, of a method that is not registered", rules: []Rule{slashless}, want: []string{"no such method"}},
		{name: "a slash too many, of a method that is not registered", rules: []Rule{nested}, want: []string{"no such method"}},
		{name: "typo in the service", rules: []Rule{Service("bank.v1.Bnak", g)}, want: []string{`guard "g"`, `did you mean "bank.v1.Bank"`}},
		{name: "the beginning of a service", rules: []Rule{Service("bank.v1.Ban", g)}, want: []string{`did you mean "bank.v1.Bank"`}},
		{name: "a method as a service", rules: []Rule{Service("bank.v1.Bank/Transfer", g)}, want: []string{"no such service"}},
		{name: "service without the package", rules: []Rule{Service("Bank", g)}, want: []string{`did you mean "bank.v1.Bank"`}},
		{name: "pattern of nothing", rules: []Rule{Match("/bank.v2.*/*", g)}, want: []string{`"/bank.v2.*/*"`, `guard "g"`, "no registered method"}},
		{name: "pattern without a slash", rules: []Rule{Match("bank.*", g)}, want: []string{"want a pattern like"}},
		{name: "regular expression", rules: []Rule{Match("/bank.v1.Bank/(Transfer|Deposit)", g)}, want: []string{"without a *"}},
		{name: "braces in a pattern", rules: []Rule{Match("/bank.v1.Bank/{Transfer,Deposit}*", g)}, want: []string{"knows * only"}},
		{name: "Request of a service", rules: []Rule{withRequest}, want: []string{`"bank.v1.Bank"`, "Request is for rules of one method"}},
	}
}

// mistakesInTemplates are about keys.
func mistakesInTemplates(t *testing.T) []mistake {
	locker := lock.Locker(memlock.New())
	return []mistake{
		{name: "typo in a field", rules: []Rule{Method(transfer, keyed(t, "account:#{req.nmae}"))}, want: []string{transfer, `guard "g"`, "Name"}},
		{name: "another root", rules: []Rule{Method(transfer, keyed(t, "account:#{body.name}"))}, want: []string{transfer, "body"}},
		{name: "header for metadata", rules: []Rule{Method(transfer, keyed(t, "account:#{header.tenant}"))}, want: []string{transfer, "header"}},
		{name: "a message as a key", rules: []Rule{Method(transfer, keyed(t, "account:#{req}"))}, want: []string{transfer, "req"}},
		{name: "one key for all", rules: []Rule{Method(transfer, keyed(t, "account"))}, want: []string{transfer, "one"}},
		{name: "one method of many", rules: []Rule{Service("bank.v1.Bank", keyed(t, "account:#{req.nmae}")), Unguarded(transfer)},
			want: []string{`service "bank.v1.Bank"`, deposit, watch, "Name"}, others: 1},
		{name: "key function of another type", rules: []Rule{Method(transfer, guard.Must(guard.New(locker, guard.Name("g"),
			guard.KeyFunc(func(string) (string, error) { return "k", nil }))))}, want: []string{transfer, "string"}},
	}
}

// mistakesInOptions are about what stands in a .proto file.
func mistakesInOptions() []mistake {
	options := func(opts ...guard.Option) []Rule { return []Rule{FromOptions(memlock.New(), opts)} }
	bounded := []Rule{FromOptions(guardtest.PassThrough(), nil)}
	good := &guardpb.Guard{Key: "account:#{req.name}"}
	newer := proto.CloneOf(good)
	newer.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1))
	return []mistake{
		{name: "no method has one", rules: options(), want: []string{"no registered method has the option (latchkey.guard.v1.guard)"}},
		{name: "nil locker", option: good, rules: []Rule{FromOptions(nil, nil)}, want: []string{"nil locker"}},
		{name: "nil option for all", option: good, rules: options(nil), want: []string{"nil"}},
		{name: "one name for all", option: good, rules: options(guard.Name("g")), want: []string{"option of each"}},
		{name: "one key for all", option: good, rules: options(guard.Key("k"), guard.OneKey()), want: []string{"option of each"}},
		{name: "without a key", option: &guardpb.Guard{Wait: "2s"}, rules: options(), want: []string{transfer, "no key", "such as key: "}},
		{name: "two mistakes", option: &guardpb.Guard{Key: "account:#{req.name}", Wait: "2", Kind: "fiar"}, rules: options(), want: []string{transfer, "wait", "fair"}},
		{name: "typo in a proto name", option: &guardpb.Guard{Key: "account:#{req.max_hodl}"}, rules: options(), want: []string{transfer, "MaxHold"}},
		{name: "bad duration", option: &guardpb.Guard{Key: "account:#{req.name}", Wait: "2"}, rules: options(), want: []string{transfer, "wait", `"2"`, "2s"}},
		{name: "typo in a kind", option: &guardpb.Guard{Key: "account:#{req.name}", Kind: "fiar"}, rules: options(), want: []string{transfer, "kind", "fair"}},
		{name: "typo in a policy", option: &guardpb.Guard{Key: "account:#{req.name}", Busy: "skpi"}, rules: options(), want: []string{transfer, "busy", "skip"}},
		{name: "permit without a limit", option: &guardpb.Guard{Key: "account:#{req.name}", Kind: "permit"}, rules: options(), want: []string{transfer, "limit"}},
		{name: "negative limit", option: &guardpb.Guard{Key: "account:#{req.name}", Limit: -1}, rules: options(), want: []string{transfer, "limit"}},
		{name: "two limits", option: &guardpb.Guard{Key: "account:#{req.name}", Limit: 1, LimitFrom: "#{req.limit}"}, rules: options(),
			want: []string{transfer, "limit and limit_from: give one"}},
		{name: "typo in a limit of requests", option: &guardpb.Guard{Key: "account:#{req.name}", LimitFrom: "#{req.limti}"}, rules: options(),
			want: []string{transfer, "limit: ", "did you mean"}},
		{name: "limit that is no number", option: &guardpb.Guard{Key: "account:#{req.name}", LimitFrom: "#{req.name}"}, rules: options(),
			want: []string{transfer, "limit: keyexpr: makes <string>"}},
		{name: "lease without a unit", option: &guardpb.Guard{Key: "account:#{req.name}", Lease: "#{req.limit}"}, rules: options(),
			want: []string{transfer, "lease: keyexpr: makes <int32>", "time.Duration"}},
		{name: "typo in a level", option: &guardpb.Guard{Key: "account:#{req.name}", Limit: 1, Levels: "20 of t:#{req.nam}"}, rules: bounded,
			want: []string{transfer, "levels: ", "did you mean"}},
		{name: "level without a limit", option: &guardpb.Guard{Key: "account:#{req.name}", Levels: "20 of all"}, rules: bounded,
			want: []string{transfer, "levels without limit"}},
		{name: "rate without a slash", option: &guardpb.Guard{Key: "account:#{req.name}", Rate: "10"}, rules: bounded, want: []string{transfer, `bad rate "10"`}},
		{name: "negative burst", option: &guardpb.Guard{Key: "account:#{req.name}", Rate: "10/1m", Burst: -1}, rules: bounded, want: []string{transfer, "bad burst"}},
		{name: "lease over max-hold", option: &guardpb.Guard{Key: "account:#{req.name}", Lease: "1m", MaxHold: "1s"}, rules: options(), want: []string{transfer, "max-hold"}},
		{name: "unclosed hole", option: &guardpb.Guard{Key: "account:#{req.name"}, rules: options(), want: []string{transfer, "key"}},
		{name: "condition that is none", option: &guardpb.Guard{Key: "account:#{req.name}", When: "req.limit"}, rules: options(), want: []string{transfer, "when"}},
		{name: "fallback without one", option: &guardpb.Guard{Key: "account:#{req.name}", Busy: "fallback"}, rules: options(), want: []string{transfer, "fallback"}},
		{name: "field of a later version", option: newer, rules: options(), want: []string{transfer, "does not know"}},
	}
}

// ofNoType is a rule for a method of which no response is known.
func ofNoType(t *testing.T, g *guard.Guard) Rule {
	t.Helper()
	r := Method("/shop.v1.Basket/Put", g)
	r.Request(reflect.TypeFor[*guardpb.Guard]())
	return r
}

// Of a method without a descriptor, the types are what its rule says.
func TestFallbackWithoutDescriptor(t *testing.T) {
	r := ofNoType(t, keyed(t, "k", guard.OneKey()))
	r.Fallback(Fallback{Request: reflect.TypeFor[*guardpb.Guard](), Response: reflect.TypeFor[*guardpb.Guard](),
		Run: func(context.Context, any, error) (any, error) { return nil, nil }})
	if ms, err := bindIn(bank(t, nil), "interceptor", All, []Rule{r}); err != nil || ms["/shop.v1.Basket/Put"].Fallback == nil {
		t.Errorf("= %v, %v", ms, err)
	}
}

// All faults come at once, each with its method.
func TestFaultsAreJoined(t *testing.T) {
	rules := []Rule{Method(transfer, keyed(t, "#{req.nmae}")), Method("/bank.v1.Bank/Depsoit", keyed(t, "#{req.name}")), {}}
	_, err := bindIn(bank(t, nil), "interceptor", All, rules)
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 3 {
		t.Fatalf("error %v, want three", err)
	}
	for _, part := range []string{transfer, deposit, "without a guard"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %s", err, part)
		}
	}
}

// The more specific rule guards a method, and Go wins over a .proto file.
func TestPrecedence(t *testing.T) {
	named := func(name string) *guard.Guard {
		return guard.Must(guard.New(memlock.New(), guard.Name(name), guard.Key("#{req.name}")))
	}
	rules := map[string]Rule{
		"m": Method(transfer, named("m")),
		"u": Unguarded(transfer),
		"o": FromOptions(memlock.New(), nil),
		"s": Service("bank.v1.Bank", named("s")),
		"p": Match("/bank.*/*", named("p")),
	}
	for _, tt := range []struct{ rules, transfer, deposit, open string }{
		{"m", "m", "", ""},
		{"p", "p", "p", "p"},
		{"s", "s", "s", ""},
		{"sp", "s", "s", "p"},
		{"o", "bank.v1.Bank/Transfer", "", ""},
		{"op", "bank.v1.Bank/Transfer", "p", "p"},
		{"os", "bank.v1.Bank/Transfer", "s", ""},
		{"ps", "s", "s", "p"},
		{"msp", "m", "s", "p"},
		{"us", "", "s", ""},
	} {
		var given []Rule
		for _, name := range tt.rules {
			given = append(given, rules[string(name)])
		}
		ms, err := bindIn(bank(t, &guardpb.Guard{Key: "#{req.name}"}), "interceptor", All, given)
		if err != nil {
			t.Errorf("rules %s: %v", tt.rules, err)
			continue
		}
		for method, want := range map[string]string{transfer: tt.transfer, deposit: tt.deposit, open: tt.open} {
			if got := ms[method]; got == nil && want != "" || got != nil && got.Spec.Name != want {
				t.Errorf("rules %s guard %s by %+v, want %q", tt.rules, method, got, want)
			}
		}
	}
}

// A rule in Go for a method whose option it replaces leaves the other options alone, and the option unused is no mistake.
func TestGoReplacesAnOption(t *testing.T) {
	_, err := bindIn(bank(t, &guardpb.Guard{Key: "#{req.name}"}), "interceptor", All, []Rule{
		FromOptions(memlock.New(), nil), Method(transfer, keyed(t, "#{req.name}")),
	})
	if err != nil {
		t.Error(err)
	}
}

// Each attribute of a Spec can be given in a .proto file, with the same result, but for two that mean nothing there.
func TestOptionSaysWhatASpecDoes(t *testing.T) {
	option := &guardpb.Guard{
		Name: "n", Key: "account:#{req.name}", When: `req.name != ""`, Kind: "permit", Wait: "2s", Lease: "3s", MaxHold: "4s",
		Hold: "5s", Limit: 6, Levels: "20 of all, #{req.limit} of #{req.name}", Rate: "10/1m", Burst: 8,
		Waiters: 7, Busy: "skip", Outage: "run-unlocked", OneKey: true, Switchable: true,
	}
	want := guard.Spec{
		Name: "n", Key: "account:#{req.name}", When: `req.name != ""`, Kind: lock.Permit, Wait: 2 * time.Second, Lease: 3 * time.Second,
		MaxHold: 4 * time.Second, Hold: 5 * time.Second, Limit: 6, Levels: "20 of all, #{req.limit} of #{req.name}", Rate: "10/1m", Burst: 8,
		Waiters: 7, Busy: guard.Skip, Outage: guard.RunUnlocked,
		OneKey: true, Switchable: true,
	}
	read := &guardpb.Guard{Key: "k", LimitFrom: "#{req.limit}", Lease: "#{req.timeout.AsDuration()}"}
	wantRead := guard.Spec{Key: "k", Kind: lock.Permit, LimitFrom: "#{req.limit}", LeaseFrom: "#{req.timeout.AsDuration()}"}
	for option, want := range map[*guardpb.Guard]guard.Spec{option: want, read: wantRead} {
		got, err := specOf(option)
		if err != nil || got.String() != want.String() {
			t.Errorf("specOf(%v) = %v, %v, want %v", option, got, err, want)
		}
	}
	// A field that was left out above would not be tested, and one that the option lacks could not be given.
	fields := option.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if !option.ProtoReflect().Has(fields.Get(i)) && !read.ProtoReflect().Has(fields.Get(i)) {
			t.Errorf("the test lacks %s", fields.Get(i).Name())
		}
	}
	// Words of a Spec that an option lacks on purpose, and what says so when they are given for all methods.
	lacking := map[string]struct {
		word   guard.Option
		reason string
	}{
		"Args":    {guard.Args("from"), "args=from is for functions that Bind finds"},                              // a method has one request
		"Methods": {guard.Methods("POST"), "methods=POST is about requests of HTTP, which there are none of here"}, // gRPC has but POST
	}
	for f, v := range reflect.ValueOf(want).Fields() {
		if !f.IsExported() {
			continue
		}
		lack, lacks := lacking[f.Name]
		delete(lacking, f.Name)
		if (v.IsZero() && reflect.ValueOf(wantRead).FieldByIndex(f.Index).IsZero()) != lacks {
			t.Errorf("guard.Spec.%s can't be given in a .proto file, or is listed as if it could not", f.Name)
		}
		if !lacks {
			continue
		}
		rules := []Rule{FromOptions(memlock.New(), []guard.Option{lack.word})}
		_, err := bindIn(bank(t, &guardpb.Guard{Key: "account:#{req.name}"}), "interceptor", All, rules)
		if err == nil || !strings.Contains(err.Error(), lack.reason) {
			t.Errorf("guard.Spec.%s for all methods: %v, want %s", f.Name, err, lack.reason)
		}
	}
	if len(lacking) > 0 {
		t.Errorf("a Spec has no fields %v", slices.Collect(maps.Keys(lacking)))
	}
}

// Levels and a rate of an option are asked for as those of options in Go.
func TestOptionReadsLevels(t *testing.T) {
	option := &guardpb.Guard{Key: "account:#{req.name}", Limit: 1, Levels: "20 of all, #{req.limit} of owner:#{req.kind}", Rate: "10/1m", Burst: 1}
	l := guardtest.Record(guardtest.PassThrough())
	ms, err := bindIn(bank(t, option), "interceptor", All, []Rule{FromOptions(l, nil)})
	if err != nil {
		t.Fatal(err)
	}
	facts := func(string) (any, error) { return &guardpb.Guard{Name: "7", Limit: 3, Kind: "a"}, nil }
	if _, err := ms[transfer].Runner.Run(t.Context(), facts, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	want := lock.Request{
		Key: "account:7", Kind: lock.Permit, Limit: 1, Levels: []lock.Level{{Key: "all", Limit: 20}, {Key: "owner:a", Limit: 3}},
		Rate: lock.Rate{Permits: 1, Interval: 6 * time.Second}, Holder: `guard "` + ms[transfer].Spec.Name + `"`,
	}
	if got := l.Steps()[0].Request; !reflect.DeepEqual(got, want) {
		t.Errorf("asked for %+v, want %+v", got, want)
	}
}

// A limit and a lease of requests see those by the names of the .proto file.
func TestOptionReadsLimitAndLease(t *testing.T) {
	option := &guardpb.Guard{Key: "account:#{req.name}", LimitFrom: "#{req.max_hold == '' ? req.limit : req.waiters}", Lease: "#{seconds(req.lease)}"}
	seconds := guard.TemplateFunc("seconds", func(text string) (time.Duration, error) { return time.ParseDuration(text) })
	l := guardtest.New()
	ms, err := bindIn(bank(t, option), "interceptor", All, []Rule{FromOptions(l, []guard.Option{guard.Limit(9), seconds})})
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int32{3, 1} {
		facts := func(string) (any, error) { return &guardpb.Guard{Name: "7", Limit: limit, Lease: "5s"}, nil }
		if _, err := ms[transfer].Runner.Run(t.Context(), facts, func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
	}
	var got []string
	for _, s := range l.Steps() {
		if s.Op == guardtest.Acquired {
			got = append(got, fmt.Sprint(s.Request.Kind, s.Request.Limit, s.Request.Lease))
		}
	}
	if want := []string{"permit 3 5s", "permit 1 5s"}; !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
}
