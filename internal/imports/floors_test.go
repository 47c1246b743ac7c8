// Package imports holds the rules on who may import whom. It has no code but its tests, which read the import clauses
// of every package and the requirements in go.mod.
package imports

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// module is the path of the root module.
const module = "github.com/latchkey-go/latchkey"

// row says where a package stands and what it may import besides the standard library.
type row struct {
	floor    int
	packages []string // of this module; every one on a lower floor, the folder that this package is in, or in its own internal folder
	modules  []string // other modules
	tests    []string // makes this a test kit: only the tests of these packages import it, and it imports what tests may
}

const (
	expr      = "github.com/expr-lang/expr"
	gin       = "github.com/gin-gonic/gin"
	goredis   = "github.com/redis/go-redis/v9"
	grpc      = "google.golang.org/grpc"
	miniredis = "github.com/alicebob/miniredis/v2"
	otel      = "go.opentelemetry.io/otel"
	protobuf  = "google.golang.org/protobuf"
	rpc       = "google.golang.org/genproto/googleapis/rpc"
)

// rows is the plan of the house. A new package needs a row here.
var rows = map[string]row{
	"lock":                            {floor: 0},
	"lock/memlock":                    {floor: 1, packages: []string{"lock", "internal/clock", "internal/lazyctx", "internal/queue"}},
	"lock/locktest":                   {floor: 0, packages: []string{"lock"}},
	"lock/leases":                     {floor: 0, packages: []string{"lock", "internal/queue", "internal/clock"}},
	"lock/setnxlock":                  {floor: 1, packages: []string{"lock", "lock/leases", "internal/reply", "internal/clock"}, modules: []string{goredis}},
	"keyexpr":                         {floor: 1, packages: []string{"internal/suggest", "keyexpr/internal/run"}, modules: []string{expr, protobuf}}, // protobuf in tests
	"redisson":                        {floor: 1, packages: []string{"lock", "redisson/internal/pubsub", "redisson/internal/transport", "internal/reply", "internal/lazyctx", "internal/queue", "internal/clock"}, modules: []string{goredis, otel, otel + "/metric", otel + "/trace"}},
	"redisson/internal/transport":     {floor: 1, packages: []string{"redisson/internal/pubsub", "internal/reply", "internal/clock"}, modules: []string{goredis}},
	"redisson/internal/pubsub":        {floor: 1, packages: []string{"internal/reply", "internal/queue", "internal/clock"}, modules: []string{goredis}},
	"internal/clock":                  {floor: -1},
	"internal/lazyctx":                {floor: 0},
	"internal/queue":                  {floor: -1}, // leases uses it
	"internal/suggest":                {floor: 0},
	"keyexpr/internal/run":            {floor: 0, modules: []string{expr}},
	"keyexpr/spel":                    {floor: 1, packages: []string{"keyexpr", "keyexpr/internal/run", "internal/suggest"}},
	"keyexpr/spel/interop":            {floor: 1, packages: []string{"keyexpr", "keyexpr/spel"}},
	"redisson/interop":                {floor: 2, packages: []string{"redisson", "lock/setnxlock"}},
	"guard":                           {floor: 2, packages: []string{"lock", "keyexpr", "internal/suggest", "internal/clock"}, modules: []string{otel, otel + "/metric", otel + "/trace"}},
	"guard/adapter":                   {floor: 2, packages: []string{"guard", "keyexpr", "lock"}},
	"guard/guardtest":                 {floor: 2, packages: []string{"guard", "lock", "lock/memlock"}},
	"middleware":                      {floor: 3, packages: []string{"guard", "guard/adapter", "keyexpr", "lock", "internal/suggest", "internal/roots", "internal/route", "internal/view"}},
	"internal/route":                  {floor: 0},
	"internal/view":                   {floor: 0},
	"middleware/ginguard":             {floor: 3, packages: []string{"middleware", "internal/view", "internal/route", "guard", "guard/adapter"}, modules: []string{gin}},
	"middleware/idempotency":          {floor: 3, packages: []string{"middleware", "guard", "lock"}, modules: []string{goredis, gin}}, // gin in tests
	"interceptor":                     {floor: 3, packages: []string{"guard", "lock", "keyexpr", "interceptor/internal/answer", "interceptor/internal/rules"}, modules: []string{grpc, protobuf, rpc}},
	"interceptor/guardpb":             {floor: 2, modules: []string{protobuf}},
	"interceptor/internal/answer":     {floor: 3, packages: []string{"guard"}, modules: []string{protobuf, rpc}},
	"interceptor/internal/rules":      {floor: 3, packages: []string{"guard", "guard/adapter", "lock", "keyexpr", "internal/roots", "internal/suggest", "interceptor/guardpb"}, modules: []string{protobuf}},
	"interceptor/internal/shoppb":     {floor: 3, packages: []string{"interceptor/guardpb"}, modules: []string{grpc, protobuf}, tests: []string{"interceptor"}},
	"jobs/internal/job":               {floor: 3, packages: []string{"guard", "guard/adapter", "keyexpr"}},
	"jobs/jobtest":                    {floor: 4, packages: []string{"guard", "guard/guardtest", "internal/redistest", "lock", "redisson"}, tests: []string{"jobs/jobtest"}}, // modules below jobs
	"demo":                            {floor: 4, packages: []string{"guard", "redisson"}, modules: []string{miniredis}},
	"console":                         {floor: 4, packages: []string{"guard", "guard/adapter", "lock", "redisson"}},
	"internal/sim":                    {floor: 2, packages: []string{"internal/redistest"}, modules: []string{miniredis}, tests: []string{"redisson"}},
	"internal/doctest":                {tests: []string{"internal/doctest"}},
	"internal/redistest":              {floor: 1, packages: []string{"internal/services"}, modules: []string{goredis, miniredis}, tests: []string{"redisson", "redisson/interop", "redisson/internal/pubsub", "lock/setnxlock", "guard", "middleware/idempotency", "console", "internal/doctest", "internal/reply", "internal/sim", "jobs/jobtest"}},
	"middleware/internal/adaptertest": {floor: 4, packages: []string{"guard/guardtest", "lock", "lock/memlock"}, modules: []string{gin}, tests: []string{"middleware", "middleware/ginguard"}},
	"internal/scenario":               {floor: 3, tests: []string{"guard", "middleware", "middleware/ginguard", "middleware/internal/adaptertest", "interceptor"}},
	"internal/services":               {floor: 0},
	"internal/roots":                  {floor: 2, packages: []string{"keyexpr"}},
	"internal/gotype":                 {floor: 0},
	"internal/gotype/gotypetest":      {floor: 0, packages: []string{"internal/gotype"}, tests: []string{"internal/gotype", "keyexpr", "keyexpr/spel", "guard", "guard/adapter"}},
	"internal/reply":                  {floor: 0, modules: []string{goredis}},
	"internal/imports":                {floor: 0},
}

