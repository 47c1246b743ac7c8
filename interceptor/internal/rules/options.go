package rules

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor/guardpb"
)

// addOptions adds a rule for each registered method that has the option of guardpb.
func (b *binder) addOptions(r Rule) {
	common, err := guard.New(r.options.locker, r.options.opts...)
	switch {
	case err != nil:
		b.fault(r, err)
		return
	case common.Spec().Name != "" || common.Spec().Key != "":
		b.fault(r, errors.New("a name or a key for all methods: they belong into the option of each"))
		return
	}
	found := false
	for _, name := range slices.Sorted(maps.Keys(b.registered)) {
		option, err := optionOf(b.registered[name])
		if option == nil && err == nil {
			continue
		}
		found = true
		b.addOption(r, name, option, err)
	}
	if !found {
		b.fault(r, fmt.Errorf("no registered method has the option (%s): import the packages generated for the services",
			guardpb.E_Guard.TypeDescriptor().FullName()))
	}
}

// addOption adds the rule for one method.
func (b *binder) addOption(from Rule, name string, option *guardpb.Guard, err error) {
	r := Rule{rank: byOption, text: name}
	var spec guard.Spec
	if err == nil {
		spec, err = specOf(option)
	}
	if err == nil {
		if spec.Name == "" {
			spec.Name = strings.TrimPrefix(name, "/")
		}
		opts := append(slices.Clone(from.options.opts), guard.FromSpec(spec))
		r.guard, err = guard.New(from.options.locker, opts...)
	}
	if err != nil {
		b.fault(r, err)
		return
	}
	b.rules = append(b.rules, r)
}

// optionOf returns the option of a method, and nil if it has none.
func optionOf(d protoreflect.MethodDescriptor) (*guardpb.Guard, error) {
	if d.Options() == nil || !proto.HasExtension(d.Options(), guardpb.E_Guard) {
		return nil, nil
	}
	option, ok := proto.GetExtension(d.Options(), guardpb.E_Guard).(*guardpb.Guard)
	if !ok {
		return nil, errors.New("the option is not a latchkey.guard.v1.Guard")
	}
	return option, nil
}

// specOf is the declaration in an option. Its fields are called like the attributes of a tag, but that a limit has two, as it is a number or
// an expression.
func specOf(option *guardpb.Guard) (s guard.Spec, err error) {
	if unknown := option.ProtoReflect().GetUnknown(); len(unknown) > 0 {
		return s, errors.New("the option has a field that this version of guardpb does not know: update latchkey")
	}
	var faults []error
	if option.GetLimit() != 0 && option.GetLimitFrom() != "" {
		faults = append(faults, errors.New("limit and limit_from: give one"))
	}
	option.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		attribute := strings.TrimSuffix(strings.ReplaceAll(string(f.Name()), "_", "-"), "-from")
		if err := s.Set(attribute, v.String()); err != nil {
			faults = append(faults, err)
		}
		return true
	})
	if s.Key == "" {
		faults = append(faults, errors.New(`no key: write one, such as key: "order:#{req.order_id}"`))
	}
	return s, errors.Join(faults...)
}
