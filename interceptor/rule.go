package interceptor

import (
	"errors"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/keyexpr"
)

// Rule puts a guard in front of one method. It is made by Method; its zero value is refused by UnaryServer and
// StreamServer.
type Rule struct {
	method  string
	guard   *guard.Guard
	request reflect.Type // nil: the registered one
}

// Method guards the method with this full name, such as "/bank.v1.Bank/Transfer". Generated code has a constant for it:
// bankpb.Bank_Transfer_FullMethodName. A guard can serve many methods, whose templates then are checked against each of
// their request types.
func Method(name string, g *guard.Guard, opts ...Option) Rule {
	r := Rule{method: name, guard: g}
	for _, o := range opts {
		o.apply(&r)
	}
	return r
}

// Option changes a Rule.
type Option interface{ apply(*Rule) }

// Request says that the handler of the method gets requests of type T, which is a pointer type: *TransferRequest. Use it
// for methods whose descriptors are not registered, as on servers with a codec of their own. Nothing else is known of
// such a method: a misspelt name, or a rule that is given to the interceptor for the other kind of method, leaves it
// without a guard, and a guard that skips is refused, as nobody can say what to answer.
func Request[T any]() Option { return request{reflect.TypeFor[T]()} }

type request struct{ reflect.Type }

func (o request) apply(r *Rule) { r.request = o.Type }

// method is a Rule that was checked and is ready to run. It is immutable.
type method struct {
	name     string
	guard    string // its name
	runner   *guard.Runner
	request  reflect.Type             // what handlers get, a pointer
	response protoreflect.MessageType // nil: not known
	single   bool                     // the response is one message, which a skipped call has to give as well
}

// bind checks rules for methods of one kind, and returns what they are about by the name of the method.
func bind(rules []Rule, want kind) (map[string]*method, error) {
	methods := make(map[string]*method, len(rules))
	for _, r := range rules {
		m, err := r.bind(want)
		if err == nil && methods[r.method] != nil {
			err = m.errorf("the method has another rule already")
		}
		if err != nil {
			return nil, fmt.Errorf("interceptor: method %q: %w", r.method, err)
		}
		methods[r.method] = m
	}
	return methods, nil
}

func (r Rule) bind(want kind) (*method, error) {
	if r.guard == nil {
		return nil, errors.New("rule without a guard")
	}
	spec := r.guard.Spec()
	m := &method{name: r.method, guard: spec.Name, request: r.request, single: true}
	if err := m.describe(want); err != nil {
		return nil, m.errorf("%w", err)
	}
	if m.request.Kind() != reflect.Pointer {
		return nil, m.errorf("handlers get a pointer, so the request type can't be %v", m.request)
	}
	if m.single && m.response == nil && (spec.Busy == guard.Skip || spec.Outage == guard.Skip) {
		return nil, m.errorf("a skipped call must answer something, but the type of its responses is not known: let the guard fail")
	}
	var err error
	m.runner, err = r.guard.Prepare(keyexpr.Roots{ // whose errors name the guard
		"req":    keyexpr.Type(m.request),
		"md":     keyexpr.AnyName(),
		"method": keyexpr.TypeFor[string](),
	})
	return m, err
}

// errorf makes an error that names the guard of m.
func (m *method) errorf(format string, args ...any) error {
	return fmt.Errorf("guard %q: "+format, append([]any{m.guard}, args...)...)
}
