package spel

import (
	"errors"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// pay is the Java method of the annotations in these tests.
var pay = Method("com.acme.OrderService", "pay")

var wholeKeysOfLibrariesRows = []struct {
	key  *Key
	want string
}{
	// lock4j: prefix ":" name "#" keys with dots. DefaultLockKeyBuilder leaves empty keys out, and joins what is left.
	{Lock4j("pay", []string{"#p0.int"}), "lock4j:pay#7"},
	{Lock4j("pay", []string{"#p0.int", "#p0.text"}), "lock4j:pay#7.Text"},
	{Lock4j("pay", []string{"", "#p0.int"}), "lock4j:pay#7"},
	{Lock4j("pay", []string{"#p0.int", "", "#p0.text"}), "lock4j:pay#7.Text"},
	{Lock4j("pay", []string{"#p0.int", ""}), "lock4j:pay#7"},
	{Lock4j("pay", nil), "lock4j:pay#"},
	{Lock4j("", []string{"#p0.int"}, pay), "lock4j:com.acme.OrderServicepay#7"},
	{Lock4j(" ", []string{"#p0.int"}, pay), "lock4j:com.acme.OrderServicepay#7"}, // StringUtils.hasText
	{Lock4j("", nil, pay), "lock4j:com.acme.OrderServicepay#"},
	{Lock4j("", nil), `start: a @Lock4j without a name has its key from the Java method: add Method(class, name)`},
	{Lock4j("pay", []string{"#p0.int"}, Prefix("shop")), "shop:pay#7"},
	{Lock4j("pay", []string{"#p0.int"}, Prefix("")), "lock4j:pay#7"},
	{Lock4j("a b", []string{"#p0.int"}), "lock4j:a b#7"}, // nothing is escaped
	{Lock4j("pay", []string{"'a.b'", "#p0.int"}), "lock4j:pay#a.b.7"},
	{Lock4j("pay", []string{"#p0.ints"}), "lock4j:pay#3,1,2"}, // one key, in the order of the list
	{Lock4j("pay", []string{"#p0.texts", "#p0.int"}), "lock4j:pay#x,y,x.7"},
	{Lock4j("pay", []string{"#p0.lines.![sku]"}), "lock4j:pay#pen,ink,cap"},
	{Lock4j("pay", []string{"{#p0.int, 'x'}"}), "lock4j:pay#7,x"},
	{Lock4j("pay", []string{"#p0.nested"}), "lock4j:pay#1,2,,3"},
	{Lock4j("pay", []string{"#p0.phase"}), "lock4j:pay#PAID"},
	{Lock4j("pay", []string{"#p0.yes"}), "lock4j:pay#true"},
	{Lock4j("pay", []string{"#p0.ref"}), "lock4j:pay#ab000000-0000-0000-0000-000000000000"},
	{Lock4j("pay", []string{"#p0.int + 1"}), "lock4j:pay#8"},
	{Lock4j("pay", []string{"#p0.null"}), "request: is null"},
	{Lock4j("pay", []string{"#p0.empty"}), "request: is empty"},
	{Lock4j("pay", []string{"#p0.attrs"}), "start: this is a map: name one of its entries"},
	{Lock4j("pay", []string{"#p0.owner"}), "start: this is an object, spel.javaOwner"},
	{Lock4j("pay", []string{"#root"}), "start: #root is not known here: name a parameter"},
	{Lock4j("pay", []string{"#root.methodName"}, pay), "start: #root is not known here"},
	{Lock4j("pay", []string{"#executionPath"}, pay), "start: #executionPath stands for executionPath, and there is no such fact"}, // a variable of another library
	{Lock4j("pay", []string{"order-#{#p0.int}"}), "start: order is a property of the root object"},
	// klock: "lock." name, and each key behind a dash. BusinessKeyProvider calls toString.
	{Klock("pay", []string{"#p0.int"}), "lock.pay-7"},
	{Klock("pay", []string{"#p0.int", "#p0.text"}), "lock.pay-7-Text"},
	{Klock("pay", []string{"", "#p0.int"}), "lock.pay-7"},
	{Klock("pay", nil), "lock.pay"},
	{Klock("", []string{"#p0.int"}, pay), "lock.com.acme.OrderService.pay-7"},
	{Klock(" ", []string{"#p0.int"}), "lock. -7"}, // only the empty name is none
	{Klock("", nil), `start: a @Klock without a name has its key from the Java method: add Method(class, name)`},
	{Klock("pay", []string{"#p0.phase"}), "lock.pay-PAID"},
	{Klock("pay", []string{"'a' + #p0.ints"}), "lock.pay-a3,1,2"}, // the + converts, and not klock
	{Klock("pay", []string{"#p0.ints"}), "start: this is a list, whose text in Java depends on whether it is an array"},
	{Klock("pay", []string{"#p0.ints[0]"}), "lock.pay-3"},
	{Klock("pay", []string{"#p0.null"}), "request: is null"},
	{Klock("pay", []string{"#root.methodName"}, pay), "start: #root is not known here: name a parameter"},
	{Klock("pay", []string{" "}), "start: nothing is written here, for which Spring throws"},
	// alturkovic: store ":" prefix expression, and a key of each element.
	{Alturkovic("", "", "#p0.int"), "distributed_lock:7"},
	{Alturkovic("", "pay:", "#p0.int"), "distributed_lock:pay:7"},
	{Alturkovic("locks", "pay:", "#p0.int"), "locks:pay:7"},
	{Alturkovic("locks", "", "#p0.texts"), "locks:x locks:y"},
	{Alturkovic("locks", "sku:", "#p0.lines.![sku]"), "locks:sku:cap locks:sku:ink locks:sku:pen"},
	{Alturkovic("locks", "", "{#p0.int, #p0.text}"), "locks:7 locks:Text"},
	{Alturkovic("locks", "", "'a' + #p0.ints"), "locks:a3,1,2"},
	{Alturkovic("locks", "", "", pay), "locks:com.acme.OrderService.pay"},
	{Alturkovic("locks", "", "#executionPath + #p0.int", pay), "locks:com.acme.OrderService.pay7"},
	{Alturkovic("", "", ""), "start: the Java method is not known: add Method(class, name)"},
	{Alturkovic("locks", "", "#p0.none"), "request: is empty"},
	{Alturkovic("locks", "", "#p0.null"), "request: is null"},
	// Redisson: the text that getLock gets.
	{Redisson(`"order:" + p0.getInt()`), "order:7"},
	{Redisson(`"order:" + p0.int + ":" + p0.text`), "order:7:Text"},
	{Redisson(`p0.texts.get(0)`), "x"},
	{Redisson(`p0.phase.name() + p0.int`), "PAID7"},
	{Redisson(`"a" + p0.executionPath`), "start: unknown property executionPath"},
	// Spring's own: #root is that of a cache, with the method's names.
	{Expression("#root.methodName + #p0.int", pay), "pay7"},
	{Expression("#root.method.name + #p0.int", pay), "pay7"},
	{Expression("#root.targetClass.simpleName + #p0.int", pay), "OrderService7"},
	{Expression("#root.target.class.name + #p0.int", pay), "com.acme.OrderService7"},
	{Expression("#root.method.declaringClass.name + #p0.int", pay), "com.acme.OrderService7"},
	{Expression("#root.getMethodName() + #p0.int", pay), "pay7"},
	{Expression("#root.args[0].int", pay), "7"},
	{Expression("#{#root.methodName}:#{#p0.int}", pay), "pay:7"},
	{Expression("#root.target.class.simpleName + #p0.int", Method("a.B$C", "m")), "C7"},
	{Expression("#root.methodName?.trim() + #p0.int", pay), "pay7"},
}

// Whole keys, as each library makes them: its prefix, its separators, its way with lists, with an empty key and with #root.
func TestWholeKeysOfLibraries(t *testing.T) {
	for _, tt := range wholeKeysOfLibrariesRows {
		if got := onShop(t, tt.key); !agrees(got, tt.want) {
			t.Errorf("%v comes to %q, want %q", tt.key, got, tt.want)
		}
	}
}

// In a library with several expressions, an error keeps the one that it is about, and its place there.
func TestPlacesInAnnotations(t *testing.T) {
	for _, tt := range []struct {
		key    *Key
		text   string
		offset int
		reason string
	}{
		{Lock4j("pay", []string{"#p0.int", "#p0.nope"}), "#p0.nope", 4, "unknown property nope of spel.shop, did you mean None?"},
		{Lock4j("pay", []string{"#p0.int", "'é' + "}), "'é' + ", 7, `unexpected "the end"`},
		{Lock4j("pay", []string{"T(X)"}), "T(X)", 0, "T(X) reaches no class here: give the guard a function with TemplateFunc, and write #name(…)"},
		{Klock("pay", []string{"#p0.int", "#p0.ints"}), "#p0.ints", 4, "this is a list, whose text in Java depends on whether it is an array: put its elements together, or name one"},
		{Alturkovic("", "x", "#p0.int +"), "#p0.int +", 9, `unexpected "the end"`},
		{Redisson(`"a" + p0.nope()`), `"a" + p0.nope()`, 9, "unknown property nope of spel.shop, did you mean None?"},
		{Expression("a-#{#p0.int}-#{#p0.}"), "a-#{#p0.int}-#{#p0.}", 19, `a name is missing before "the end"`},
		{Expression("é#{é}"), "é#{é}", 4, "é is a property of the root object, which is not known here: write #é for a parameter"},
		{Expression("é-#{#p0.int}-#{#p0.nope}"), "é-#{#p0.int}-#{#p0.nope}", 20, "unknown property nope of spel.shop, did you mean None?"},
		{Expression("a#{'b}"), "a#{'b}", 1, "the hole is not closed by }"},
		{Expression("#{#p0.int"), "#{#p0.int", 0, "the hole is not closed by }"},
	} {
		_, err := tt.key.Parse(keyexpr.Roots{"req": keyexpr.TypeFor[*shop]()}, keyexpr.OneKey())
		fault, ok := errors.AsType[*keyexpr.Error](err)
		if !ok {
			t.Errorf("%v = %v, want an *Error", tt.key, err)
			continue
		}
		if fault.Text != tt.text || fault.Offset != tt.offset || fault.Reason != tt.reason {
			t.Errorf("%v points to %q at %d and says\n%s\nwant %q at %d and\n%s", tt.key, fault.Text, fault.Offset, fault.Reason, tt.text, tt.offset, tt.reason)
		}
	}
}

// A key shows the annotation that it stands for.
func TestKeysShowTheirAnnotation(t *testing.T) {
	for _, tt := range []struct {
		key  *Key
		want string
	}{
		{Expression("'a' + #id"), "'a' + #id"},
		{Lock4j("pay", []string{"#id", "#n"}), `@Lock4j("pay", "#id", "#n")`},
		{Lock4j("", nil), "@Lock4j()"},
		{Klock("", []string{"#id"}), `@Klock("#id")`},
		{Alturkovic("locks", "p:", "#id"), `@RedisLocked("p:", "#id")`},
		{Alturkovic("", "", ""), `@RedisLocked("#executionPath")`},
		{Redisson(`"a" + id`), `"a" + id`},
	} {
		if got := tt.key.String(); got != tt.want {
			t.Errorf("String() = %s, want %s", got, tt.want)
		}
	}
}
