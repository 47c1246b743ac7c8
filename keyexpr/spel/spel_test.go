package spel

import (
	"slices"
	"strings"
	"testing"
)

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
}