// Tests may use what stands below their package, these packages wherever they stand, and these modules.
var (
	testPackages = []string{"lock/memlock", "lock/locktest", "guard/adapter"}
	testModules  = []string{goredis, miniredis, otel + "/sdk", otel + "/sdk/metric"}
)

// fault says what is wrong with an import, and nothing if all is well. Both packages are named by their path below the
// module; test reports whether the import is a test's.
func fault(from, to string, test bool) string {
	r, t := rows[from], rows[to]
	test = test || len(r.tests) > 0
	switch {
	case from == to:
		return ""
	case len(t.tests) > 0:
		return kitFault(from, to, test)
	case slices.Contains(r.packages, to), test && (slices.Contains(testPackages, to) || below(to, r.floor)):
		return ""
	}
	return fmt.Sprintf("%s imports %s: %s", from, to, direction(r, t, to))
}

// direction words why a package of row r may not import to, whose row is t.
func direction(r, t row, to string) string {
	switch _, known := rows[to]; {
	case !known:
		return "it has no row in internal/imports"
	case t.floor > r.floor:
		return fmt.Sprintf("imports point down, and this one goes up from floor %d to floor %d", r.floor, t.floor)
	case t.floor == r.floor:
		return fmt.Sprintf("siblings on a floor are strangers, and both stand on floor %d", r.floor)
	}
	return "its row in internal/imports allows " + list(r.packages)
}

