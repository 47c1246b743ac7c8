package rules

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/internal/roots"
	"github.com/latchkey-go/latchkey/keyexpr"
)

// Kinds says which methods the caller of Bind can guard.
type Kinds int

// Values of Kinds.
const (
	All Kinds = iota
	Unary
	Streaming
)

// Bound is a method with its guard, ready to run. It is immutable.
type Bound struct {
	Name      string
	Rule      string     // what it comes from
	Spec      guard.Spec // as it was made; the name stays
	Streaming bool
	Runner    adapter.Runner
	Request   reflect.Type             // what handlers get, a pointer
	Response  protoreflect.MessageType // nil: not known
	Fallback  *Fallback                // or nil
	Single    bool                     // the response is one message, which a skipped call has to give as well
}

// Methods are the guarded methods, by their full names.
type Methods map[string]*Bound

// Bind checks rules, and returns which method has which guard. Its error joins all faults; prefix is the package that
// they are given to.
func Bind(prefix string, kinds Kinds, rules []Rule) (Methods, error) {
	return bindIn(protoregistry.GlobalFiles, prefix, kinds, rules)
}

func bindIn(files *protoregistry.Files, prefix string, kinds Kinds, rules []Rule) (Methods, error) {
	b := &binder{kinds: kinds, registered: registered(files), winners: make(map[string]int), used: make(map[int]bool)}
	for _, r := range rules {
		b.add(r)
	}
	if len(rules) == 0 {
		b.faults = append(b.faults, errors.New("no rules, so nothing would be guarded"))
	}
	for i := range b.rules {
		b.match(i)
	}
	methods := b.bind()
	for i, fault := range b.faults {
		b.faults[i] = fmt.Errorf("%s: %w", prefix, fault)
	}
	if err := errors.Join(b.faults...); err != nil {
		return nil, err
	}
	return methods, nil
}

// binder is one run of Bind.
type binder struct {
	kinds      Kinds
	registered map[string]protoreflect.MethodDescriptor
	rules      []Rule
	winners    map[string]int // by method, the index of its rule of highest rank
	used       map[int]bool   // rules that won, or are wrong
	faults     []error
}

func (b *binder) fault(r Rule, err error) {
	b.faults = append(b.faults, fmt.Errorf("%v: %w", r, err))
}

// add notes a rule if it is whole, and the rules that it stands for.
func (b *binder) add(r Rule) {
	for _, err := range r.faults {
		b.fault(r, err)
	}
	switch {
	case r.options != nil:
		b.addOptions(r)
	case r.guard == nil && !r.free:
		b.fault(r, errors.New("rule without a guard"))
	default:
		b.rules = append(b.rules, r)
	}
}

// match finds the methods of a rule, and where it is of the highest rank so far.
func (b *binder) match(i int) {
	r := b.rules[i]
	found, err := b.find(r)
	if err == nil {
		err = b.checkKinds(found)
	}
	if err != nil {
		b.fault(r, r.errorf("%w", err))
		b.used[i] = true
		return
	}
	for _, name := range found {
		switch w, taken := b.winners[name]; {
		case taken && b.rules[w].rank == r.rank:
			b.fault(r, r.errorf("%q has another rule of the same rank already, %v", name, b.rules[w]))
			b.used[i] = true
		case !taken || b.rules[w].rank < r.rank:
			b.winners[name] = i
		}
	}
}

// checkKinds reports methods that would stay without a guard, as they are of the other kind.
func (b *binder) checkKinds(found []string) error {
	wrong := slices.DeleteFunc(slices.Clone(found), func(name string) bool {
		d := b.registered[name]
		return d == nil || b.kinds == All || (b.kinds == Streaming) == isStreaming(d)
	})
	are, to := "streaming", "StreamServer"
	if b.kinds == Streaming {
		are, to = "unary", "UnaryServer"
	}
	switch {
	case len(wrong) == 0:
		return nil
	case len(found) == 1:
		return fmt.Errorf("the method is %s: give its rule to %s, or all rules to New", are, to)
	}
	return fmt.Errorf("it matches %s methods too, which would stay without a guard (%s): give all rules to New", are, suggestList(wrong))
}

func suggestList(names []string) string { return strings.Join(names[:min(3, len(names))], ", ") }

func isStreaming(d protoreflect.MethodDescriptor) bool {
	return d.IsStreamingClient() || d.IsStreamingServer()
}

// bind prepares the guards of all methods.
func (b *binder) bind() Methods {
	methods := make(Methods, len(b.winners))
	for _, name := range slices.Sorted(maps.Keys(b.winners)) {
		i := b.winners[name]
		b.used[i] = true
		if r := b.rules[i]; !r.free {
			bound, err := b.prepare(r, name)
			if err != nil {
				b.fault(r, inMethod(r, name, err))
				continue
			}
			methods[name] = bound
		}
	}
	for i, r := range b.rules {
		if !b.used[i] && r.rank != byOption { // Go may replace what a .proto file says
			b.fault(r, r.errorf("it never applies: each of its methods has a rule of higher rank"))
		}
	}
	return methods
}

// inMethod names the method of an error, if its rule does not.
func inMethod(r Rule, name string, err error) error {
	if r.text == name {
		return err
	}
	return fmt.Errorf("method %q: %w", name, err)
}

// prepare checks the guard of r for one method.
func (b *binder) prepare(r Rule, name string) (*Bound, error) {
	m := &Bound{Name: name, Rule: r.String(), Request: r.request, Single: true}
	if err := m.describe(b.registered[name]); err != nil {
		return nil, r.errorf("%w", err)
	}
	if m.Request.Kind() != reflect.Pointer {
		return nil, r.errorf("handlers get a pointer, so the request type can't be %v", m.Request)
	}
	var can []adapter.Ability
	if m.Fallback = r.instead; m.Fallback != nil {
		if err := m.Fallback.fits(m); err != nil {
			return nil, r.errorf("%w", err)
		}
		can = append(can, adapter.ServesFallback)
	}
	if m.Single && m.Response == nil {
		can = append(can, adapter.MustAnswer)
	}
	var err error
	m.Runner, err = adapter.Prepare(r.guard, roots.RPC(keyexpr.Type(m.Request)), can...) // whose errors name the guard
	if err != nil {
		return nil, err
	}
	m.Spec = m.Runner.Specs()[0]
	return m, nil
}

// describe fills in the fields that the descriptor of m gives. A method without one is all right if its request type
// is known.
func (m *Bound) describe(d protoreflect.MethodDescriptor) error {
	if d == nil {
		return nil
	}
	m.Streaming, m.Single = isStreaming(d), !d.IsStreamingServer()
	if t, err := protoregistry.GlobalTypes.FindMessageByName(d.Output().FullName()); err == nil {
		m.Response = t
	}
	if m.Request != nil {
		return nil
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.Input().FullName())
	if err != nil {
		return fmt.Errorf("no Go type is registered for its request %s: name one with Request", d.Input().FullName())
	}
	m.Request = reflect.TypeOf(t.Zero().Interface())
	return nil
}

// Sorted yields the methods in the order of their names.
func (ms Methods) Sorted() iter.Seq[*Bound] {
	return func(yield func(*Bound) bool) {
		for _, name := range slices.Sorted(maps.Keys(ms)) {
			if !yield(ms[name]) {
				return
			}
		}
	}
}

// String lists the methods, a line each, with the rule and the declaration of its guard.
func (ms Methods) String() string {
	var b strings.Builder
	for m := range ms.Sorted() {
		fmt.Fprintf(&b, "%s  %s  (%s)\n", m.Name, m.Runner.Specs()[0], m.Rule)
	}
	return b.String()
}
