package docs

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// The declaration of declaring.md prints as it says there.
func TestDeclarationPrintsAsItSays(t *testing.T) {
	locker := memlock.New()
	pay := guard.Must(guard.New(locker,
		guard.Name("order.pay"),
		guard.Key("order:#{req.OrderID}"),
		guard.Fenced(),
		guard.Wait(2*time.Second),
		guard.MaxHold(time.Minute),
		guard.Waiters(100),
	))
	page, err := os.ReadFile("../../docs/declaring.md")
	if err != nil {
		t.Fatal(err)
	}
	if text := pay.Spec().String(); !strings.Contains(string(page), "```\n"+text+"\n```") {
		t.Errorf("declaring.md does not say %s", text)
	}
}
