package gen

import (
	"strings"
	"testing"
)

const twoOrders = `type Plain interface {
	Pay(ctx context.Context, order string) error
}

type Paying interface {
	//latchkey:guard order:#{id}
	Pay(ctx context.Context, id string) error
}

`

// The method that an interface has by several ways is one, and go/types knows the first of its declarations.
func TestDirectiveOfAnEmbeddedInterfaceIsNotLostAmongOthers(t *testing.T) {
	for name, declared := range map[string]string{
		"embedded beside another": "type Orders interface {\n\tPlain\n\tPaying\n\t//latchkey:guard order:#{id}\n\tRefund(ctx context.Context, id string) error\n}",
		"declared once more":      "type Orders interface {\n\tPaying\n\tPay(ctx context.Context, order string) error\n}",
		"further down":            "type more interface {\n\tPlain\n\tPaying\n}\n\ntype Orders interface {\n\tPlain\n\tmore\n}",
	} {
		t.Run(name, func(t *testing.T) {
			files := generate(t, module(t, map[string]string{"orders.go": twoOrders + declared}))
			if len(files) != 1 || !strings.Contains(string(files[0].Text), `"Orders.Pay":`) {
				t.Errorf("Orders.Pay has no guard: %s", files[0].Text)
			}
		})
	}
}

func TestNearestOfSeveralDirectivesCounts(t *testing.T) {
	const near = "type Orders interface {\n\tPlain\n\tPaying\n\t//latchkey:guard near:#{id}\n\tPay(ctx context.Context, id string) error\n}"
	files := generate(t, module(t, map[string]string{"orders.go": twoOrders + near}))
	if text := string(files[0].Text); strings.Count(text, `"near:#{id}"`) != 1 || !strings.Contains(text, `"Orders.Pay"`) {
		t.Errorf("generated %s", text)
	}
	const far = "type Other interface {\n\t//latchkey:guard other:#{id}\n\tPay(ctx context.Context, id string) error\n}\n\ntype Orders interface {\n\tPaying\n\tOther\n}"
	dir := module(t, map[string]string{"orders.go": twoOrders + far})
	_, err := Generate(dir, "./...")
	if err == nil || err.Error() != "orders.go:19:6: Orders embeds interfaces with two directives of Pay: declare Pay in it once more, below the one that it is to have" {
		t.Errorf("Generate: %v", err)
	}
}

// What was generated before makes go/packages read all packages from their sources. So this is about the first time.
func TestInterfaceOfTheStandardLibraryIsEmbedded(t *testing.T) {
	const orders = "package p\n\nimport (\n\t\"context\"\n\t\"io\"\n)\n\ntype Orders interface {\n\t//latchkey:guard order:#{id}\n\tPay(ctx context.Context, id string) error\n\tio.Closer\n}\n"
	for _, flags := range []string{"", "-trimpath"} {
		t.Setenv("GOFLAGS", flags)
		generate(t, module(t, map[string]string{"orders.go": orders}))
	}
}

func TestDirectiveOfAnotherPackageIsReadUnderTrimpath(t *testing.T) {
	t.Setenv("GOFLAGS", "-trimpath")
	const orders = "package p\n\nimport \"github.com/latchkey-go/latchkey/cmd/latchkey-gen/internal/store\"\n\ntype Orders interface {\n\tstore.Reader\n}\n"
	dir := module(t, map[string]string{"orders.go": orders, "other.go": "//latchkey:guard order:#{id}\nfunc Pay(ctx context.Context, id string) error { return nil }"})
	files := generate(t, dir)
	if len(files) != 2 || !strings.Contains(string(files[0].Text), `"Orders.Read":`) {
		t.Errorf("generated %d files, %s", len(files), files[0].Text)
	}
}

func TestPackageThatOnlyEmbedsDirectivesHasAWrapper(t *testing.T) {
	const orders = "package p\n\n//go:generate go tool latchkey-gen\n\nimport \"github.com/latchkey-go/latchkey/cmd/latchkey-gen/internal/store\"\n\ntype Orders interface {\n\tstore.Reader\n}\n"
	dir := module(t, map[string]string{"orders.go": orders})
	files := generate(t, dir)
	if len(files) != 1 || !strings.Contains(string(files[0].Text), `"Orders.Read":`) {
		t.Errorf("generated %d files", len(files))
	}
}