// kitFault is fault for an import of a test kit.
func kitFault(from, kit string, test bool) string {
	users := rows[kit].tests
	if test && slices.Contains(users, from) {
		return ""
	}
	return fmt.Sprintf("%s imports %s: that is for the tests of %s, and for modules below the root", from, kit, list(users))
}

// moduleFault is fault for an import of another module.
func moduleFault(from, mod string, test bool) string {
	r := rows[from]
	if slices.Contains(r.modules, mod) || test && slices.Contains(testModules, mod) {
		return ""
	}
	return fmt.Sprintf("%s imports %s: of other modules, its row in internal/imports allows %s", from, mod, list(r.modules))
}

func below(pkg string, floor int) bool {
	r, known := rows[pkg]
	return known && r.floor < floor
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// The table must obey the rules that it is there to enforce.
func TestRows(t *testing.T) {
	for from, r := range rows {
		for _, to := range r.packages {
			within := strings.HasSuffix(path.Dir(from), "/internal") && path.Dir(from) == path.Dir(to)
			if !below(to, r.floor) && !strings.HasPrefix(from, to+"/") && !strings.HasPrefix(to, from+"/internal/") && !within {
				t.Errorf("the row of %s allows %s, which is neither on a lower floor nor its own folder nor in its internal one or the same", from, to)
			}
		}
	}
}

func TestFault(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		test     bool
		want     string // a part of the fault; empty if there is none
	}{
		{"guard", "lock", false, ""},
		{"guard", "guard", true, ""},
		{"guard", "redisson", false, "allows lock, keyexpr, internal/suggest"},
		{"guard", "redisson", true, ""},
		{"guard", "middleware", true, "goes up from floor 2 to floor 3"},
		{"redisson", "keyexpr", false, "siblings on a floor are strangers"},
		{"redisson", "keyexpr", true, "siblings on a floor are strangers"},
		{"redisson", "lock/locktest", false, "allows lock"},
		{"redisson", "redisson/internal/pubsub", false, ""},
		{"redisson/internal/pubsub", "redisson", true, "siblings on a floor are strangers"},
		{"redisson", "lock/locktest", true, ""},
		{"lock", "lock/locktest", false, "siblings on a floor are strangers"},
		{"lock", "lock/memlock", true, ""},
		{"middleware/ginguard", "middleware", false, ""},
		{"middleware", "middleware/ginguard", false, "siblings on a floor are strangers"},
		{"interceptor", "middleware", true, "siblings on a floor are strangers"},
		{"redisson", "internal/redistest", true, ""},
		{"redisson", "internal/redistest", false, "for the tests of redisson, redisson/interop, redisson/internal/pubsub, lock/setnxlock, guard, middleware/idempotency, console, internal/doctest, internal/reply, internal/sim"},
		{"middleware", "internal/redistest", true, "for the tests of redisson, redisson/interop, redisson/internal/pubsub, lock/setnxlock, guard, middleware/idempotency, console, internal/doctest, internal/reply, internal/sim"},
		{"middleware/internal/adaptertest", "middleware", false, ""},
		{"middleware/internal/adaptertest", "lock/memlock", false, ""},
		{"middleware/internal/adaptertest", "middleware/ginguard", true, ""},
		{"guard", "demo", true, "goes up from floor 2 to floor 4"},
		{"guard", "examples/counter", true, "it has no row"},
		{"guard", "lantern", true, "it has no row"},
	} {
		got := fault(tt.from, tt.to, tt.test)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("fault(%s, %s, %v) = %q, want %q in it", tt.from, tt.to, tt.test, got, tt.want)
		}
	}
}

func TestModuleFault(t *testing.T) {
	for _, tt := range []struct {
		from, mod string
		test      bool
		want      string
	}{
		{"keyexpr", expr, false, ""},
		{"guard", expr, false, "allows " + otel},
		{"guard", otel + "/sdk", false, "allows " + otel},
		{"guard", otel + "/sdk", true, ""},
		{"lock", goredis, false, "allows none"},
		{"middleware", gin, true, "allows none"},
	} {
		got := moduleFault(tt.from, tt.mod, tt.test)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("moduleFault(%s, %s, %v) = %q, want %q in it", tt.from, tt.mod, tt.test, got, tt.want)
		}
	}
}
