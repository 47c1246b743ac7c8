package guard

import (
	"context"
	"reflect"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// config is what options fill in.
type config struct {
	spec        Spec
	set         fields    // of spec, which fields were given
	source      KeySource // of spec.Key, if that is no template
	keyFunc     *keyFunc
	fallback    any // func(context.Context, Req, error) (Res, error)
	nilFallback bool
	tracers     trace.TracerProvider
	meters      metric.MeterProvider
	observers   []func(context.Context, Event)
	wantKeys    bool // by an observer
	functions   []keyexpr.Option
}

// fields is a set of the fields of a Spec.
type fields uint

const (
	fieldName fields = 1 << iota
	fieldKey
	fieldWhen
	fieldKind
	fieldWait
	fieldLease
	fieldMaxHold
	fieldLimit
	fieldBusy
	fieldOutage
	fieldOneKey
)

// nonZero returns the fields of s that have been given a value.
func (s Spec) nonZero() fields {
	var set fields
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			set |= 1 << i
		}
	}
	return set
}

// merge fills in the fields that c lacks with those of set in s.
func (c *config) merge(s Spec, set fields) {
	if c.keyFunc != nil {
		set &^= fieldKey
	}
	to, from := reflect.ValueOf(&c.spec).Elem(), reflect.ValueOf(s)
	for i := range to.NumField() {
		if field := fields(1) << i; set&field != 0 && c.set&field == 0 {
			to.Field(i).Set(from.Field(i))
		}
	}
	c.set |= set
}

// validate reports the first fault of c that shows without knowing the facts.
func (c *config) validate() error {
	s := c.spec
	switch {
	case c.keyFunc != nil && c.keyFunc.call == nil:
		return s.errorf("KeyFunc without a function")
	case c.keyFunc != nil && s.Key != "":
		return s.errorf("two sources of keys, Key and KeyFunc: give one")
	case c.nilFallback:
		return s.errorf("Fallback without a function")
	case c.fallback != nil && (s.Busy != Fail || s.Outage != Fail):
		return s.errorf("Fallback excludes the policies busy=%v and outage=%v: give one or the other", s.Busy, s.Outage)
	}
	for _, observe := range c.observers {
		if observe == nil {
			return s.errorf("Observe without a function")
		}
	}
	if c.source == nil {
		return s.Validate()
	}
	if err := c.source.Check(); err != nil {
		return s.errorf("key: %w", err)
	}
	s.Key = ""
	return s.Validate()
}
