package guard_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// TestPrinted holds that what is made of Specs prints as these do, and not as the memory that it is.
func TestPrinted(t *testing.T) {
	const pay, customer = "order:#{req.ID}; name=order.pay; wait=2s", "customer:#{req.ID}; name=customer"
	reg := newRegistry(t)
	var zeros guard.Spec
	if err := zeros.UnmarshalText([]byte("k; name=zeros; one-key; wait=0")); err != nil {
		t.Fatal(err)
	}
	single := guard.Must(guard.New(memlock.New(), guard.Name("order.pay"), guard.Key("order:#{req.ID}"), guard.Wait(2*time.Second)))
	listed := guard.Must(guard.New(memlock.New(), guard.In(reg), guard.Name("customer"), guard.Key("customer:#{req.ID}")))
	stack := guard.Must(guard.Stack(listed, single))
	runner := guard.Must(adapter.Prepare(stack, keyexpr.Roots{"req": keyexpr.TypeFor[Order]()}))
	for _, tt := range []struct {
		value any
		want  string
	}{
		{single, pay}, {stack, customer + " | " + pay}, {runner, customer + " | " + pay}, {reg, customer},
		{guard.Must(guard.New(memlock.New(), guard.FromSpec(zeros))), "k; name=zeros; one-key"}, {new(guard.Guard), ""}, {(*guard.Guard)(nil), "<nil>"}, {newRegistry(t), ""},
	} {
		for _, got := range []string{fmt.Sprint(tt.value), fmt.Sprintf("%v", tt.value), fmt.Sprintf("%+v", tt.value), fmt.Sprintf("%s", tt.value)} {
			if got != tt.want {
				t.Errorf("%T prints as %q, want %q", tt.value, got, tt.want)
			}
		}
	}
	for g, want := range map[*guard.Guard]string{single: strconv.Quote(pay), new(guard.Guard): `""`, nil: "<nil>"} {
		var text, json bytes.Buffer
		slog.New(slog.NewTextHandler(&text, nil)).Info("made", "declared", g)
		slog.New(slog.NewJSONHandler(&json, nil)).Info("made", "declared", g)
		if !strings.Contains(text.String(), "declared="+want+"\n") || !strings.Contains(json.String(), `"declared":"`+strings.Trim(want, `"`)+`"`) {
			t.Errorf("%v is logged as %s and %s", g, &text, &json)
		}
	}
	for info := range reg.All() {
		if text := fmt.Sprintf("%+v", info); !strings.Contains(text, "Spec:"+customer+" ") || strings.Contains(text, "0x") {
			t.Errorf("an entry prints as %s", text)
		}
	}
}
