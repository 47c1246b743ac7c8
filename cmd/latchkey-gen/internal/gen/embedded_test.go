package gen

import (
	"strings"
	"testing"
)

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
